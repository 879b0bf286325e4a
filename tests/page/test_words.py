"""The words and tables of a page: nothing is claimed which is not so, whatever the numbers are."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.page.page import page
from tests.helpers import rbf, without_package
from tests.page.studies import HOSTILE, begun, require_harmless, seen
from tests.page.test_pictures import NOW, SUMMARY
from tests.studies.commands import refused, shown, with_events

BOX = bx.Box([(-1.0, 1.0), (2.0, 5.0)])


def made(path, *options):
    """The page as a command writes it, from events alone."""
    output = path.with_suffix(".html")
    assert main(["report", str(path), "--without-model", *options, "-o", str(output)]) == 0
    return output.read_text(encoding="utf-8")


def asked(id, x=(1.0,), **info):
    return {"event": "asked", "id": id, "x": list(x), "context": None, "info": info}


@pytest.mark.parametrize("minimize", [False, True])
def test_every_trial_is_in_the_tables(path, no_pictures, minimize):
    study = begun(path, minimize)
    study.correct(3, 5.5)
    study.correct(3, 6.5)
    parsed = require_harmless(made(path))
    rows = parsed.table("trial", "state")
    states = ["told", "told", "told", "attached, corrected", "failed", "abandoned", "pending"]
    assert [row[1] for row in rows] == states and [row[0] for row in rows] == list("0123456")
    history = study.strategy.history
    for row, trial in zip(rows, history.trials, strict=True):
        cells = [each if isinstance(each, str) else f"{each:.6g}" for each in trial.params.values()]
        value = study.to_pandas()["yield"][trial.id]
        assert row[2:7] == [*cells, f"{value:.6g}" if trial.id in history.values else ""]
        assert (row[7] == "") == (trial.id == 3) and (row[8] == "") == (trial.id == 6)
    assert [row[0] for row in parsed.table("trial", "at")] == ["6"]
    assert [row[:3] for row in parsed.table("trial", "was")] == [
        ["3", "5", "5.5"],
        ["3", "5.5", "6.5"],
    ]
    best = ("-1 % trial 1", "smallest") if minimize else ("7.5 % trial 2", "largest")
    assert f"Best so far {best[0]}; {best[1]} is best" in parsed.text
    assert parsed.having("tr").count({"class": "best"}) == 1
    assert "had not asked for: trial 3 (6.5)" in parsed.text
    assert (
        "6 asked: 3 told, 1 pending, 1 failed, 1 abandoned; 1 attached; 1 corrected" in parsed.text
    )


@pytest.mark.parametrize("minimize", [False, True])
def test_what_the_model_says_is_said_in_its_numbers(path, no_pictures, minimize):
    begun(path, minimize)
    parsed = require_harmless(page(seen(path), NOW, SUMMARY))
    for words in (
        "Predicted best 4 % 95 %: 0 to 8",
        "Next 2 trials may gain 1.5 % expected; noise of a measurement 0.3 %",
        "With a probability of 62 % no point that was measured is better",
        "On average the best of those is better by 0.5 %",
        "with a probability of 40 % one of them is better",
        "a gain like this can be seen",
        "The model recommends temperature 50 °C, catalyst 0.01 mol/l, equivalents 3, solvent dmso",
        f"expected to {'lower' if minimize else 'raise'} the best yield by 1.5 %",
    ):
        assert words in parsed.text
    assert parsed.table("trial", "at")[0][4] == "4"
    why = [row[-1] for row in parsed.table("at", "predicted yield (%)")]
    best = "the model predicts the best value here"
    if minimize:
        assert why == [best, "what is learned here tells about other points"]
    else:
        assert why == ["may reach 8 %; 4 % is predicted at the recommended point", best]
    itself, measured = parsed.table("", "predicted yield (%)")
    assert itself[1:] == ["4", "2 to 6", "0 to 8"] and measured[1:] == ["4", "1 to 7", "-1 to 9"]


def test_data_given_at_the_start_count(path, capsys, no_pictures):
    X, Y = BOX.sample(2, seed=5), torch.tensor([2.0, -3.0], dtype=torch.float64)
    options = {"noise_variance": 0.01, "width": 2.0}
    strategy = bx.algorithms.gp_bucb(BOX, rbf(0.6, 1.3), initial=(X, Y), **options)
    study = bx.Study(path, strategy)
    study.attach(BOX.sample(1, seed=1)[0], 1.0)
    said = shown(capsys, "status", path)
    place = ", ".join(f"{cell:.6g}" for cell in X[0].tolist())
    assert f"best so far  2, of the data given at the start, at ({place})" in said
    assert "best trial   1, trial 0 at (" in said
    text = require_harmless(made(path)).text
    assert "Best so far 2 given at the start; largest is best" in text
    assert "The best value of the trials is 1 , measured in trial 0" in text
    study.attach(BOX.sample(1, seed=2)[0], 4.0)
    assert "best so far  4, trial 1 at (" in shown(capsys, "status", path)
    assert "Best so far 4 trial 1" in require_harmless(made(path)).text


def test_values_of_contexts_and_from_outside_are_not_said_to_compare(path, capsys, no_pictures):
    study = bx.Study(path, bx.strategies.RandomSearch(BOX, context_domain=bx.Box([(0, 9)])))
    for context in (1.0, 8.0):
        study.tell(study.ask(context=[context]), context)
    study.attach(BOX.upper + 1, 99.0, [1.0], outside=True)
    assert "best so far  8, trial 1" in (said := shown(capsys, "status", path))
    assert "in context (8), over all contexts" in said
    text = require_harmless(made(path)).text
    assert "largest is best, over all contexts" in text
    assert "the best of all may only have had the best context" in text


def test_a_strategy_that_cannot_be_made_again_is_named(path, capsys, no_pictures):
    box = bx.Box([[0.0], [1.0]])
    given = {"noise_variance": 0.01, "width": 1.0, "mean": lambda X: X[..., 0]}
    study = bx.Study(path, bx.algorithms.gp_bucb(box, rbf(1.0), **given))
    for x in box.sample(3, seed=1):
        study.attach(x, float(x[0]))
    message = "cannot make its strategy again, mean of its strategy is the function "
    for command in ("ask", "recommended"):
        assert message in refused(capsys, command, path)
    file = path.with_suffix(".html")
    shown(capsys, "report", path, "-o", file)
    assert message in file.read_text()


def test_empty_studies_and_those_without_values(path, figures):
    study = bx.Study(path, bx.strategies.RandomSearch(BOX), minimize=True)
    parsed = require_harmless(made(path))
    assert "no trial has been asked of it yet" in parsed.text and "smallest" in parsed.text
    study.ask(2)
    parsed = require_harmless(made(path))
    assert "No value has come yet" in parsed.text and "No result yet" in parsed.text
    assert len(parsed.titles) == 3
    study.abandon(0)
    study.abandon(1, failed=True)
    parsed = require_harmless(made(path))
    assert "none is waited for" in parsed.text
    assert "Crosses are failed. Squares are abandoned." in parsed.text
    for x in BOX.sample(2, seed=1):
        wrong = study.attach(x, failed=True)
    study.withdraw(wrong)
    counts = "2 asked: 1 failed, 1 abandoned; 1 attached as failed; 1 withdrawn"
    assert counts in require_harmless(made(path)).text
    path.unlink()
    study = bx.Study(path, bx.strategies.RandomSearch(BOX))
    study.attach([0.2, 3.0], failed=True)
    assert "0 asked; 1 attached as failed" in require_harmless(made(path)).text


def test_a_picture_that_cannot_be_drawn_leaves_the_page(path, figures, monkeypatch):
    def fails(figure, *_, **__):
        raise ValueError("no room <b>")

    begun(path)
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", fails)
    parsed = require_harmless(made(path))
    assert "This picture could not be drawn: no room <b>." in parsed.text
    assert parsed.titles == [] and len(parsed.table("trial", "state")) == 7


@pytest.mark.parametrize("drawn", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_hostile_text_is_shown_and_not_obeyed(path, drawn, request):
    """Hostile text in a description, in infos and in names."""
    if not drawn:
        request.getfixturevalue("no_pictures")
    names = [HOSTILE, r"$\frac{", "a & b"]
    models = {"class": HOSTILE, "arguments": {"names": names, "kernels": []}}
    strategy = {"class": HOSTILE, "arguments": {HOSTILE: HOSTILE, "models": models}}
    description = {"versions": {HOSTILE: HOSTILE}, "strategy": strategy}
    bodies = []
    for id in range(4):
        info = {"model": id, "kind": f"{HOSTILE}{id % 2}", "phase": f"$\\frac{{{id % 2}"}
        info |= {"refuted": [{"level": HOSTILE}], "level": id, "fit": {HOSTILE: HOSTILE}}
        bodies += [asked(id, (0.1 * id, 1.0), **info, opening={"volume": HOSTILE})]
        bodies += [{"event": "told", "id": id, "value": 1e300}]
    with_events(path, bodies, description, HOSTILE)
    text = made(path)
    parsed = require_harmless(text)
    assert "<script" not in text and "<img" not in text
    assert parsed.text.count("<script>alert('x')</script>") >= 4


def test_without_matplotlib_or_jinja_it_is_said_what_to_install(path, monkeypatch, capsys):
    begun(path)
    with monkeypatch.context() as patch:
        without_package(patch, "matplotlib")
        parsed = require_harmless(made(path))
    assert "pip install 'botorch-ext[plot]'" in parsed.text and parsed.having("figure") == []
    path.with_suffix(".html").unlink()
    assert capsys.readouterr().out.startswith("wrote ")
    without_package(monkeypatch, "jinja2")
    assert "botorch-ext[studies]" in refused(
        capsys, "report", path, "-o", path.with_suffix(".html")
    )
    assert not path.with_suffix(".html").exists()


@pytest.mark.slow
def test_the_page_of_five_thousand_trials_is_small(path):
    bodies = []
    for id in range(5000):
        x = [((id * (j + 3)) % 997) / 997 for j in range(6)]
        bodies.append(asked(id, x, model=id % 3, mean=x[0], std=x[1]))
        bodies += [{"event": "told", "id": id, "value": x[2]}] if id % 20 else []
    with_events(path, bodies)
    text = made(path)
    assert len(text) < 5_000_000
    parsed = require_harmless(text)
    assert [row[0] for row in parsed.table("trial", "state")] == [str(id) for id in range(5000)]
    assert "open" not in parsed.having("details")[-1]
    assert "The oldest 50 of 250 are shown" in parsed.text


def test_limits_are_where_the_study_stands_and_at_the_recommended_point(path, no_pictures):
    space = bx.Space(a=bx.Real(0, 10), b=bx.Real(0, 1))
    limits = {"impurity": bx.AtMost(5.0, unit="%"), "purity": bx.AtLeast(90.0)}
    strategy = bx.algorithms.integrated_ei(space, outcomes=limits)
    study = bx.Study(path, strategy, objective="yield", unit="%")
    recommended = SimpleNamespace(**vars(SUMMARY.recommended) | {"feasibility": 0.5, "x": [2, 0.5]})
    model = replace(SUMMARY, recommended=recommended, at_batch=[], gain=None)

    def text(model=model):
        return require_harmless(page(seen(path), NOW, model)).text

    study.ask()
    assert "Limit: impurity at most 5 %, kept in 0 of 0 results." in (said := text())
    assert "No value has come yet." in said
    study.attach({"a": 2, "b": 0.5}, 90.0, outcomes={"impurity": 7.8, "purity": 80.0})
    said = text()
    assert "No result is within the limits yet." in said and "No value" not in said
    assert "no point that was measured" not in said and "Best so far" not in said
    assert "It was measured in trial 1." in said
    assert "succeeds within all limits with a probability of 50 %. No point was found" in said
    study.attach({"a": 3, "b": 0.5}, 70.0, outcomes={"impurity": 2.0, "purity": 95.0})
    said = text(
        replace(model, recommended=SimpleNamespace(**vars(recommended) | {"feasibility": 0.95}))
    )
    assert (
        "Limit: impurity at most 5 %, kept in 1 of 2 results; broken by trial 1 (7.8 %). Limit: "
        "purity at least 90, kept in 1 of 2 results; broken by trial 1 (80). All limits are kept "
        "in 1 result."
    ) in said
    assert "The best value so far within the limits is 70 %" in said
    assert "62 % no point that was measured within the limits is better" in said
    assert (
        "succeeds within all limits with a probability of 95 %." in said
        and "No point was found" not in said
    )
