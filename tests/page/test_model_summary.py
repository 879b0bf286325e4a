"""What a page says of the model is what the study says, and the most important comes first."""

import math

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.page.model_summary import LEVELS, summary_at, summary_of
from botorch_ext.page.overview import read_overview
from botorch_ext.page.page import page
from botorch_ext.page.pictures import pictures
from botorch_ext.page.report_page import report_page
from botorch_ext.strategies import RandomSearch
from tests.helpers import rbf
from tests.page.studies import Parsed
from tests.page.test_pictures import NOW, with_axes

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
    return summary_of(study)


def test_the_recommended_point_the_batch_and_pending_trials(study, model):
    found, gain = study.recommended(), study.expected_gain(2)
    assert LEVELS == (0.025, 0.25, 0.75, 0.975)
    assert model.recommended.x.tolist() == found.x.tolist()
    assert model.gain.x.tolist() == gain.x.tolist()  # as many points as were asked last
    assert list(model.pending) == study.pending and model.missing == []
    trials = [study.strategy.history.trials[id] for id in study.pending]
    for points, known in (
        (found.x, [model.at_recommended]),
        (gain.x, model.at_batch),
        (trials, model.pending.values()),
    ):
        at = study.predict(points, levels=LEVELS)
        assert [each.mean for each in known] == pytest.approx(at.mean.tolist())
        for each, quantiles, observed in zip(
            known, at.quantiles.tolist(), at.observation_quantiles.tolist(), strict=True
        ):
            assert (each.quantiles, each.observed) == (quantiles, observed)


def test_the_most_important_parameters_come_first_in_every_picture(study, model, figures):
    total = study.importance().total
    order = total.argsort(descending=True).tolist()
    assert order[:2] == [1, 2]
    found = pictures(read_overview(study._journal.database.name), [], NOW, model)
    drawn = with_axes(found, figures)
    titles = {0: "a", 1: "b (mol/l)", 2: "c", 3: "d"}
    _, axes = drawn["The model around the recommended point"]
    assert [ax.get_xlabel() for ax in axes] == [titles[j] for j in order]
    assert axes[0].get_ylabel() == "cost (€)" and axes[0].get_legend() is None
    x = study.recommended().x.tolist()
    for ax, j in zip(axes, order, strict=True):
        assert ax.lines[-1].get_xdata()[0] == x[j]
    (smooth,) = (ax for ax in axes if ax.get_xlabel() == "a")
    assert [words for words in smooth.get_legend_handles_labels()[1] if "%" in words] == [
        "2.5 % to 97.5 % of f",
        "25 % to 75 % of f",
    ]
    _, (ax,) = drawn["Which parameters matter"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["abcd"[j] for j in order[::-1]]
    _, (ax, _) = drawn["The two parameters that matter most"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("b (mol/l)", "c")
    assert ax.lines[-1].get_xydata().tolist() == [[x[1], x[2]]]
    assert ax.xaxis.get_major_formatter()(0.01) == "0.01"


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


def test_the_probabilities_of_candidate_models_add_up(tmp_path, no_pictures):
    models = bx.CandidateModels.lengthscales(rbf(1.0), [0.1, 0.3, 2.0], 0.01)
    points = bx.FiniteSet([[0.0], [0.4], [1.0]])
    strategy = bx.algorithms.he_gp_ucb(points, models, rkhs_bound=0.5, noise_std=0.1, delta=0.1)
    study = bx.Study(tmp_path / "lab.db", strategy)
    for value in (0.5, -0.5, 0.4):
        study.tell(study.ask(), value)
    evidence = [row["log_marginal_likelihood"] for row in study.report()["models"]]
    weights = [math.exp(each) for each in evidence]
    rows = Parsed(report_page(study)).table("model", "trials", "probability")
    assert [row[0] for row in rows] == strategy.names
    assert [float(row[2].removesuffix(" %")) for row in rows] == pytest.approx(
        [100 * each / sum(weights) for each in weights], rel=1e-3
    )


def test_what_cannot_be_said_is_said_with_its_reason(tmp_path, no_pictures):
    study = bx.Study(tmp_path / "a.db", RandomSearch(SPACE))
    assert summary_of(study).missing == ["The model knows no value yet."]
    study.tell(study.ask(), 0.5)
    assert "The recommended point is not known: " in Parsed(report_page(study)).text
    own = bx.algorithms.gp_bucb(
        bx.Box([(0, 1)]), rbf(0.5), noise_variance=0.01, width=2.0, mean=lambda X: 0 * X[..., 0]
    )
    study = bx.Study(tmp_path / "b.db", own)
    study.tell(study.ask(), 0.5)
    text = Parsed(
        page(read_overview(tmp_path / "b.db"), 0.0, summary_at(tmp_path / "b.db", "study"))
    )
    assert "What the model says is not shown: " in text.text and "open the study" in text.text
    with pytest.raises(ValueError, match="study must be a Study"):
        report_page(own)


@pytest.mark.parametrize(("value", "is_refuted"), [(2.5, True), (0.5, False)])
def test_a_refuted_model_is_said_to_be_refuted(tmp_path, no_pictures, capsys, value, is_refuted):
    points = bx.FiniteSet([[0.0], [0.4], [1.0]])
    strategy = bx.algorithms.gp_ucb(
        points, rbf(0.5), noise_variance=0.01, rkhs_bound=1.0, noise_std=0.1
    )
    study = bx.Study(tmp_path / "lab.db", strategy)
    for _ in range(2):
        study.tell(study.ask(), value)
    assert main(["status", str(tmp_path / "lab.db")]) == 0
    said = "The model was refuted after 1 result: "
    for text in (capsys.readouterr().out, report_page(study)):
        assert (said in text) == is_refuted
        assert ("larger rkhs_bound, a shorter lengthscale" in text) == is_refuted
