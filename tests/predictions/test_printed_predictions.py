"""What is predicted, as it is printed: tables with names and units."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext.predictions import ExpectedGain, Importance, Predictions, Recommendation

SPACE = bx.Space(
    temperature=bx.Real(20, 80, unit="°C", digits=1), solvent=bx.Choice(["water", "dmso"])
)


def predictions(num, domain=SPACE, contexts=None):
    x = torch.tensor([61.5, 1.0], dtype=torch.float64).repeat(num, 1)
    y = torch.full((num,), 1 / 3, dtype=torch.float64)
    quantiles = torch.stack([y - 1, y + 1], dim=-1)
    return Predictions(x, contexts, y, y / 2, (0.05, 0.95), quantiles, 2 * quantiles, domain)


def rows(shown):
    return [line.split() for line in repr(shown).splitlines()]


def test_predictions_are_printed_with_names_and_units():
    pytest.importorskip("pandas")
    title, head, row, *_ = rows(predictions(2))
    assert title == ["Predictions", "at", "2", "points"]
    assert head[:6] == ["temperature", "[°C]", "solvent", "mean", "std", "5"]
    assert row[:4] == ["61.5", "dmso", "0.333333", "0.166667"]
    # Long tables are cut, and columns without names are numbered.
    long = rows(predictions(13, bx.Box([(0.0, 99.0), (0.0, 2.0)]), torch.ones(13, 1)))
    assert long[1][:5] == ["x0", "x1", "context0", "mean", "std"]
    assert len(long) == 13 and long[-1] == ["...", "and", "3", "more"]


def test_recommendations_gains_and_importance_say_their_numbers():
    one = predictions(1)
    found = rows(Recommendation(one.x[0], None, one, 0.5544, 0.20095, False))
    assert [line[-1] for line in found[-2:]] == ["0.554", "0.201"]
    gain = ExpectedGain(0.53903, 1.188, 0.5665, predictions(2).x, None, SPACE)
    assert gain.params == [{"temperature": 61.5, "solvent": "dmso"}] * 2
    _, *said, head, first, second = rows(gain)
    assert [line[-1] for line in said] == ["0.539", "0.567", "1.19"]
    assert (head[0], first, second) == ("temperature", ["61.5", "dmso"], ["61.5", "dmso"])
    # The most important parameter comes first, and no share below 0 is shown.
    shares = torch.tensor([-0.005, 0.5]), torch.tensor([0.375, 0.75])
    _, _, *shown, last = rows(Importance(("a", "long"), *shares, 17.31))
    assert shown == [["long", "0.5", "0.75"], ["a", "0", "0.375"]]
    assert last[-1] == "17.3"
    assert repr(Importance(("a",), torch.ones(1), torch.ones(1), 1.0)).startswith(
        "Importance of 1 parameter\n"
    )
