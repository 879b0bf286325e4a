"""Breadthwise exploration is the fold of its events, and refuses those that are not its own."""

import math
import warnings

import pytest
import torch

from botorch_ext import algorithms
from botorch_ext.exceptions import CellLimitWarning, WaitingForObservations
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Asked
from tests.strategies.fixed_design.breadthwise_sessions import (
    HORIZON,
    LAMBDA,
    ON_LINE,
    ON_PLANE,
    both,
    play_promptly,
    points,
    state,
)
from tests.strategies.sessions import plain


def test_of_two_decisions_within_rounding_the_recorded_one_counts():
    # The observations of level 2 are chosen so that one of its four cells lies on the threshold.
    def played_with(value, **options):
        strategy = ON_LINE.make(**options)
        for _ in range(2):
            strategy.ask()
        strategy.tell(0, 0.0)
        strategy.tell(1, 0.0)
        for trial in strategy.ask(4):
            cell = trial.info["cell"]
            strategy.tell(trial.id, [1.2, -1.0, value, 0.9][cell])
        return strategy

    def rows(strategy):
        return strategy.levels[2].kept.nonzero().squeeze(-1).tolist()

    def margin(value):
        strategy = played_with(value)
        level, w = strategy.levels[2], strategy.width(7, strategy._design)
        mean, std = level.mean, level.std
        return float((mean + w * std)[2] + level.slack - (mean - w * std).max())

    low, high = margin(-1.0), margin(1.0)
    value = -1.0 - 2.0 * low / (high - low)  # where a straight line is 0
    assert abs(margin(value)) < 1e-12
    for delta, expected in ((0.1, [0, 2, 3]), (-0.1, [0, 3])):
        strategy = played_with(value + delta)
        strategy.ask()
        assert rows(strategy) == expected
    # What another machine may have decided, each way.
    for nearby in (value + 1e-9, value - 1e-9):
        decided, other = played_with(nearby), played_with(value)
        other.replay([Asked(decided.ask())])
        assert rows(other) == rows(decided) == ([0, 2, 3] if nearby > value else [0, 3])
        assert other.levels[3].num_cells == 2 * len(rows(decided))
        assert torch.equal(other.ask().x, decided.ask().x)
        decided, other = (played_with(v, max_cells=5) for v in (nearby, value))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CellLimitWarning)
            trial = decided.ask()
            other.replay([Asked(trial)])
        assert trial.info["opening"].get("crowded") == (6 if nearby > value else None)
        assert other.ask().info == decided.ask().info


def opening(change):
    """Changes what was kept, as recorded by the trial that opens a level."""

    def changed(events, first):
        record = events[first].trial.info["opening"]
        record["kept"] = change(record["kept"])

    return changed


def info(**changed):
    """Changes the info of the second trial of the level."""

    def change(events, first):
        events[next_asked(events, first)].trial.info.update(changed)

    return change


def next_asked(events, first):
    return next(i for i, e in enumerate(events) if i > first and isinstance(e, Asked))


def without(name):
    def change(events, first):
        del events[first].trial.info[name]

    return change


UNREAD = "info of trial .* must be what BreadthwiseExploration records, got"
# What is wrong with the events: a level opens at events[first], after some cells were dropped.
WRONG = {
    "no opening": (without("opening"), "info of trial 6 must have an active cell of level 2, got"),
    "no record": (info(opening=3), UNREAD),
    "rows of text": (opening(lambda kept: ["all"]), "kept must be rows of .* cells, got 'all'"),
    "no row": (opening(lambda kept: [[]]), r"kept must be rows of .* cells, got \[\]"),
    "a negative row": (opening(lambda kept: [[-1, *kept[0]]]), "kept must be rows of .* cells"),
    "a row that is not there": (opening(lambda kept: [[*kept[0], 99]]), "kept must be rows of"),
    "a row beyond all integers": (
        opening(lambda kept: [[*kept[0], 2**70]]),
        "kept must be rows of",
    ),
    "no cell": (without("cell"), UNREAD),
    "cell of text": (info(cell="1"), "cell in the info of trial 7 must be a whole number, got '1'"),
    "a dropped cell": (info(cell=-1), "info of trial .* must have an active cell .*got cell -1"),
    "a cell beyond all integers": (info(cell=2**70), "cell in the info of trial 7 must be from"),
}


def drops(event):
    """Whether a level is entered for which cells were dropped."""
    return isinstance(event, Asked) and any(event.trial.info.get("opening", {}).get("kept", []))


@pytest.fixture(scope="module")
def right():
    """A strategy that has just dropped cells."""
    played = ON_LINE.make()
    while not played.events or not drops(played.events[-2]):
        play_promptly(played, ON_LINE.problem(), 1)
    play_promptly(played, ON_LINE.problem(), 3)
    return played, state(played)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_replay_is_refused_as_a_whole(right, wrong):
    change, message = WRONG[wrong]
    played, expected = right
    first = next(i for i, event in enumerate(played.events) if drops(event))
    events = list(played.events)
    change(events, first)
    for done in (0, 3, first - 1):  # onto a fresh strategy, and onto one that goes on
        fresh = ON_LINE.make()
        fresh.replay(played.events[:done])
        before = state(fresh)
        with pytest.raises(ValueError, match=message):
            fresh.replay(events[done:])
        assert state(fresh) == before
        fresh.replay(played.events[done:])
        assert state(fresh) == expected


@both
def test_events_of_another_method_or_horizon_are_refused(case):
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.02}
    for method, more in (("gp_ucb", {}), ("bpe", {"horizon": HORIZON})):
        other = getattr(algorithms, method)(case.box, case.kernel(), **numbers, **more)
        other.ask(2)
        with pytest.raises(ValueError, match="trial 0 must"):
            case.make().replay(other.events)
    longer = case.but(horizon=2 * HORIZON).make()
    play_promptly(longer, case.problem(), 2 * HORIZON)
    shorter = case.make()
    with pytest.raises(ValueError, match=r"(of trial|id must be less than the horizon of 60)"):
        shorter.replay(longer.events)
    assert shorter.events == ()


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.CellLimitWarning")
def test_what_was_put_off_is_replayed():
    case = ON_PLANE.but(strategy={"max_cells": 20}, horizon=200)
    played = case.make()
    play_promptly(played, case.problem(), 150)
    events = played.events
    crowded = [
        i
        for i, event in enumerate(events)
        if isinstance(event, Asked) and "crowded" in event.trial.info.get("opening", {})
    ]
    assert len(crowded) >= 3
    fresh = case.make()
    fresh.replay(events)
    assert state(fresh) == state(played)
    assert fresh.report()["warnings"] == played.report()["warnings"]
    assert fresh.ask().info == played.ask().info


def test_what_was_about_to_be_refined_is_forgotten_where_the_record_did_not():
    def played_with(width):
        strategy = ON_LINE.make(width=width)
        strategy.tell(strategy.ask().id, 0.0)
        for trial in strategy.ask(2):
            strategy.tell(trial.id, 0.3 * trial.id)
        return strategy

    # Width * std of level 1 is V_h but for rounding.
    level = played_with(10.0).levels[1]
    width = float(level.slack / level.std.max())
    here, elsewhere = played_with(width * (1 - 1e-9)), played_with(width * (1 + 1e-9))
    with pytest.raises(WaitingForObservations):
        here.ask(50)
    trial = elsewhere.ask()
    assert trial.info["level"] == 1
    here.replay([Asked(trial)])
    here.tell(trial.id, -5.0)
    opened = here.ask()
    assert opened.info["level"] > 1
    assert here.levels[2].first == opened.id
    fresh = ON_LINE.make(width=width * (1 - 1e-9))
    fresh.replay(here.events)
    assert state(fresh) == state(here)


def kept_by_definition(strategy, depth):
    """Which cells of a level may hold the maximum by its observations, one posterior for them."""
    level = strategy.levels[depth]
    model = KernelGP(strategy.model.kernel, strategy.model.noise_variance)
    for trial in strategy.history.trials:
        if trial.info["level"] == depth and trial.id in strategy.history.values:
            value = strategy.history.values[trial.id]
            model.add(trial.x[None], trial.x.new_tensor([value]))
    mean, std = model.mean_and_std(level.centers)
    return mean + level.width * std + level.slack >= (mean - level.width * std).max()


def asked_at(strategy, depth):
    return {t.info["cell"] for t in strategy.history.trials if t.info["level"] == depth}


@pytest.mark.parametrize(("first", "right"), [(50.0, 0.2), (0.2, 50.0), (-50.0, 1.1)])
def test_cells_are_dropped_by_right_values_alone(first, right):
    strategy, told_right = ON_LINE.make(), ON_LINE.make()
    for own, value in ((strategy, first), (told_right, right)):
        for trial in own.ask(2):
            own.tell(trial.id, 0.0)
        for trial in own.ask(4):
            own.tell(trial.id, [value, -1.0, 0.8, 0.9][trial.info["cell"]])
        for number in range(12):
            trial = own.ask()
            if number == 5:
                own.abandon(trial.id)
            else:
                own.tell(trial.id, 0.1 * math.sin(7.0 * number))
    (wrong,) = (t.id for t in strategy.history.trials[2:6] if t.info["cell"] == 0)
    asked = points(strategy)
    dropped = strategy.levels[2].kept
    assert not torch.equal(dropped, told_right.levels[2].kept)
    strategy.correct(wrong, right)
    assert torch.equal(points(strategy), asked)
    assert torch.equal(strategy.levels[2].kept, told_right.levels[2].kept)
    assert strategy.levels[2].threshold == told_right.levels[2].threshold
    num_evaluations = 0
    for depth, level in enumerate(strategy.levels):
        if depth:
            before = strategy.levels[depth - 1]
            active = set(before.children_of(before.kept).tolist()) | asked_at(strategy, depth)
            assert level.codes.tolist() == sorted(active)
        if level.refinement is not None:
            assert torch.equal(level.kept, kept_by_definition(strategy, depth))
        num_evaluations += level.num_evaluations
    assert num_evaluations == len(strategy.history.values)
    # As one that starts from the events, also in what it asks from here.
    again = ON_LINE.make()
    again.replay(strategy.events)
    for _ in range(25):
        trials = strategy.ask(), again.ask()
        assert plain(Asked(trials[0])) == plain(Asked(trials[1]))
        for own in (strategy, again):
            own.tell(trials[0].id, 0.3 - 0.1 * float(trials[0].x - 4.0) ** 2)
    assert state(again) == state(strategy)


def test_the_maximum_comes_back_into_the_tree():
    strategy, problem = ON_LINE.make(), ON_LINE.problem()
    X = torch.linspace(2.0, 5.0, 2000, dtype=torch.float64)[:, None]
    top = X[problem(X).argmax()]

    def is_active(level):
        inside = (level.lower <= top) & (top <= level.upper)
        return bool(inside.all(dim=-1).any())

    play_promptly(strategy, problem, 6)
    far = max(strategy.history.trials, key=lambda trial: float((trial.x - top).abs()))
    right = strategy.history.values[far.id]
    strategy.correct(far.id, 40.0)
    play_promptly(strategy, problem, 20)
    assert not is_active(strategy.levels[-1])
    strategy.correct(far.id, right)
    assert is_active(strategy.levels[-1])
    play_promptly(strategy, problem, HORIZON - 26)
    assert is_active(strategy.levels[-1])
    assert float(problem(top[None]) - problem(strategy.best()[0][None])) < 0.05


def test_more_cells_than_there_may_be_come_back_as_the_most_hopeful():
    strategy = ON_LINE.make(max_cells=4)
    for trial in strategy.ask(2):
        strategy.tell(trial.id, 0.0)
    for trial in strategy.ask(4):
        strategy.tell(trial.id, [50.0, 0.7, 0.8, 0.9][trial.info["cell"]])
    trial = strategy.ask()
    assert trial.info["level"] == 3
    with pytest.warns(CellLimitWarning, match="more than 4 cells of a level can hold the maximum"):
        strategy.correct(
            next(t.id for t in strategy.history.trials[2:6] if t.info["cell"] == 0), 0.1
        )
    assert strategy.levels[2].kept.tolist() == [False, False, True, True]
    assert strategy.levels[3].codes.tolist() == sorted({4, 5, 6, 7, trial.info["cell"]})
    again = ON_LINE.make(max_cells=4)
    with pytest.warns(CellLimitWarning):
        again.replay(strategy.events)
    assert state(again) == state(strategy)
