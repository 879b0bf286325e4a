"""What a page says of the model is what the study says, and the most important comes first."""

import math

import pytest
import torch

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.reports.model_numbers import LEVELS
from botorch_ext.reports.numbers_of_study import numbers_at, numbers_of
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.page import page
from botorch_ext.reports.report_page import report_page
from botorch_ext.strategies import RandomSearch
from tests.helpers import rbf
from tests.page.studies import Parsed
from tests.page.test_pictures import NOW

SPACE = bx.Space(
    a=bx.Real(0, 1),
    b=bx.Real(1e-3, 10, log=True, unit="mol/l"),
    c=bx.Integer(0, 4),
    d=bx.Choice(["x", "y"]),
)


def value_of(x):
    """Which b explains most of, then c; a explains nearly nothing and d nothing."""
    return 0.05 * float(x[0]) + 2 * math.log10(float(x[1])) + 0.4 * float(x[2])


@pytest.fixture(scope="module", params=[False, True], ids=["maximise", "minimise"])
def study(request, tmp_path_factory):
    kernel = rbf(2.0, 0.6, 5.0, 3.0).float()
    strategy = bx.algorithms.gp_bucb(SPACE, kernel, noise_variance=0.01, width=2.0)
    strategy.expect(bx.exceptions.PriorScaleWarning)
    place = tmp_path_factory.mktemp("model") / "lab.db"
    study = bx.Study(place, strategy, minimize=request.param, objective="cost", unit="€")
    for x in SPACE.sample(14, seed=2):
        study.attach(x, value_of(x))
    study.ask(2)
    return study


@pytest.fixture(scope="module")
def model(study):
    return numbers_of(study)


def test_the_recommended_point_the_batch_and_pending_trials(study, model):
    found, gain = study.recommended(), study.expected_gain(2)
    at, recommended = study.predict(found.x, levels=LEVELS), model.recommended
    assert LEVELS == (0.025, 0.25, 0.75, 0.975)
    assert recommended.x == found.x.tolist() and recommended.is_evaluated == found.is_evaluated
    said = recommended.prediction
    assert (said.mean, said.std) == pytest.approx((float(at.mean), float(at.std)))
    assert said.quantiles == pytest.approx(at.quantiles[0].tolist())
    assert said.observed == pytest.approx(at.observation_quantiles[0].tolist())
    expected = pytest.approx((found.probability, found.shortfall))
    assert (recommended.probability, recommended.shortfall) == expected
    batch = model.next_batch  # as many points as were asked last
    assert batch.points == gain.x.tolist() and gain.gain >= 0
    expected = pytest.approx((gain.gain, 0.1, gain.probability))
    assert (batch.gain, batch.noise_std, batch.probability) == expected
    assert list(model.pending) == study.pending and model.missing == ()
    trials = [study.strategy.history.trials[id] for id in study.pending]
    for points, known in ((gain.x, batch.predictions), (trials, model.pending.values())):
        means = study.predict(points).mean.tolist()
        assert [each.mean for each in known] == pytest.approx(means)


def test_the_most_important_parameters_come_first_everywhere(study, model):
    total = study.importance().total
    order = total.argsort(descending=True).tolist()
    assert order[:2] == [1, 2]
    assert model.importance.columns == order
    assert model.importance.total == pytest.approx(total[order].tolist())
    first = study.importance().first_order
    assert model.importance.first_order == pytest.approx(first[order].tolist())
    assert [own.column for own in model.slices] == order
    assert model.contours.columns == (1, 2)


def test_slices_and_contours_run_through_the_recommended_point(study, model):
    base = torch.tensor(model.recommended.x, dtype=torch.float64)
    X, Y = study.strategy.evaluated()
    told = list(zip(X.tolist(), Y.flatten().tolist(), strict=True))
    for own in model.slices:
        points = base.repeat(len(own.across), 1)
        points[:, own.column] = torch.tensor(own.across, dtype=torch.float64)
        found = study.predict(points, levels=LEVELS)
        assert own.means == pytest.approx(found.mean.tolist())
        assert torch.tensor(own.quantiles).T.flatten().tolist() == pytest.approx(
            found.quantiles.flatten().tolist(), rel=1e-6
        )
        assert own.is_stepped == (own.column >= 2)
        assert set(own.near) <= {(x[own.column], value) for x, value in told}
    stepped = {own.column: own.across for own in model.slices if own.is_stepped}
    assert stepped == {2: [0, 1, 2, 3, 4], 3: [0, 1]}
    ends = {own.column: (own.across[0], own.across[-1]) for own in model.slices}
    assert ends[0] == pytest.approx((0, 1)) and ends[1] == pytest.approx((1e-3, 10))
    contours, point = model.contours, base.clone()
    point[1], point[2] = contours.across[3], contours.up[2]
    assert contours.means[2][3] == pytest.approx(float(study.predict(point).mean))


def test_the_command_writes_the_page_of_the_study(
    study, tmp_path, capsys, monkeypatch, no_pictures
):
    monkeypatch.setattr("time.time", lambda: NOW)
    place, output = study._journal.database.name, tmp_path / "page.html"
    assert main(["report", str(place), "-o", str(output)]) == 0
    assert capsys.readouterr().err == ""
    assert output.read_text(encoding="utf-8") == report_page(study)


def test_each_context_has_its_best_trial_and_its_recommended_point(tmp_path, no_pictures):
    box, kernel = bx.Box([(-1.0, 1.0)]), rbf(0.5, 3.0)
    strategy = bx.algorithms.gp_bucb(
        box, kernel, noise_variance=0.01, width=2.0, context_domain=bx.Box([(0.0, 9.0)])
    )
    strategy.expect(bx.exceptions.PriorScaleWarning)
    study = bx.Study(tmp_path / "lab.db", strategy)
    best = {}
    for i in range(6):
        z, value = [1.0, 8.0][i % 2], [0.5, -1.0, 2.0, 0.25, 1.0, 0.75][i]
        study.attach([i / 6], value, [z])
        best[z] = max(value, best.get(z, value))
    rows = Parsed(report_page(study)).table("context", "values")
    assert [(row[0], row[1], float(row[2])) for row in rows] == [
        (f"({z:g})", "3", best[z]) for z in (1.0, 8.0)
    ]
    for row, z in zip(rows, (1.0, 8.0), strict=True):
        assert row[5] == f"{float(study.recommended([z]).prediction.mean):.4g}"


def test_what_cannot_be_said_is_said_with_its_reason(tmp_path, no_pictures):
    study = bx.Study(tmp_path / "a.db", RandomSearch(SPACE))
    assert numbers_of(study).missing == ("The model knows no value yet.",)
    study.tell(study.ask(), 0.5)
    assert "The recommended point is not known: " in Parsed(report_page(study)).text
    own = bx.algorithms.gp_bucb(
        bx.Box([(0, 1)]), rbf(0.5), noise_variance=0.01, width=2.0, mean=lambda X: 0 * X[..., 0]
    )
    study = bx.Study(tmp_path / "b.db", own)
    study.tell(study.ask(), 0.5)
    text = Parsed(
        page(read_overview(tmp_path / "b.db"), 0.0, numbers_at(tmp_path / "b.db", "study"))
    )
    assert "What the model says is not shown: " in text.text and "open the study" in text.text
    with pytest.raises(ValueError, match="study must be a Study"):
        report_page(own)
