"""The page of a study with what its model says."""

import json
import math

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.reports.calibration import calibration, predicted
from botorch_ext.reports.model_numbers import LEVELS
from botorch_ext.reports.numbers_of_study import numbers_at, numbers_of
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.parameters import NOTHING, columns_of
from botorch_ext.reports.report_page import report_page
from botorch_ext.studies.description import describe
from tests.studies.kept import BOX, at_random, gp_bucb
from tests.studies.pages import Parsed, made, played, rbf, require_harmless, titles
from tests.studies.seven_studies import PARAMETERS, candidate_models, contexts, minimising, mixed


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_numbers_are_those_of_the_study(path, sign):
    study = bx.Study(path, gp_bucb(), minimize=sign < 0)
    for trial in study.ask(10):
        study.tell(trial, sign * -float((trial.x - 0.5).square().sum()) / 9)
    pending = study.ask(3)
    model = numbers_of(study)
    found, gain = study.recommended(), study.expected_gain(3)
    at = study.predict(found.x, levels=LEVELS)
    assert model.recommended is not None and model.next_batch is not None
    assert model.recommended.x == found.x.tolist()
    assert model.recommended.prediction.quantiles == tuple(at.quantiles[0].tolist())
    assert sorted(model.recommended.prediction.observed) == list(
        model.recommended.prediction.observed
    )
    assert model.next_batch.gain == gain.gain >= 0
    assert model.next_batch.points == gain.x.tolist()
    assert [each.mean for each in model.pending.values()] == study.predict(pending).mean.tolist()
    assert list(model.pending) == study.pending and model.missing == ()
    # Every slice runs through the recommended point, and so do the contours.
    for own in model.slices:
        near = min(own.across, key=lambda number: abs(number - found.x[own.column]))
        point = found.x.clone()
        point[own.column] = near
        mean = float(study.predict(point).mean)
        assert own.means[own.across.index(near)] == pytest.approx(mean, abs=1e-9)
        X, Y = study.strategy.evaluated()
        told = zip(X[:, own.column].tolist(), (sign * Y).flatten().tolist(), strict=True)
        assert set(own.near) <= set(told)
    assert model.contours is not None
    j, k = model.contours.columns
    point = found.x.clone()
    point[j], point[k] = model.contours.across[3], model.contours.up[5]
    mean = float(study.predict(point).mean)
    assert model.contours.means[5][3] == pytest.approx(mean, abs=1e-9)
    importance = study.importance()
    assert model.importance is not None
    assert model.importance.total == importance.total.sort(descending=True).values.tolist()


def test_the_command_writes_the_page_of_the_study(path, tmp_path, clock, capsys):
    study = mixed(path)
    output = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(output)]) == 0
    assert capsys.readouterr().err == ""
    parsed = require_harmless(output.read_text(encoding="utf-8"))
    assert numbers_at(path, "study") == numbers_of(study)
    assert titles(parsed) == [
        "Values, and the best so far",
        "The model around the recommended point",
        "Which parameters matter",
        "The two parameters that matter most",
        "Predicted against measured",
        "Values against each coordinate",
        "All parameters together",
        "When trials were asked and told",
    ]
    found = study.recommended()
    params = study.strategy.domain.params(found.x)
    words = f"temperature {params['temperature']:g} °C, catalyst {params['catalyst']:.6g} mol/l"
    assert f"The model recommends {words}" in parsed.text
    assert f"solvent {params['solvent']}" in parsed.text and "yield (%)" in parsed.text
    rows = parsed.table("trial", "at")
    assert [int(row[0]) for row in rows] == study.pending
    means = study.predict([study.strategy.history.trials[id] for id in study.pending]).mean
    assert [row[4] for row in rows] == [f"{mean:.4g}" for mean in means.tolist()]
    for word in ("x0", "context0"):
        assert word not in parsed.text


@pytest.mark.usefixtures("empty_pictures")
def test_a_cost_falls(path):
    text = Parsed(report_page(minimising(path))).text
    assert "expected to lower the best cost by" in text and "falls by what" in text


@pytest.mark.usefixtures("empty_pictures")
def test_candidate_models_are_listed(path):
    study = candidate_models(path)
    rows = Parsed(report_page(study)).table("model", "trials")
    models = study.report()["models"]
    assert [(row[0], int(row[1])) for row in rows] == [
        (model["name"], model["times_played"]) for model in models
    ]
    likelihoods = [model["log_marginal_likelihood"] for model in models]
    weights = [0.0 if each is None else math.exp(each) for each in likelihoods]
    shown = [float(row[2].removesuffix(" %") or 0) / 100 for row in rows]
    assert shown == pytest.approx([each / sum(weights) for each in weights], rel=1e-3, abs=1e-12)


@pytest.mark.usefixtures("empty_pictures")
def test_each_context_has_its_best_trial_and_its_recommended_point(path):
    study = contexts(path)
    rows = Parsed(report_page(study)).table("context", "values")
    history = study.strategy.history
    assert [row[0] for row in rows] == ["(1)", "(4)", "(8)"]
    for row, context in zip(rows, (1.0, 4.0, 8.0), strict=True):
        ids = [trial.id for trial in history.trials if trial.context.tolist() == [context]]
        assert int(row[1]) == len(ids)
        assert row[2] == f"{max(history.values[id] for id in ids):.6g}"
        assert row[5] == f"{float(study.recommended([context]).prediction.mean):.4g}"


def test_a_strategy_that_cannot_be_made_again_leaves_the_rest(path, tmp_path):
    strategy = bx.algorithms.gp_bucb(
        BOX, rbf(), noise_variance=0.01, width=2.0, mean=lambda X: 0 * X[..., 0]
    )
    study = bx.Study(path, strategy)
    for trial in study.ask(4):
        study.tell(trial, 0.5)
    output = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(output)]) == 0
    parsed = require_harmless(output.read_text(encoding="utf-8"))
    assert "What the model says is not shown: " in parsed.text
    assert "open the study in Python" in parsed.text
    assert titles(parsed) == titles(Parsed(made(path)))
    assert "The recommended point" in Parsed(report_page(study)).text


@pytest.mark.usefixtures("empty_pictures")
def test_what_a_model_cannot_say_is_said(path):
    study = bx.Study(path, at_random())
    assert numbers_of(study).missing == ("The model knows no value yet.",)
    played(study, 5, failing=0.0)
    text = Parsed(report_page(study)).text
    assert "The recommended point is not known: " in text and "What to try next" not in text


def test_a_finite_set_has_no_slices(path):
    points = bx.FiniteSet(BOX.sample(30, seed=0))
    strategy = bx.algorithms.gp_bucb(points, rbf(), noise_variance=0.01, width=2.0)
    model = numbers_of(played(bx.Study(path, strategy), 8, failing=0.0))
    assert model.recommended is not None and model.next_batch is not None
    assert model.slices == [] and model.importance is None and model.contours is None


@pytest.mark.usefixtures("empty_pictures")
def test_shares_inside_the_bands_are_counted(path):
    study = played(bx.Study(path, gp_bucb(), minimize=True), 20, failing=0.0)
    overview, noise = read_overview(path), 0.1
    known = [
        (story.info["mean"], math.hypot(story.info["std"], noise), story.value)
        for story in overview.observed
        if "mean" in story.info
    ]
    assert len(known) > 5
    assert [(each.mean, each.std, each.value) for each in predicted(overview, noise)] == known
    # Means are in the sign of the values.
    trial = study.strategy.history.trials[-1]
    assert overview.stories[-1].info["mean"] == -trial.info["mean"]
    apart = [abs(value - mean) / std for mean, std, value in known]
    half, most = (sum(each <= num for each in apart) / len(apart) for num in (0.67449, 1.95996))
    picture = calibration(overview, noise)
    assert picture is not None
    assert f"{100 * half:.0f} % of the values were inside the band that should" in picture.words
    assert f"{100 * most:.0f} % inside the band that should hold 95 %" in picture.words


def test_columns_are_those_of_the_space():
    space = bx.Space(
        PARAMETERS,
        fixed=bx.Integer(3, 3),
        grade=bx.Choice(["coarse", "fine"]),
        mesh=bx.Real(0.5, 4, step=0.5, unit="mm"),
        one=bx.Real(2, 2),
        conditions={"mesh": ("grade", ["fine"])},
    )
    strategy = bx.algorithms.integrated_ei(space)
    described = json.loads(json.dumps(describe(strategy)))
    columns = columns_of(described, space.dim, 0)
    assert tuple(column.name for column in columns.x) == space.names
    assert [column.unit or None for column in columns.x] == [
        space.units[name] for name in space.names
    ]
    for x in space.sample(40, seed=1):
        params, cells = space.params(x), columns.cells(x.tolist())
        for name, cell in zip(space.names, cells, strict=True):
            value = params.get(name, NOTHING)
            assert cell == (value if isinstance(value, str) else f"{value:.6g}")
    numbered = columns_of(described, 3, 1)  # of another study, as a broken file may say
    assert [column.name for column in numbered.all] == ["x0", "x1", "x2", "context0"]


def test_a_page_is_of_a_study():
    with pytest.raises(ValueError, match="study must be a Study, got a OptimisticStrategy"):
        report_page(gp_bucb())
