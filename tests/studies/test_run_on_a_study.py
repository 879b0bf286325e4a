"""`run` on a study that is kept in a file: processes that die, others that tell, and its sign."""

import os
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.exceptions import ObjectiveError, TrialFailedWarning, UntoldValueWarning
from botorch_ext.strategies import Abandoned, Asked, Told
from tests.objectives import f
from tests.strategies.sessions import finite, make, plain

quiet = partial(run, progress=False)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "lab.db"


def opened(place, **more):
    return bx.Study(place, make(finite(), num_initial=2), **more)


def kinds(study, kind):
    return [
        event.trial.id if kind is Asked else event.id
        for event in study.events
        if isinstance(event, kind)
    ]


def test_a_study_is_run_as_its_strategy_is(place):
    study, alone = opened(place), make(finite(), num_initial=2)
    kept, result = quiet(study, f, 7), quiet(alone, f, 7)
    assert [plain(event) for event in study.events] == [plain(event) for event in alone.events]
    assert kept.ids == result.ids
    assert torch.equal(kept.X, result.X)
    assert kept.best_value == result.best_value
    assert torch.equal(kept.best_x, result.best_x)
    assert len(quiet(opened(place), f, 9).ids) == 9  # a total, also for the next process


def test_attached_results_are_none_of_the_trials_that_are_run(place, capsys):
    study = opened(place)
    points = study.strategy.domain.points
    most = max(map(float, map(f, points))) + 0.5
    study.attach(points[5], 0.3)
    quiet(study, f, 3)
    study.attach(points[2], most)
    result = run(opened(place), f, 6)
    assert kinds(study, Asked) == [1, 2, 3, 5, 6, 7]
    assert kinds(study, Told) == [1, 2, 3, 5, 6, 7]
    assert result.ids == list(range(8))
    assert torch.equal(result.best_x, points[2])
    assert result.best_value == most
    assert "6/6 " in capsys.readouterr().err  # the bar counts as the run does
    assert quiet(opened(place), f, 6).ids == result.ids  # there is nothing left to do


def test_the_context_of_a_trial_has_the_number_of_the_ask(place):
    domain = bx.FiniteSet([[2.0], [3.0], [5.0]])
    strategy = bx.strategies.RandomSearch(domain, context_domain=1)
    study = bx.Study(place, strategy)
    study.attach([3.0], 0.5, context=[7.0])
    contexts = torch.tensor([[0.5], [1.5], [2.5]], dtype=torch.float64)
    result = quiet(study, lambda x, z: float(x + z), 3, contexts=contexts)
    assert result.contexts.tolist() == [[7.0], [0.5], [1.5], [2.5]]


def killed_in(place, call, workers):
    """A process that runs a study and is killed in the given call of its objective."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        torch.set_num_threads(1)
        calls = []

        def objective(x):
            calls.append(x)
            if len(calls) == call:
                time.sleep(0.05)  # so that what the other workers have is told
                os.kill(os.getpid(), signal.SIGKILL)
            if len(calls) > call:
                time.sleep(60)  # under way when it dies
            return f(x)

        executor = None if workers == 1 else partial(ThreadPoolExecutor, workers)
        quiet(opened(place), objective, 12, executor=executor, max_pending=workers)
    finally:
        os._exit(1)


@pytest.mark.parametrize("workers", [1, 3])
def test_what_was_under_way_is_evaluated_again_and_what_was_told_is_not(place, workers):
    assert killed_in(place, 6, workers) == signal.SIGKILL
    assert killed_in(place, 3, workers) == signal.SIGKILL
    study = opened(place)
    told, pending = kinds(study, Told), study.pending
    assert 1 <= len(pending) <= workers
    seen = []

    def objective(x):
        seen.append(x.tolist())
        return f(x)

    result = quiet(study, objective, 12)
    assert sorted(result.ids) == list(range(12))
    assert len(seen) == 12 - len(told)
    trials = study.strategy.history.trials
    assert seen[: len(pending)] == [trials[id].x.tolist() for id in pending]
    assert kinds(study, Told)[: len(told)] == told
    assert sorted(kinds(study, Told)) == sorted(kinds(study, Asked)) == list(range(12))
    if workers == 1:  # the same study as if nothing had happened
        whole = make(finite(), num_initial=2)
        quiet(whole, f, 12)
        assert [plain(event) for event in study.events] == [plain(event) for event in whole.events]


def test_the_sign_is_that_of_the_study(place):
    study, mirrored = opened(place, minimize=True), make(finite(), num_initial=2)
    result = quiet(study, lambda x: -f(x), 7)
    quiet(mirrored, f, 7)
    assert result.Y.tolist() == [-f(x) for x in result.X]
    assert result.best_value == min(result.Y.tolist())
    assert [e.value for e in study.events if isinstance(e, Told)] == result.Y.tolist()
    assert [plain(event) for event in study.strategy.events] == [
        plain(event) for event in mirrored.events
    ]
    assert len(quiet(study, lambda x: -f(x), 8, minimize=True).ids) == 8
    plus = opened(place, name="other")
    with pytest.raises(ValueError, match="minimize must be that of the study, False, got True"):
        quiet(plus, f, 3, minimize=True)
    assert plus.events == ()


@pytest.mark.parametrize("minimize", [False, True])
def test_trials_that_fail_are_abandoned_as_failed_or_told(place, minimize):
    study = opened(place, minimize=minimize)

    def objective(x):
        if len(study.strategy.history.trials) == 3:
            raise RuntimeError("broken")
        return f(x)

    with pytest.warns(TrialFailedWarning, match="trial 2"):
        result = quiet(study, objective, 5)
    assert [failure.id for failure in result.failures] == [2]
    assert Abandoned(2, failed=True) in study.events
    other = opened(place, name="told", minimize=minimize)

    def fails_at_first(x):
        if len(other.strategy.history.trials) == 1:
            raise RuntimeError("broken")
        return f(x)

    with pytest.warns(TrialFailedWarning, match="trial 0"):
        result = quiet(other, fails_at_first, 3, failure_value=-9.0)
    assert Told(0, -9.0) in other.events
    assert result.Y[0] == -9.0
    assert result.best_value == (min if minimize else max)(result.Y[1:].tolist())


def test_what_someone_else_tells_meanwhile_stands(place):
    study, other = opened(place), opened(place)

    def objective(x):
        trials = other.strategy.history.trials
        if len(trials) == 3:
            other.tell(2, 0.125)
        if len(trials) == 5:
            other.abandon(4)
        if len(trials) == 6:
            other.tell(5, 0.25)
            raise RuntimeError("and it fails here")
        return f(x)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = quiet(study, objective, 7)
    categories = [warning.category for warning in caught]
    assert categories == [UntoldValueWarning, UntoldValueWarning, TrialFailedWarning]
    values = dict(zip(result.ids, result.Y.tolist(), strict=True))
    assert sorted(values) == [0, 1, 2, 3, 5, 6]
    assert values[2] == 0.125
    assert values[5] == 0.25
    assert study.pending == []


def test_what_is_read_of_a_study_stays_as_it_was(place):
    study = opened(place)
    result, before = quiet(study, f, 3), study.strategy
    quiet(result.strategy, f, 5)
    assert len(study.events) == 6
    quiet(study, f, 4)
    assert len(before.events) == 6
    assert len(result.strategy.events) == 10
    assert [plain(event) for event in study.strategy.events] == [
        plain(event) for event in result.strategy.events[:8]
    ]


def test_a_broken_objective_leaves_a_study_that_goes_on(place):
    with pytest.raises(ObjectiveError):
        quiet(opened(place), lambda x: None, 5)
    study = opened(place)
    assert study.pending == [0]
    assert sorted(quiet(study, f, 5).ids) == list(range(5))


def test_asks_of_a_study_have_one_thread_too(place, monkeypatch):
    seen, before = [], torch.get_num_threads()
    next_trial = bx.OptimisticStrategy.next_trial

    def noting(self, choices):
        seen.append(torch.get_num_threads())
        return next_trial(self, choices)

    monkeypatch.setattr(bx.OptimisticStrategy, "next_trial", noting)
    torch.set_num_threads(3)
    try:
        study = opened(place)
        quiet(study, f, 3)
        study.ask()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert seen == [1] * 4


def test_neither_a_strategy_nor_a_study():
    with pytest.raises(ValueError, match="strategy must be a Strategy or a Study, got 3"):
        quiet(3, f, 5)
