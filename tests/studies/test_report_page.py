"""The page of a study: what is on it."""

import random

import pytest

import botorch_ext as bx
from benchmarks.studies.objectives import value_at
from botorch_ext.reports.model_numbers import ModelNumbers
from botorch_ext.reports.models_and_rounds import parts
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.page import page
from botorch_ext.reports.pictures import _overtaken
from botorch_ext.studies import journal
from tests.studies.kept import BOX, at_random, gp_bucb
from tests.studies.pages import (
    Parsed,
    drawn_for,
    made,
    played,
    rbf,
    require_harmless,
    six_digits,
    titles,
)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def test_every_trial_is_on_the_page(path):
    study = played(bx.Study(path, gp_bucb(), name="yeast"), 20)
    study.abandon(study.pending[0])
    study.attach([0.5, 2.5], 0.75)
    study.correct(study.strategy.history.attached[0], 0.5)
    study.correct(study.strategy.history.attached[0], 0.25)
    parsed = require_harmless(made(path))
    history = study.strategy.history
    rows = parsed.table("trial", "state")
    assert len(rows) == len(history.trials) == 21
    for row, trial in zip(rows, history.trials, strict=True):
        id = trial.id
        state = "told" if id in history.values else "pending"
        state = "abandoned" if id in history.abandoned else state
        state = "failed" if id in history.failed else state
        state = "attached, corrected" if id == 20 else state
        value = six_digits(history.values[id]) if id in history.values else [""]
        assert row[:5] == [str(id), state, *six_digits(*trial.x.tolist()), *value]
        assert (row[5] == "") == (id == 20) and (row[6] == "") == (state == "pending")
    pending = parsed.table("trial", "at")
    assert [int(row[0]) for row in pending] == study.pending
    corrected = parsed.table("trial", "was")
    assert [row[:3] for row in corrected] == [["20", "0.75", "0.5"], ["20", "0.5", "0.25"]]
    best = max(history.values, key=lambda id: history.values[id])
    assert f"Best so far {history.values[best]:.6g} trial {best}; largest is best" in parsed.text
    assert parsed.having("tr").count({"class": "best"}) == 1
    assert (
        "Somebody added 1 result that the study had not asked for: trial 20 (0.25)" in parsed.text
    )
    assert "width 2" in parsed.text and "MaternKernel(" in parsed.text
    assert titles(parsed) == [
        "Values, and the best so far",
        "Predicted against measured",
        "Where trials were asked",
        "Values against each coordinate",
        "All parameters together",
        "When trials were asked and told",
    ]


def test_each_observation_is_a_mark(path):
    study = played(bx.Study(path, gp_bucb(), minimize=True), 20)
    shown = drawn_for(path)
    values, feedback, plane, coordinates = (
        shown[title]
        for title in (
            "Values",
            "When trials were asked and told",
            "Where trials were asked",
            "Values against each coordinate",
        )
    )
    history = study.strategy.history
    told, failed, pending = len(history.values), len(history.failed), len(study.pending)
    assert told and failed and pending

    def marks(picture, color):
        return picture.svg.lower().count(f'style="fill: {color.lower()}')

    # One more in the legend; one in each panel.
    blue, red, orange = "#0072B2", "#D55E00", "#E69F00"
    for picture, panels, legend in ((values, 1, 1), (coordinates, 2, 0)):
        assert [marks(picture, color) for color in (blue, red, orange)] == [
            panels * count + legend for count in (told, failed, pending)
        ]
    assert marks(feedback, blue) == told and marks(feedback, orange) == pending
    assert [marks(plane, color) for color in (red, orange)] == [failed + 1, pending + 1]
    assert f"{min(-value for value in history.values.values()):.6g}" in values.words
    assert all("currentColor" in picture.svg for picture in (values, feedback, plane))
    assert not any("#010203" in picture.svg for picture in (values, feedback, plane))


def test_late_feedback_is_said(path, monkeypatch):
    study = bx.Study(path, at_random())
    rng, clock = random.Random(3), [1_795_000_000.0]
    monkeypatch.setattr(journal, "time", type("", (), {"time": staticmethod(lambda: clock[0])}))
    trials = []
    for _ in range(4):
        trials += study.ask(3)
        clock[0] += 0.01
    order = rng.sample(trials, 10)
    waits = [3600.0 * (i + 1) + 1 for i in range(10)]
    for trial, wait in zip(order, waits, strict=True):
        clock[0] = 1_795_000_000.0 + wait
        study.tell(trial, 0.5)
    overview = read_overview(path)
    ends = {trial.id: wait for trial, wait in zip(order, waits, strict=True)}
    # Those of one ask have no order.
    expected = sum(
        any(later // 3 > id // 3 and ends[later] < ends[id] for later in ends) for id in ends
    )
    assert _overtaken(overview) == expected > 0
    parsed = Parsed(page(overview, clock[0] + 7200, ModelNumbers()))
    assert f"{expected} values came after that of a trial which was asked later" in parsed.text
    assert "Half of the values came within 5 h, the slowest took 10 h" in parsed.text
    assert "Pending 2 oldest for 12 h" in parsed.text
    assert "2 h before this page was made" in parsed.text


def test_models_have_rows(path):
    models = bx.CandidateModels.lengthscales(rbf(), [0.2, 0.6, 2.0], 0.01)
    strategy = bx.algorithms.he_gp_ucb(BOX, models, rkhs_bound=0.5, noise_std=0.03, delta=0.1)
    study = played(bx.Study(path, strategy), 14)
    [part] = parts(read_overview(path))
    trials = study.strategy.history.trials
    assert [member.name for member in part.members] == list(models.names)
    for model, member in enumerate(part.members):
        assert member.ids == [trial.id for trial in trials if trial.info["model"] == model]
    parsed = require_harmless(made(path))
    assert titles(parsed)[-1] == "Which model each trial was asked for"
    assert f"{models.names[0]} ({len(part.members[0].ids)})" in parsed.text


def test_one_model_has_none(path):
    played(bx.Study(path, gp_bucb()), 5)
    assert parts(read_overview(path)) == []


def test_rounds_and_what_came_too_late(path):
    numbers = {"rkhs_bound": 0.3, "noise_std": 0.03, "delta": 0.1, "noise_variance": 0.01}
    candidates = bx.FiniteSet(BOX.sample(30, seed=1))
    strategy = bx.algorithms.bpe_delay(
        candidates, rbf(), horizon=40, delay=bx.delays.Poisson(1), **numbers
    )
    study = played(bx.Study(path, strategy), 36, seed=2)
    [part] = parts(read_overview(path))
    rounds = study.strategy.rounds
    assert len(part.stages) == len(rounds) > 1
    too_late = [len(round.told_too_late(study.strategy.history)) for round in rounds]
    assert [stage.num_late for stage in part.stages] == too_late and sum(too_late) > 0
    assert [stage.share for stage in part.stages] == [round.choice.volume for round in rounds]
    study.correct(0, -0.5)
    assert [stage.num_late for stage in parts(read_overview(path))[0].stages] == too_late
    parsed = require_harmless(made(path))
    rows = parsed.table("stage", "began")
    assert [row[0] for row in rows] == [f"round {round.number}" for round in rounds]
    assert [int(row[4]) for row in rows] == too_late
    assert rows[0][5] == "100 %"


def test_levels_of_cells_and_of_insurance(path):
    kernel, box = rbf(3.0), bx.Box([[0.0], [1.0]])
    numbers = {"rkhs_bound": 1.0, "noise_std": 0.02, "noise_variance": 1e-3, "horizon": 60}
    study = bx.Study(path, bx.algorithms.breadthwise_exploration(box, kernel, **numbers), name="a")
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, value_at(trial.x))
    [part] = parts(read_overview(path, "a"))
    assert [stage.name for stage in part.stages][:2] == ["level 0", "level 1"]
    assert "Levels" in require_harmless(made(path, "--name", "a")).text
    numbers = {"rkhs_bound": 0.5, "noise_std": 0.03, "noise_variance": 0.01, "delta": 0.1}
    strategy = bx.algorithms.insured_ucb(bx.FiniteSet(BOX.sample(30, seed=0)), rbf(), **numbers)
    played(bx.Study(path, strategy, name="b"), 12, failing=0.0)
    overview = read_overview(path, "b")
    level, *_ = parts(overview)
    refuted = [story for story in overview.stories if "refuted" in story.info]
    assert refuted and level.stages == []
    assert f"Refuted before trial {refuted[0].id}: level 0" in level.words
    require_harmless(made(path, "--name", "b"))


def test_contexts_and_many_coordinates(path):
    box = bx.Box([[0.0] * 15, [1.0] * 15])
    strategy = bx.strategies.RandomSearch(box, context_domain=bx.Box([[0.0] * 15, [1.0] * 15]))
    study = bx.Study(path, strategy)
    for i in range(3):
        study.tell(study.ask(context=[i / 3] * 15), -0.5 * i)
    parsed = require_harmless(made(path))
    assert "The first 12 of 30 coordinates are shown" in parsed.text
    assert "The first 24 of 30 coordinates are shown" in parsed.text
    assert "Trials had different contexts" in parsed.text
    head, *rows = parsed.tables[-1]
    assert len(rows) == 3 and head[2] == "at" and rows[0][2].count(",") == 24


def test_a_study_without_trials_or_values(path):
    bx.Study(path, gp_bucb(), minimize=True)
    parsed = require_harmless(made(path))
    assert "no trial has been asked of it yet" in parsed.text and "smallest" in parsed.text
    assert "MaternKernel(" in parsed.text and parsed.having("figure") == []
    bx.Study(path, gp_bucb()).ask(2)
    parsed = require_harmless(made(path))
    assert "No value has come yet" in parsed.text and "No result yet" in parsed.text
    without_values = [
        "Where trials were asked",
        "Values against each coordinate",
        "When trials were asked and told",
    ]
    assert titles(parsed) == without_values
    study = bx.Study(path, gp_bucb())
    study.abandon(0)
    study.abandon(1, failed=True)
    parsed = require_harmless(made(path))
    assert "none is waited for" in parsed.text and titles(parsed) == without_values
    assert "Crosses are failed. Squares are abandoned." in parsed.text


def test_only_attached_results(path):
    bx.Study(path, gp_bucb()).attach([0.5, 2.5], 0.25)
    parsed = require_harmless(made(path))
    assert "Best so far 0.25" in parsed.text and "0 asked; 1 attached" in parsed.text
