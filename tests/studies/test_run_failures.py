"""Objectives that fail somewhere, that always fail, and that could never work."""

import math
import warnings
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from gpytorch.kernels import MaternKernel

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.exceptions import ObjectiveError, RepeatedFailures, TrialFailedWarning
from tests.objectives import f
from tests.strategies.sessions import RowsInTurn, finite, make

quiet = partial(run, progress=False)


class ThreadsOfNone(Executor):
    """Evaluates nothing: its futures are answered by the test."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, /, *args):
        self.futures.append(Future())
        return self.futures[-1]


# What four trials come to at once: the first one ends the run.
ENDS = {
    KeyboardInterrupt: [KeyboardInterrupt, math.nan, 0.5, 0.25],
    ObjectiveError: ["no number", math.nan, 0.5, 0.25],
}


class Broken:
    """Raises from its ``working``-th call on, with one message or with one for each point."""

    def __init__(self, working=0, each=False, until=math.inf):
        self.working, self.each, self.until, self.calls = working, each, until, 0

    def __call__(self, x):
        self.calls += 1
        if self.working < self.calls <= self.until:
            raise RuntimeError(f"no such file: {x.tolist()}" if self.each else "no such file")
        return f(x)


# --- what could never work ------------------------------------------------------------------------


def test_an_objective_that_cannot_be_called_is_never_asked_for():
    strategy = make(finite())
    with pytest.raises(ObjectiveError, match=r"objective must be a function, got 3\.0"):
        quiet(strategy, 3.0, 20)
    assert strategy.events == ()


@pytest.mark.parametrize("returned", [None, "0.5", torch.zeros(2), [1.0], 1j], ids=repr)
@pytest.mark.parametrize("threads", [None, 3])
def test_an_objective_that_returns_no_number_ends_the_run_at_once(returned, threads):
    strategy, executor = make(finite()), None
    if threads is not None:
        executor = partial(Threads, threads)
    calls = []

    def objective(x):
        calls.append(x)
        return f(x) if len(calls) <= 4 else returned

    with pytest.raises(ObjectiveError, match="objective must return one number, got"):
        quiet(strategy, objective, 50, executor=executor, max_pending=threads or 1)
    assert len(calls) <= 4 + (threads or 1)
    assert len(strategy.history.values) == 4  # what was told stays
    assert not strategy.history.abandoned
    ids = strategy.pending
    assert sorted(quiet(strategy, f, 8).ids) == list(range(8))
    assert set(ids) <= set(strategy.history.values)


def test_an_objective_that_cannot_be_pickled_is_never_asked_for():
    strategy = make(finite())
    with pytest.raises(
        ObjectiveError, match="objective must be picklable to reach other processes"
    ):
        quiet(strategy, lambda x: 0.0, 20, executor=partial(ProcessPoolExecutor, 1), max_pending=2)
    with (
        ProcessPoolExecutor(1) as pool,
        pytest.raises(ObjectiveError, match="as a function of a module"),
    ):
        quiet(strategy, lambda x: 0.0, 20, executor=pool)
    assert strategy.events == ()


# --- what always fails ----------------------------------------------------------------------------


@pytest.mark.parametrize("failure_value", [None, -2.0])
@pytest.mark.parametrize(("max_pending", "most"), [(1, 3), (2, 3), (5, 5), (64, 10)])
def test_an_objective_that_never_works_ends_the_run(max_pending, most, failure_value):
    strategy, broken = RowsInTurn(finite()), Broken()
    executor = None if max_pending == 1 else partial(Threads, 2)
    with (
        pytest.warns(TrialFailedWarning),
        pytest.raises(RepeatedFailures, match="no such file") as stop,
    ):
        quiet(
            strategy,
            broken,
            200,
            executor=executor,
            max_pending=max_pending,
            failure_value=failure_value,
        )
    given_up = len(strategy.history.abandoned) + len(strategy.history.values)
    assert given_up == most
    assert isinstance(stop.value.__cause__, RuntimeError)
    assert ("first" in str(stop.value)) == (max_pending < 10)
    assert f"{most} trials" in str(stop.value)
    assert strategy.history.values == (
        {} if failure_value is None else dict.fromkeys(strategy.history.values, failure_value)
    )


def test_each_trial_has_its_retries_before_it_counts():
    broken = Broken()
    with pytest.warns(TrialFailedWarning), pytest.raises(RepeatedFailures):
        quiet(RowsInTurn(finite()), broken, 200, max_retries=3)
    assert broken.calls == 3 * 4


@pytest.mark.parametrize("most", [1, 4, 10])
def test_so_many_failures_in_a_row_end_the_run_and_what_was_told_stays(most):
    strategy, broken = RowsInTurn(finite()), Broken(working=6)
    with (
        pytest.warns(TrialFailedWarning),
        pytest.raises(RepeatedFailures, match=f"^{most} trials? failed in a row .*no such file"),
    ):
        quiet(strategy, broken, 200, max_retries=0, max_consecutive_failures=most)
    assert sorted(strategy.history.values) == list(range(6))
    assert sorted(strategy.history.abandoned) == list(range(6, 6 + most))
    assert len(quiet(strategy, f, 30).ids) == 30 - most  # and the study goes on


def test_failures_of_different_kinds_at_first_are_not_taken_for_one():
    strategy = RowsInTurn(finite())
    with pytest.warns(TrialFailedWarning):
        result = quiet(strategy, Broken(each=True, until=9), 20, max_retries=0)
    assert len(result.failures) == 9
    assert len(result.ids) == 11


def test_none_never_ends_it():
    with pytest.warns(TrialFailedWarning):
        result = quiet(
            RowsInTurn(finite()), Broken(), 25, max_retries=0, max_consecutive_failures=None
        )
    assert len(result.failures) == 25


@pytest.mark.parametrize("most", [0, -1, 2.5, "ten"])
def test_an_impossible_number_of_failures(most):
    strategy = make(finite())
    with pytest.raises(ValueError, match="max_consecutive_failures must be"):
        quiet(strategy, f, 5, max_consecutive_failures=most)
    assert strategy.events == ()


def test_values_that_came_before_the_end_are_told():
    """Four are under way when one of them returns no number; two have come by then."""

    class FourAtOnce(Threads):
        def __init__(self):
            super().__init__(1)
            self.futures = []

        def submit(self, fn, /, *args):
            self.futures.append((Future(), fn, args))
            if len(self.futures) == 4:
                for i in (3, 0, 1):
                    future, fn, args = self.futures[i]
                    future.set_result(None if i == 0 else fn(*args))
            return self.futures[-1][0]

    strategy = make(finite())
    with pytest.raises(ObjectiveError):
        quiet(strategy, f, 9, executor=FourAtOnce, max_pending=4)
    assert sorted(strategy.history.values) == [1, 3]
    assert strategy.pending == [0, 2]


# --- a region that fails --------------------------------------------------------------------------


def fails_on_the_right(x):
    if x[0] > 0.5:
        raise RuntimeError("no yeast grew")
    return float(torch.sin(5 * x[0]) + x[1] * (1 - x[1]))


def optimistic(box):
    kernel = MaternKernel(nu=2.5)
    kernel.lengthscale = 0.4
    return bx.algorithms.gp_bucb(box, kernel, noise_variance=0.01, width=2.0)


def practical(box):
    return bx.algorithms.integrated_ei(box, num_initial=4)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("method", [optimistic, practical])
def test_a_region_that_fails_does_not_eat_the_study(method, workers):
    strategy = method(bx.Box([[0.0, 0.0], [1.0, 1.0]]))
    executor = None if workers == 1 else partial(Threads, workers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrialFailedWarning)
        result = quiet(
            strategy,
            fails_on_the_right,
            20,
            max_retries=0,
            executor=executor,
            max_pending=workers,
        )
    assert len(result.ids) > 10
    failed = torch.stack([failure.x for failure in result.failures])
    assert len(failed.unique(dim=0)) == len(failed)  # each at a place of its own
    assert result.best_value > 1.1  # at most sin(5 * 0.314) + 0.25 = 1.25


@pytest.mark.parametrize("ends", [KeyboardInterrupt, ObjectiveError])
def test_what_is_told_when_a_run_ends_is_all_that_came(ends):
    """Results that wait, one of them not finite, when another ends the run."""

    class All(ThreadsOfNone):
        def submit(self, fn, /, *args):
            future = super().submit(fn, *args)
            if len(self.futures) == 4:
                for waiting, value in zip(self.futures, ENDS[ends], strict=True):
                    if isinstance(value, type):
                        waiting.set_exception(value())
                    else:
                        waiting.set_result(value)
            return future

    strategy, raised = make(finite()), nullcontext()
    if ends is ObjectiveError:
        raised = pytest.raises(ObjectiveError, match="must return one number")
    with raised, pytest.warns(TrialFailedWarning, match=r"trial 1 .* failed 1 time .* got nan"):
        quiet(strategy, f, 9, executor=All(), max_pending=4)
    assert strategy.history.values == {2: 0.5, 3: 0.25}
    assert strategy.history.failed == {1} and strategy.pending == [0]
