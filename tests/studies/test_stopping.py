"""What ends a run before its last trial: a callback, a time limit, a target."""

import math
from concurrent.futures import ThreadPoolExecutor as Threads
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.exceptions import TrialFailedWarning
from botorch_ext.studies import questions, stopping
from tests.objectives import f
from tests.strategies.sessions import InRounds, RowsInTurn, finite, make, plain

quiet = partial(run, progress=False)


def events(strategy):
    return [plain(event) for event in strategy.events]


def cost(x):
    return -f(x)


# --- callback -------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
def test_a_callback_sees_each_trial_once_it_was_told(minimize):
    strategy, seen = make(finite()), []

    def callback(trial, value):
        assert len(strategy.history.values) == len(seen) + 1
        seen.append((trial.id, trial.x.tolist(), value))
        trial.x.zero_()  # it has one of its own

    objective = cost if minimize else f
    result = quiet(strategy, objective, 5, minimize=minimize, callback=callback)
    assert seen == [
        (id, x.tolist(), y)
        for id, x, y in zip(result.ids, result.X, result.Y.tolist(), strict=True)
    ]
    assert result.stopped_by is None


def test_what_a_callback_sees_of_the_model_is_in_the_sign_of_the_costs(tmp_path):
    seen = []
    study = bx.Study(tmp_path / "lab.db", make(finite()), minimize=True)
    quiet(study, cost, 6, callback=lambda trial, value: seen.append(trial.info))
    shown = [event.trial.info for event in study.events if hasattr(event, "trial")]
    assert seen == shown and any("mean" in info for info in shown)


def test_the_value_of_a_trial_that_was_given_up_is_nan():
    def fails_once(x):
        if torch.equal(x, finite().points[2]):
            raise RuntimeError("no signal")
        return f(x)

    seen = {}
    with pytest.warns(TrialFailedWarning):
        quiet(
            RowsInTurn(finite()),
            fails_once,
            5,
            failure_value=-9.0,
            callback=lambda trial, value: seen.update({trial.id: value}),
        )
    assert [id for id, value in seen.items() if math.isnan(value)] == [2]


@pytest.mark.parametrize("yes", [True, np.True_, np.array([True]), torch.tensor(True)], ids=repr)
@pytest.mark.parametrize("threads", [None, 3])
def test_true_ends_the_run_and_what_is_under_way_is_told(yes, threads):
    strategy, executor = make(finite()), None if threads is None else partial(Threads, threads)
    calls = []

    def callback(trial, value):
        calls.append(trial.id)
        return yes if len(calls) == 4 else None

    options = {"executor": executor, "max_pending": threads or 1}
    result = quiet(strategy, f, 20, callback=callback, **options)
    assert result.stopped_by == "callback"
    assert not strategy.pending
    assert sorted(calls) == sorted(result.ids)
    assert 4 <= len(calls) <= 3 + (threads or 1)
    assert len(quiet(strategy, f, 20).ids) == 20


@pytest.mark.parametrize(
    "other", [1, "stop", [True], np.array([True, True]), torch.ones(2), False, None], ids=repr
)
def test_nothing_else_that_a_callback_returns_ends_it(other):
    assert len(quiet(make(finite()), f, 3, callback=lambda trial, value: other).ids) == 3


def test_what_a_callback_raises_ends_the_run_after_the_trial_was_told():
    strategy, whole = make(finite()), make(finite())
    quiet(whole, f, 6)

    def callback(trial, value):
        if trial.id == 3:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        quiet(strategy, f, 6, callback=callback)
    assert list(strategy.history.values) == [0, 1, 2, 3] and not strategy.pending
    quiet(strategy, f, 6)
    assert events(strategy) == events(whole)


def test_ctrl_c_in_a_callback():
    def callback(trial, value):
        raise KeyboardInterrupt

    result = quiet(make(finite()), f, 6, callback=callback)
    assert result.interrupted and result.ids == [0]


# --- time -----------------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass as a test says."""
    now = SimpleNamespace(seconds=100.0)
    now.monotonic = lambda: now.seconds
    now.sleep = lambda seconds: setattr(now, "seconds", now.seconds + seconds)
    for module in (stopping, questions):
        monkeypatch.setattr(module, "time", now)
    return now


def test_nothing_is_asked_after_the_time_limit(clock):
    strategy = make(finite())

    def objective(x):
        clock.seconds += 4
        return f(x)

    result = quiet(strategy, objective, 9, time_limit=10)
    assert (result.ids, result.stopped_by, result.seconds) == ([0, 1, 2], "time_limit", 12)
    assert not strategy.pending
    assert quiet(strategy, objective, 4, time_limit=1).stopped_by is None  # it was the last trial


def test_trials_from_before_stay_pending_after_the_time_limit(clock):
    strategy = make(finite())
    strategy.ask(3)

    def objective(x):
        clock.seconds += 4
        return f(x)

    result = quiet(strategy, objective, 3, time_limit=1)
    assert result.ids == [0] and strategy.pending == [1, 2]
    assert result.stopped_by == "time_limit"


def test_others_are_not_waited_for_after_the_time_limit(tmp_path, clock):
    path, inner = tmp_path / "lab.db", []

    def objective(x):
        if not inner:  # this trial is under way, and the next round waits for it
            inner.append(None)
            study = bx.Study(path, InRounds(finite()))
            inner[0] = quiet(study, f, 9, time_limit=30)
        return f(x)

    quiet(bx.Study(path, InRounds(finite())), objective, 3)
    assert (inner[0].ids, inner[0].stopped_by) == ([1, 2], "time_limit")
    assert 30 <= inner[0].seconds < 31


# --- target ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
def test_the_run_ends_once_a_value_is_good_enough(minimize):
    objective, sign = (cost, -1) if minimize else (f, 1)
    values = [f(x) for x in finite().points]
    first = next(i for i, value in enumerate(values) if value > max(values[:3]))
    strategy = RowsInTurn(finite())
    options = {"minimize": minimize, "target": sign * values[first]}
    result = quiet(strategy, objective, 50, **options)
    assert len(result.ids) == first + 1
    assert result.stopped_by == "target"
    assert result.best_value == options["target"]
    again = quiet(strategy, objective, 50, **options)  # it is still good enough
    assert again.ids == result.ids and again.stopped_by == "target"


def test_what_was_attached_or_given_at_first_may_be_good_enough(tmp_path):
    study = bx.Study(tmp_path / "lab.db", make(finite()), minimize=True)
    study.attach(finite().points[3], -7.0)
    assert quiet(study, cost, 5, target=-6.0).ids == [0]
    X = finite().points[:1]
    result = bx.optimize(
        cost, finite(), 5, minimize=True, initial=(X, torch.tensor([-7.0]).to(X)), target=-6.0
    )
    assert result.ids == [] and result.stopped_by == "target"


def test_what_is_told_for_a_failure_is_not_good_enough():
    def fails(x):
        raise RuntimeError("no signal")

    with pytest.warns(TrialFailedWarning):
        result = quiet(make(finite()), fails, 2, failure_value=9.0, target=5.0)
    assert result.ids == [0, 1] and result.stopped_by is None


# --- the sign that a strategy was begun with ------------------------------------------------------


def test_a_run_goes_on_in_the_sign_of_the_first():
    strategy, whole = make(finite()), make(finite())
    quiet(whole, cost, 8, minimize=True)
    quiet(strategy, cost, 4, minimize=True)
    result = quiet(strategy, cost, 8)
    assert events(strategy) == events(whole)
    assert result.best_value == min(result.Y.tolist())
    with pytest.raises(ValueError, match="minimize must be True, as when"):
        quiet(strategy, cost, 9, minimize=False)
