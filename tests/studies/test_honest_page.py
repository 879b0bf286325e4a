"""The page and the status: that nothing is claimed which is not so, whatever the numbers are."""

import json
import re
import sys

import pytest
import torch

import botorch_ext as bx
from botorch_ext.reports.contexts import by_context
from botorch_ext.reports.model_numbers import ModelNumbers
from botorch_ext.reports.models_and_rounds import parts
from botorch_ext.reports.overview import read_overview
from botorch_ext.reports.pictures import _draw_values, _overtaken
from botorch_ext.reports.strategy_description import arguments
from botorch_ext.studies import databases, journal
from botorch_ext.studies.databases import Database
from botorch_ext.studies.description import describe
from botorch_ext.studies.journal import Journal
from tests.studies.commands import refused, rows_of, shown
from tests.studies.kept import BOX, at_random, gp_bucb
from tests.studies.pages import drawn_for, made, played, rbf, require_harmless, titles


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def _initial(count, *values):
    return BOX.sample(count, seed=5), torch.tensor(values, dtype=torch.float64)


@pytest.mark.usefixtures("empty_pictures")
def test_data_given_at_the_start_count(path, capsys):
    X, Y = _initial(2, -0.01, -3.0)
    strategy = gp_bucb(initial=(X, Y))
    Journal.begin(Database(path), "study", True, describe(strategy))  # as versions before did
    study = bx.Study(path, strategy)
    for value in (5.0, 4.0):
        study.tell(study.ask(), value)
    place = ", ".join(f"{cell:.6g}" for cell in X[0].tolist())
    assert study.report()["best_observation"] == 0.01
    said = shown(capsys, "status", path)
    assert f"best so far  0.01, of the data given at the start, at ({place})" in said
    assert "best trial   4, trial 1 at (" in said
    text = require_harmless(made(path)).text
    assert "Best so far 0.01 given at the start; smallest is best" in text
    assert "The best value of the trials is 4 , measured in trial 1" in text
    assert "sees the negative of each: numbers in its arguments are in its sign" in text
    study.tell(study.ask(), -2.0)
    assert "best so far  -2, trial 2 at (" in shown(capsys, "status", path)
    assert "Best so far -2 trial 2; smallest is best" in require_harmless(made(path)).text


@pytest.mark.parametrize("minimize", [False, True])
def test_a_value_from_outside_is_never_the_best_so_far(path, minimize):
    plt = pytest.importorskip("matplotlib.pyplot")
    strategy = bx.strategies.RandomSearch(BOX, context_domain=1)
    study, sign = bx.Study(path, strategy, minimize=minimize), -1.0 if minimize else 1.0
    for value, context in ((1.0, 0.0), (3.0, 0.0), (2.0, 1.0)):
        study.attach(BOX.sample(1, seed=3)[0], sign * value, [context])
    study.attach(BOX.upper + 1, sign * 99.0, [0.0], outside=True)
    overview = read_overview(path)
    assert [each.best.value for each in by_context(overview)] == [sign * 3.0, sign * 2.0]
    _, ax = plt.subplots()
    _draw_values(overview, ModelNumbers(), ax)
    (line,) = [each for each in ax.lines if each.get_label() == "best so far"]
    assert line.get_xdata().tolist() == [0, 1, 2, 3]
    assert line.get_ydata().tolist() == [sign * 1.0, sign * 3.0, sign * 3.0, sign * 3.0]
    plt.close("all")


@pytest.mark.usefixtures("empty_pictures")
def test_data_that_are_not_kept_are_named(path, capsys):
    X = BOX.sample(250, seed=5)
    # Of 150 the values are kept, their points are not.
    for name, count in (("150", 150), ("250", 250)):
        strategy = gp_bucb(initial=(X[:count], X[:count].sum(dim=-1, keepdim=True)))
        study = bx.Study(path, strategy, name=name)
        study.tell(study.ask(), 0.5)
    largest = f"{float(X[:150].sum(dim=-1).max()):.6g}"
    status = shown(capsys, "status", path, "--name", "150")
    assert f"best so far  {largest}, of the data given at the start\n" in status
    text = require_harmless(made(path, "--name", "150")).text
    assert f"The best value so far is {largest} , of the data given at the start" in text
    status = shown(capsys, "status", path, "--name", "250")
    assert "best so far  0.5, trial 0" in status and "without the 250 values given at the" in status
    text = require_harmless(made(path, "--name", "250")).text
    assert "The 250 values given at the start are not kept" in text


@pytest.mark.usefixtures("empty_pictures")
def test_a_correction_is_seen_in_the_last_result(path, clock, capsys):
    study = bx.Study(path, at_random())
    study.tell(study.ask(), 4.0)
    clock.now += 7200
    study.correct(0, 3.5)
    last = "4, trial 0, 2026-11-18 11:06:40 UTC, 2 h ago; corrected to 3.5, 2026-11-18 13:06:40 UTC"
    assert f"last result  {last}" in shown(capsys, "status", path)
    text = require_harmless(made(path)).text
    assert "The last result was 4, of trial 0, 2 h before this page was made." in text
    assert "It was corrected to 3.5 at 2026-11-18 13:06:40." in text


@pytest.mark.usefixtures("empty_pictures")
def test_values_of_contexts_are_not_said_to_compare(path, capsys):
    strategy = bx.strategies.RandomSearch(BOX, context_domain=bx.Box([[0.0], [9.0]]))
    study = bx.Study(path, strategy)
    for context in (1.0, 8.0):
        study.tell(study.ask(context=[context]), context)
    assert "in context (8), over all contexts" in shown(capsys, "status", path)
    text = require_harmless(made(path)).text
    assert "largest is best, over all contexts" in text
    assert "the best of all may only have had the best context" in text
    plane = drawn_for(path)["Where trials were asked"]
    assert "not all values can be compared" in plane.words


@pytest.mark.parametrize("extreme", [sys.float_info.max, 1e308])
def test_the_largest_numbers_are_drawn(path, capsys, extreme):
    box = bx.Box([[-1.0, 0.0], [1.0, 1.0]])
    study = bx.Study(path, bx.strategies.RandomSearch(box))
    for value in (-extreme, 0.5, extreme):
        study.tell(study.ask(), value)
    body = json.dumps(
        {"event": "asked", "id": 0, "x": [extreme, -extreme], "context": None, "info": {}}
    )
    new = journal.Journal.begin(databases.Database(path), "far", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, [body, f'{{"event":"told","id":0,"value":{extreme}}}'])
    for name, num in (("study", 5), ("far", 4)):
        parsed = require_harmless(made(path, "--name", name))
        assert len(titles(parsed)) == num and "Numbers beyond 1e+300" in parsed.text
        assert f"{extreme:.6g}" in parsed.text
    assert capsys.readouterr().err == ""


def test_a_picture_that_cannot_be_drawn_leaves_the_page(path, monkeypatch):
    played(bx.Study(path, gp_bucb()), 6)

    def fails(*_):
        raise ValueError("no room <b>")

    monkeypatch.setattr("botorch_ext.reports.asked_points._draw_plane", fails)
    parsed = require_harmless(made(path))
    assert "This picture could not be drawn: no room <b>." in parsed.text
    assert len(titles(parsed)) == 4 and len(parsed.table("trial", "state")) == 6


def test_feedback_within_one_ask_has_no_order(path, clock):
    study = bx.Study(path, at_random())
    first, second = study.ask(2)
    clock.now += 1
    study.tell(second, 0.5)
    clock.now += 1
    study.tell(first, 0.5)
    assert _overtaken(read_overview(path)) == 0


def test_axes_are_those_of_the_domain(path):
    box = bx.Box([[1e-5, 0.0], [1.0, 20.0]], log=[0], categories={1: [0, 7, 20]})
    study = bx.Study(path, bx.strategies.RandomSearch(box))
    for _ in range(30):
        study.tell(study.ask(), 0.5)
    shown = drawn_for(path)
    for title in ("Where trials were asked", "Values against each coordinate"):
        picture = shown[title]
        assert ">0.001</text>" in picture.svg and ">7</text>" in picture.svg
        assert ">10</text>" not in picture.svg


def test_strategies_that_one_plays_are_known_by_what_sets_them_apart(path):
    numbers = {"noise_variance": 0.01, "rkhs_bound": 1.0, "noise_std": 0.1, "horizon": 20}
    levels = [0.1, 0.3, 0.01]
    strategy = bx.algorithms.regret_balancing(BOX, rbf(), misspecifications=levels, **numbers)
    study = bx.Study(path, strategy)
    for _ in range(6):
        study.tell(study.ask(), 0.5)
    [part] = parts(read_overview(path))
    names = [f"misspecification={level}" for level in (0.3, 0.1, 0.01)]
    assert [member.name for member in part.members] == names
    parsed = require_harmless(made(path))
    bases = dict(arguments(read_overview(path).description))["bases"]
    assert bases in parsed.text
    assert bases.count("RBFKernel") == 1
    assert bases.endswith(
        "they differ in {misspecification=0.3, seed=0}; {misspecification=0.1, seed=1}; "
        "{misspecification=0.01, seed=2}"
    )
    assert "chosen by regret_balancing , made with" in parsed.text


@pytest.mark.parametrize("change", [{"x": [{"not finite": "inf"}]}, {"context": [1e999]}])
def test_places_that_are_nowhere_are_refused(path, change, capsys):
    body = {"event": "asked", "id": 0, "x": [1.0], "context": [1.0], "info": {}} | change
    new = journal.Journal.begin(databases.Database(path), "odd", False, {})
    with new.writing() as connection:
        text = json.dumps(body).replace("Infinity", '{"not finite":"inf"}')
        new.append(connection, new.start, [text])
    message = refused(capsys, "status", path)
    assert "cannot be read" in message or "does not fit those before" in message


def test_descriptions_of_others(path, capsys):
    huge = 10**400
    strategy = {
        "class": "A" * 10_000,
        "B" * 10_000: 1.0,
        "domain": {"log": [huge, "x", None], "categories": {"0": [huge], "1": ["a"], "2": {}}},
        "context_domain": {"domain": 3},
        "initial": [{"values": [[huge]]}, {"values": [huge]}],
        "bases": [{"initial": [{"shape": ["many"]}, 3]}, 7, {}],
        "bounds": [{}, {"misspecification": huge}],
        "models": {"names": ["m"] * 300_000, "models": []},
    }
    description = {"strategy": strategy, "made_by": ["f"], "versions": {"v" * 999: "1"}}
    bodies = []
    for id in range(3):
        info = {"plan": {"volume": huge}, "round": id, "base": id, "model": id}
        record = {"event": "asked", "id": id, "x": [1.0, 2.0], "context": None, "info": info}
        bodies += [json.dumps(record), f'{{"event":"told","id":{id},"value":1.0}}']
    new = journal.Journal.begin(databases.Database(path), "n" * 10_000, False, description)
    with new.writing() as connection:
        new.append(connection, new.start, bodies)
    text = made(path)
    require_harmless(text)
    for letter in "ABnv":
        assert letter * 201 not in text
    assert len(re.sub(r"<svg.*?</svg>", "", text, flags=re.DOTALL)) < 60_000
    assert "strategy" in shown(capsys, "status", path)


def test_cells_are_one_cell_and_no_formula(path, capsys):
    texts = ["a;=HYPERLINK(1)", "\uff1d1+1", " =1+1", "\uff0b1", "\uff0d1", "\uff201"]
    info = {f"k;=1{i}": text for i, text in enumerate(texts)} | {"mean": 0.0}
    body = {"event": "asked", "id": 0, "x": [1.0], "context": None, "info": info}
    new = journal.Journal.begin(databases.Database(path), "lab", True, {})
    with new.writing() as connection:
        new.append(connection, new.start, [json.dumps(body)])
    text = shown(capsys, "trials", path, "--csv")
    assert all(f'"info_k;=1{i}"' in text for i in range(6)) and '"a;=HYPERLINK(1)"' in text
    row = rows_of(text)[0]
    assert [row[f"info_k;=1{i}"] for i in range(1, 6)] == [f"'{text}" for text in texts[1:]]
    assert row["info_mean"] == "0.0"
