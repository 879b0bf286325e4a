"""What is predicted, as it is printed: tables with names and units."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext.aligned import aligned
from botorch_ext.predictions import ExpectedGain, Importance, Predictions, Recommendation

SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1), solvent=bx.Choice(["water", "dmso"])
)


def predictions(num=2, domain=SPACE, contexts=None):
    x = torch.tensor([[61.5, 1.0], [20.0, 0.0]], dtype=torch.float64).repeat(num // 2 + 1, 1)[:num]
    y = torch.linspace(7.25, 1 / 3, num, dtype=torch.float64) if num > 1 else torch.tensor([7.25])
    quantiles = torch.stack([y - 1, y + 1], dim=-1)
    return Predictions(x, contexts, y, y / 2, (0.05, 0.95), quantiles, 2 * quantiles, domain)


def test_predictions_are_printed_as_their_table():
    pandas = pytest.importorskip("pandas")
    found = predictions()
    table = found.to_pandas().rename(columns={"temperature": "temperature [°C]"})
    cells = [[f"{c:.6g}" if isinstance(c, float) else c for c in row] for row in table.to_numpy()]
    assert isinstance(table, pandas.DataFrame)
    assert repr(found).split("\n  ") == [
        "Predictions at 2 points",
        *aligned([list(table.columns), *cells]),
    ]
    assert "0.333333" in repr(found) and "tensor" not in repr(found)


def test_long_tables_are_cut_and_columns_without_names_are_numbered():
    shown = repr(predictions(13, bx.Box([(0.0, 99.0), (0.0, 2.0)]), torch.ones(13, 1))).split("\n")
    assert shown[1].split()[:5] == ["x0", "x1", "context0", "mean", "std"]
    assert len(shown) == 13 and shown[-1] == "  ... and 3 more"


def test_a_recommendation_says_how_sure_it_is():
    prediction = predictions(1)
    found = Recommendation(prediction.x[0], None, prediction, 0.5544, 0.20095, False)
    assert repr(found).split("\n  ") == [
        "Recommendation of a point that was not evaluated",
        *repr(prediction).split("\n  ")[1:],
        "probability that no evaluated point is better: 0.554",
        "expected shortfall from the best evaluated point: 0.201",
    ]


def test_a_gain_names_its_points():
    x = predictions().x
    gain = ExpectedGain(0.53903, 1.188, 0.5665, x, None, SPACE)
    assert gain.params == [SPACE.params(row) for row in x]
    assert repr(gain).split("\n  ") == [
        "ExpectedGain of 2 points",
        "gain of the best value: 0.539",
        "probability of a better point: 0.567",
        "standard deviation of the noise: 1.19",
        "temperature [°C]  solvent",
        "            61.5     dmso",
        "              20    water",
    ]


def test_importance_begins_with_the_most_important():
    found = Importance(("a", "long"), torch.tensor([0.25, 0.5]), torch.tensor([0.375, 0.75]), 17.31)
    assert repr(found).split("\n  ") == [
        "Importance of 2 parameters",
        "parameter  first_order  total",
        "     long          0.5   0.75",
        "        a         0.25  0.375",
        "standard deviation of the posterior mean over the space: 17.3",
    ]
    alone = Importance(("a",), torch.ones(1), torch.ones(1), 17.31)
    assert repr(alone).startswith("Importance of 1 parameter\n")
