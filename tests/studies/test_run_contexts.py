"""`run` with contexts and changing actions: every evaluation gets the context of its trial."""

import math
import re
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future
from concurrent.futures import ThreadPoolExecutor as Threads
from functools import partial

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import run
from botorch_ext.domains import Box
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import TrialFailedWarning
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Asked, OptimisticStrategy
from botorch_ext.strategies.random_search import RandomSearch
from tests.strategies.sessions import InRounds, InRoundsByContext, finite, make, plain

quiet = partial(run, progress=False)
CONTEXTS = Box([[10.0], [24.0]])
HOURS = CONTEXTS.sample(12, seed=4)


def g(x, z):
    a, b = x.tolist()
    (hour,) = z.tolist()
    return math.sin(2 * a + hour / 4) * math.cos(b) + 0.1 * hour


def contextual(domain=None, **options):
    domain = finite() if domain is None else domain
    kernel = RBFKernel(ard_num_dims=3).double()
    kernel.lengthscale = torch.tensor([0.9, 0.5, 5.0], dtype=torch.float64)
    model = KernelGP(kernel, 0.02)
    return OptimisticStrategy(domain, model, 2.0, seed=5, context_domain=1, **options)


def some_actions(num=12):
    return [finite().sample(1 + t % 5, seed=100 + t) for t in range(num)]


def events(strategy):
    return [plain(event) for event in strategy.events]


class Seen:
    """`g`, and what it was called with; raises in the calls whose number is given."""

    def __init__(self, *failing, seconds=0.0):
        self.failing, self.seconds = failing, seconds
        self.calls, self.lock = [], threading.Lock()

    def __call__(self, x, z):
        with self.lock:
            number = len(self.calls)
            self.calls.append((x.tolist(), z.tolist()))
        time.sleep(self.seconds)
        if number in self.failing:
            raise RuntimeError(f"call {number}")
        return g(x, z)


def asked(strategy):
    return [(trial.x.tolist(), trial.context.tolist()) for trial in strategy.history.trials]


SOURCES = {
    "known ahead": lambda: HOURS,
    "a list": lambda: HOURS.tolist(),
    "an array": lambda: HOURS.numpy(),
    "a function": lambda: lambda number: HOURS[number],
    "an iterator": lambda: iter(HOURS),
    "a generator": lambda: (hour for hour in HOURS.tolist()),
}


@pytest.mark.parametrize("changing", [False, True], ids=["all actions", "changing actions"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_serial_study_is_the_loop_of_ask_and_tell(source, changing):
    by_hand, strategy, seen = contextual(), contextual(), Seen()
    actions = some_actions() if changing else None
    for number in range(8):
        there = None if actions is None else actions[number]
        trial = by_hand.ask(context=HOURS[number], actions=there)
        by_hand.tell(trial.id, g(trial.x, trial.context))
    given = iter(actions) if changing and "iterator" in str(source()) else actions
    result = quiet(strategy, seen, 8, contexts=source(), actions=given)
    assert events(strategy) == events(by_hand)
    assert seen.calls == asked(strategy)
    assert torch.equal(result.contexts, HOURS[:8])
    assert result.X.shape == (8, 2)
    assert result.Y.tolist() == [g(*pair) for pair in zip(result.X, result.contexts, strict=True)]
    top = result.Y.tolist().index(result.best_value)
    assert result.best_value == max(result.Y.tolist())
    assert torch.equal(result.best_x, result.X[top])
    assert torch.equal(result.best_context, HOURS[top])


def test_a_function_is_called_just_before_each_ask():
    strategy, order = contextual(), []

    def hour_of(number):
        order.append(("context", number, len(strategy.history.values)))
        return HOURS[number]

    def objective(x, z):
        order.append(("objective", len(strategy.history.values)))
        return g(x, z)

    quiet(strategy, objective, 3, contexts=hour_of)
    one_by_one = [[("context", n, n), ("objective", n)] for n in range(3)]
    assert order == [step for pair in one_by_one for step in pair]


@pytest.mark.parametrize("source", [HOURS, lambda number: HOURS[number]], ids=["ahead", "function"])
def test_the_same_call_continues_a_study(source):
    strategy, at_once = contextual(), contextual()
    quiet(at_once, g, 9, contexts=source)
    quiet(strategy, g, 4, contexts=source)
    result = quiet(strategy, g, 9, contexts=source)
    assert events(strategy) == events(at_once)
    assert torch.equal(result.contexts, HOURS[:9])


def test_a_trial_pending_from_before_keeps_its_context():
    strategy, seen, numbers = contextual(), Seen(), []
    for hour in (11.5, 12.5, 13.5):
        strategy.ask(context=[hour])
    strategy.tell(1, 0.5)

    def hour_of(number):
        numbers.append(number)
        return HOURS[number]

    result = quiet(strategy, seen, 5, contexts=hour_of)
    assert numbers == [3, 4]
    assert [z for _, z in seen.calls[:2]] == [[11.5], [13.5]]
    assert result.ids == [1, 0, 2, 3, 4]
    assert result.contexts.flatten().tolist() == [12.5, 11.5, 13.5, *HOURS[3:5, 0].tolist()]


@pytest.mark.parametrize("num_threads", [1, 4])
def test_on_threads_every_evaluation_gets_the_context_of_its_trial(num_threads):
    strategy, seen = contextual(), Seen(seconds=0.002)
    with Threads(num_threads) as pool:
        result = quiet(
            strategy,
            seen,
            12,
            executor=pool,
            max_pending=num_threads,
            contexts=iter(HOURS),
            actions=some_actions(),
        )
    assert sorted(seen.calls) == sorted(asked(strategy))
    assert torch.equal(torch.stack([t.context for t in strategy.history.trials]), HOURS)
    for trial, points in zip(strategy.history.trials, some_actions(), strict=True):
        assert torch.equal(trial.x, points[trial.info["action"]])
    assert torch.equal(result.contexts, HOURS[result.ids])
    assert result.Y.tolist() == [g(*pair) for pair in zip(result.X, result.contexts, strict=True)]


def test_a_failing_trial_is_tried_again_in_its_context():
    strategy, smooth, seen = contextual(), contextual(), Seen(2, 5)
    result = quiet(strategy, seen, 6, contexts=HOURS, max_retries=1)
    assert seen.calls[2] == seen.calls[3]
    assert seen.calls[5] == seen.calls[6]
    assert len(seen.calls) == 8
    assert result.failures == []
    quiet(smooth, g, 6, contexts=HOURS)
    assert events(strategy) == events(smooth)


def test_a_trial_that_is_given_up_is_reported_with_its_context():
    strategy, seen = contextual(), Seen(1, 2)
    message = r"trial 1 at \[.*\] in context " + re.escape(str(HOURS[1].tolist()))
    with pytest.warns(TrialFailedWarning, match=message):
        result = quiet(strategy, seen, 4, contexts=HOURS, max_retries=1)
    (failure,) = result.failures
    assert (failure.x.tolist(), failure.context.tolist()) == seen.calls[1] == seen.calls[2]
    assert result.ids == [0, 2, 3]
    assert torch.equal(result.contexts, HOURS[[0, 2, 3]])


class Mortal(Executor):
    """Evaluates at once; dies of the third evaluation of its life."""

    lives = 0

    def __init__(self):
        Mortal.lives += 1
        self.left = 2 if Mortal.lives == 1 else 99

    def submit(self, fn, /, *args, **kwargs):
        future, self.left = Future(), self.left - 1
        if self.left < 0:
            future.set_exception(BrokenExecutor("died"))
        else:
            future.set_result(fn(*args))
        return future


def test_a_trial_whose_worker_died_is_evaluated_in_its_context():
    Mortal.lives = 0
    strategy, seen = contextual(), Seen()
    result = quiet(strategy, seen, 5, contexts=HOURS, executor=Mortal, max_retries=1)
    assert Mortal.lives == 2
    assert seen.calls == asked(strategy)
    assert torch.equal(result.contexts, HOURS[:5])


def test_the_objective_may_change_its_arguments():
    spoilt, clean = contextual(), contextual()

    def objective(x, z):
        value = g(x, z)
        x.fill_(99.0)
        z.fill_(-99.0)
        return value

    quiet(spoilt, objective, 5, contexts=HOURS)
    quiet(clean, g, 5, contexts=HOURS)
    assert events(spoilt) == events(clean)


@pytest.mark.parametrize("name", ["contexts", "actions"])
def test_the_end_of_an_iterator_ends_the_study(name):
    streams = {"contexts": HOURS, "actions": some_actions()}
    streams[name] = iter(streams[name][:5])
    strategy = contextual()
    result = quiet(strategy, g, 9, **streams)
    assert result.ids == list(range(5))
    assert strategy.pending == []
    assert not result.interrupted


@pytest.mark.parametrize("threads", [None, 5])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_strategy_that_waits_misses_no_context(source, threads):
    strategy = InRoundsByContext(finite(), CONTEXTS)
    executor = None if threads is None else partial(Threads, threads)
    result = quiet(strategy, g, 11, contexts=source(), executor=executor, max_pending=threads or 1)
    assert sorted(result.ids) == list(range(11))
    assert torch.equal(torch.stack([t.context for t in strategy.history.trials]), HOURS[:11])


def test_ctrl_c_in_the_function_of_contexts_returns_what_has_come():
    strategy = contextual()

    def hour_of(number):
        if number == 3:
            raise KeyboardInterrupt
        return HOURS[number]

    result = quiet(strategy, g, 9, contexts=hour_of)
    assert result.interrupted
    assert result.ids == [0, 1, 2]
    assert strategy.pending == []


def test_an_error_in_the_function_of_contexts_is_raised_and_leaves_the_study_whole():
    strategy, whole = contextual(), contextual()

    def hour_of(number):
        if number == 3:
            raise OSError("no clock")
        return HOURS[number]

    with pytest.raises(OSError, match="no clock"):
        quiet(strategy, g, 9, contexts=hour_of)
    assert len(strategy.history.trials) == 3
    quiet(strategy, g, 9, contexts=HOURS)
    quiet(whole, g, 9, contexts=HOURS)
    assert events(strategy) == events(whole)


def test_actions_alone_change_what_there_is_to_choose_from():
    strategy = make(finite())
    actions = some_actions()
    result = quiet(strategy, lambda x: float(x.sum()), 12, actions=actions)
    assert result.contexts is None
    assert result.best_context is None
    for trial, points in zip(strategy.history.trials, actions, strict=True):
        assert torch.equal(trial.x, points[trial.info["action"]])


def test_a_study_without_a_value_has_no_context_of_the_best():
    strategy = contextual()
    with pytest.warns(TrialFailedWarning):
        result = quiet(strategy, Seen(0, 1), 1, contexts=HOURS)
    assert (result.best_x, result.best_value, result.best_context) == (None, None, None)


def test_minimizing_counts_the_least_value_as_the_best():
    result = quiet(contextual(), g, 6, contexts=HOURS, minimize=True)
    top = result.Y.tolist().index(min(result.Y.tolist()))
    assert torch.equal(result.best_context, HOURS[top])


@pytest.mark.parametrize(
    ("strategy", "options", "message"),
    [
        (contextual, {}, "contexts must be given for a strategy with contexts, got None"),
        (lambda: make(finite()), {"contexts": HOURS}, "contexts must be None for .* got a Tensor"),
        (contextual, {"contexts": HOURS[:5]}, "contexts must have at least 6 entries, .* got 5"),
        (contextual, {"contexts": HOURS[:, 0]}, r"contexts\[0\] must have shape"),
        (contextual, {"contexts": [[11.0]] * 5 + [[math.nan]]}, r"contexts\[5\] must be finite"),
        (
            lambda: RandomSearch(finite(), context_domain=CONTEXTS),
            {"contexts": [[11.0]] * 3 + [[25.0]] * 3},
            r"contexts\[3\] must lie in the box",
        ),
        (
            contextual,
            {"contexts": lambda number: [1.0, 2.0]},
            r"contexts of step 0 must have shape \(1,\)",
        ),
        (contextual, {"contexts": iter([[math.inf]])}, "contexts of step 0 must be finite"),
        (contextual, {"contexts": HOURS, "actions": some_actions(5)}, "actions must have at least"),
        (
            contextual,
            {"contexts": HOURS, "actions": lambda number: finite().points[:0]},
            "actions of step 0 must hold at least one point, got none",
        ),
        (
            lambda: InRounds(finite()),
            {"actions": some_actions()},
            "actions must be None for InRounds",
        ),
    ],
)
def test_streams_that_do_not_fit_are_refused_before_anything_is_asked(strategy, options, message):
    strategy = strategy()
    with pytest.raises(ValueError, match=message):
        quiet(strategy, lambda x, z=None: 0.0, 6, **options)
    assert strategy.events == ()


def test_contexts_of_several_sizes_are_refused_where_nobody_knew_the_size():
    kernel = RBFKernel().double()  # takes any number of columns
    strategy = OptimisticStrategy(
        finite(), KernelGP(kernel, 0.1), 2.0, context_domain=ContextSpace()
    )
    with pytest.raises(ValueError, match=r"contexts\[1\] must have shape \(2,\), got \(1,\)"):
        quiet(strategy, g, 2, contexts=[[1.0, 2.0], [1.0]])
    assert not any(isinstance(event, Asked) for event in strategy.events)
