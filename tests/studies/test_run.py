"""`run` in this thread and `optimize`: what is asked, evaluated, told and returned, and what ends
it."""

import math
import re
import signal
from concurrent.futures import ThreadPoolExecutor as Threads
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import (
    ObjectiveError,
    RepeatedFailures,
    TrialFailedWarning,
    WaitingForObservations,
)
from botorch_ext.models import KernelGP
from botorch_ext.models.cholesky import GrowingCholesky
from botorch_ext.strategies import Abandoned, Asked, OptimisticStrategy, RandomSearch, Told
from botorch_ext.studies import questions, stopping
from tests.helpers import rbf
from tests.objectives import f
from tests.strategies.sessions import (
    InRounds,
    InRoundsByContext,
    RowsInTurn,
    Stuck,
    data,
    finite,
    make,
    plain,
    snapshot,
)

quiet = partial(run, progress=False)
CONTEXTS = bx.Box([[10.0], [24.0]])
HOURS = CONTEXTS.sample(12, seed=4)
ACTIONS = [finite().sample(1 + t % 5, seed=100 + t) for t in range(12)]


def cost(x):
    return -f(x)


def g(x, z):
    a, b = x.tolist()
    (hour,) = z.tolist()
    return math.sin(2 * a + hour / 4) * math.cos(b) + 0.1 * hour


def contextual(**options):
    model = KernelGP(rbf(0.9, 0.5, 5.0), 0.02)
    return OptimisticStrategy(finite(), model, 2.0, seed=5, context_domain=1, **options)


def events(strategy):
    return [plain(event) for event in strategy.events]


class Flaky:
    """Raises at the attempts whose number is given, counted from 0."""

    def __init__(self, *failing, of=f):
        self.failing, self.of, self.calls = failing, of, []

    def __call__(self, *given):
        self.calls.append(tuple(each.tolist() for each in given))
        if len(self.calls) - 1 in self.failing:
            raise RuntimeError(f"attempt {len(self.calls) - 1}")
        return self.of(*given)


# --- what is asked and told -----------------------------------------------------------------------


def test_a_run_is_the_loop_of_ask_and_tell_and_the_same_call_goes_on():
    by_hand, strategy, at_once = (make(finite(), num_initial=3) for _ in range(3))
    for _ in range(8):
        trial = by_hand.ask()
        by_hand.tell(trial.id, f(trial.x))
    for total in (3, 8, 8, 2):  # a total, so that nothing is left in the end
        result = quiet(strategy, f, total)
    quiet(at_once, f, 8)
    assert events(strategy) == events(by_hand) == events(at_once)
    assert result.strategy is strategy and result.ids == list(range(8))
    assert torch.equal(result.X, torch.stack([t.x for t in by_hand.history.trials]))
    assert result.Y.tolist() == [f(x) for x in result.X]
    assert result.best_value == max(result.Y.tolist()) == f(result.best_x)
    assert (result.failures, result.interrupted, result.stopped_by) == ([], False, None)
    assert result.contexts is result.best_context is None and result.seconds > 0
    assert "trials: 8 told" in repr(result) and f"best value: {result.best_value:.6g}" in repr(
        result
    )


def test_trials_pending_from_before_are_evaluated_first():
    strategy, flaky = make(finite()), Flaky()
    asked = strategy.ask(3)
    strategy.tell(1, 0.5)
    result = quiet(strategy, flaky, 5)
    assert [x for (x,) in flaky.calls[:2]] == [asked[0].x.tolist(), asked[2].x.tolist()]
    assert result.ids == [1, 0, 2, 3, 4] and result.Y[0] == 0.5  # the told value stands
    late = make(finite())
    late.ask(6)
    assert len(quiet(late, f, 4).ids) == 6  # more than the total are pending


def test_minimize_tells_the_negative_and_goes_on_in_the_sign_of_the_first_run():
    up, down = make(finite(), num_initial=2), make(finite(), num_initial=2)
    maximised = quiet(up, f, 8)
    quiet(down, cost, 4, minimize=True)
    minimised = quiet(down, cost, 8)
    assert events(down) == events(up)
    assert minimised.Y.tolist() == (-maximised.Y).tolist()
    assert minimised.best_value == min(minimised.Y.tolist()) == -maximised.best_value
    assert torch.equal(minimised.best_x, maximised.best_x)
    with pytest.raises(ValueError, match="minimize must be True, as when"):
        quiet(down, cost, 9, minimize=False)


def test_the_objective_may_return_a_tensor_and_change_its_arguments():
    spoilt, clean = contextual(), contextual()

    def objective(x, z):
        value = torch.tensor(g(x, z))
        x.fill_(99.0)
        z.fill_(-99.0)
        return value

    spoilt.ask(context=HOURS[0])  # also where the trial was asked before
    clean.ask(context=HOURS[0])
    quiet(spoilt, objective, 4, contexts=HOURS)
    quiet(clean, lambda x, z: torch.tensor(g(x, z)), 4, contexts=HOURS)
    assert events(spoilt) == events(clean)


@pytest.mark.parametrize("threads", [None, 5])
def test_a_strategy_that_waits_is_asked_again_when_something_was_told(threads):
    strategy, executor = InRounds(finite(), horizon=11), threads and partial(Threads, threads)
    result = quiet(strategy, f, 20, executor=executor, max_pending=threads or 1)
    assert sorted(result.ids) == list(range(11)) and not strategy.pending  # its horizon
    assert not result.interrupted
    pending = 0
    for event in strategy.events:
        if isinstance(event, Asked) and event.trial.id % 3 == 0:
            assert pending == 0
        pending += 1 if isinstance(event, Asked) else -1
    assert sorted(quiet(strategy, f, 20).ids) == list(range(11))


def test_waiting_for_nothing_is_an_error():
    made = []

    def executor():
        made.append(Threads(1))
        return made[-1]

    strategy = Stuck(finite())
    with pytest.raises(WaitingForObservations, match="for ever"):
        quiet(strategy, f, 4, executor=executor, max_pending=2)
    assert strategy.events == ()
    with pytest.raises(RuntimeError, match="after shutdown"):
        made[0].submit(int)


@pytest.mark.parametrize("minimize", [False, True])
def test_the_progress_bar_counts_on_and_shows_the_best_in_the_sign_of_the_objective(
    capsys, minimize
):
    strategy = make(finite())
    quiet(strategy, f, 3, minimize=minimize)
    assert capsys.readouterr().err == ""
    with Threads(4) as pool:
        result = run(strategy, f, 9, minimize=minimize, executor=pool, max_pending=4)
    text = capsys.readouterr().err.replace("\r", "\n")
    counts = [int(n) for n in re.findall(r"(\d+)/9", text)]
    assert counts == sorted(counts) and counts[0] == 3 and counts[-1] == 9
    assert f"best={result.best_value:.6g}, pending=0" in text and "pending=4" in text
    assert result.best_value == (min if minimize else max)(result.Y.tolist())


# --- contexts and actions -------------------------------------------------------------------------

SOURCES = {
    "known ahead": lambda values: values,
    "a function": lambda values: lambda number: values[number],
    "an iterator": iter,
}


@pytest.mark.parametrize("changing", [False, True], ids=["all actions", "changing actions"])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_each_evaluation_has_the_context_and_the_actions_of_its_trial(source, changing):
    by_hand, strategy, flaky = contextual(), contextual(), Flaky(of=g)
    for number in range(6):
        there = ACTIONS[number] if changing else None
        trial = by_hand.ask(context=HOURS[number], actions=there)
        by_hand.tell(trial.id, g(trial.x, trial.context))
    actions = source(ACTIONS) if changing else None
    result = quiet(strategy, flaky, 6, contexts=source(HOURS), actions=actions)
    assert events(strategy) == events(by_hand)
    trials = strategy.history.trials
    assert flaky.calls == [(t.x.tolist(), t.context.tolist()) for t in trials]
    assert torch.equal(result.contexts, HOURS[:6]) and result.X.shape == (6, 2)
    top = result.Y.tolist().index(max(result.Y.tolist()))
    assert result.best_value == result.Y[top]
    assert torch.equal(result.best_x, result.X[top])
    assert torch.equal(result.best_context, HOURS[top])


def test_contexts_belong_to_the_number_of_the_trial():
    """A function is called just before each ask; pending trials keep theirs; a source may be lists
    or arrays."""
    strategy, flaky, order = contextual(), Flaky(of=g), []
    for hour in (11.5, 12.5, 13.5):
        strategy.ask(context=[hour])
    strategy.tell(1, 0.5)

    def hour_of(number):
        order.append((number, len(strategy.history.values)))
        return HOURS[number]

    result = quiet(strategy, flaky, 5, contexts=hour_of)
    assert order == [(3, 3), (4, 4)]
    assert [z for _, z in flaky.calls[:2]] == [[11.5], [13.5]] and result.ids == [1, 0, 2, 3, 4]
    assert result.contexts.flatten().tolist() == [12.5, 11.5, 13.5, *HOURS[3:5, 0].tolist()]
    again, asked = [contextual() for _ in range(3)], []
    for one, contexts in zip(again, (HOURS.tolist(), HOURS.numpy(), HOURS), strict=True):
        quiet(one, g, 2, contexts=contexts)
        asked.append(events(one))
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize("threads", [None, 5])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_a_strategy_that_waits_misses_no_context(source, threads):
    strategy = InRoundsByContext(finite(), CONTEXTS)
    executor = threads and partial(Threads, threads)
    options = {"contexts": source(HOURS), "executor": executor, "max_pending": threads or 1}
    assert sorted(quiet(strategy, g, 11, **options).ids) == list(range(11))
    assert torch.equal(torch.stack([t.context for t in strategy.history.trials]), HOURS[:11])


@pytest.mark.parametrize("name", ["contexts", "actions"])
def test_the_end_of_an_iterator_ends_the_run(name):
    streams = {"contexts": HOURS, "actions": ACTIONS}
    streams[name] = iter(streams[name][:4])
    strategy = contextual()
    result = quiet(strategy, g, 9, **streams)
    assert result.ids == [0, 1, 2, 3] and strategy.pending == [] and not result.interrupted


@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError("no clock")])
def test_what_the_function_of_contexts_raises_leaves_the_strategy_whole(raised):
    strategy, whole = contextual(), contextual()

    def hour_of(number):
        if number == 3:
            raise raised
        return HOURS[number]

    if raised is KeyboardInterrupt:
        result = quiet(strategy, g, 6, contexts=hour_of)
        assert result.interrupted and result.ids == [0, 1, 2]
    else:
        with pytest.raises(OSError, match="no clock"):
            quiet(strategy, g, 6, contexts=hour_of)
    assert len(strategy.history.trials) == 3 and strategy.pending == []
    quiet(strategy, g, 6, contexts=HOURS)
    quiet(whole, g, 6, contexts=HOURS)
    assert events(strategy) == events(whole)


def test_actions_alone_change_what_there_is_to_choose_from():
    strategy = make(finite())
    result = quiet(strategy, lambda x: float(x.sum()), 6, actions=ACTIONS)
    assert result.contexts is result.best_context is None
    for trial, points in zip(strategy.history.trials, ACTIONS, strict=False):
        assert torch.equal(trial.x, points[trial.info["action"]])


@pytest.mark.parametrize(
    ("strategy", "options", "message"),
    [
        (contextual, {}, "contexts must be given"),
        (lambda: make(finite()), {"contexts": HOURS}, "contexts must be None"),
        (contextual, {"contexts": HOURS[:5]}, "contexts must have at least 6 entries, .* got 5"),
        (contextual, {"contexts": HOURS[:, 0]}, r"contexts\[0\] must have shape"),
        (contextual, {"contexts": [[11.0]] * 5 + [[math.nan]]}, r"contexts\[5\] must be finite"),
        (
            lambda: RandomSearch(finite(), context_domain=CONTEXTS),
            {"contexts": [[11.0]] * 3 + [[25.0]] * 3},
            r"contexts\[3\] must lie in the box",
        ),
        (contextual, {"contexts": lambda number: [1.0, 2.0]}, "contexts of step 0 must have shape"),
        (contextual, {"contexts": iter([[math.inf]])}, "contexts of step 0 must be finite"),
        (contextual, {"contexts": 3.0}, "contexts must be values, one for each step"),
        (contextual, {"contexts": HOURS, "actions": ACTIONS[:5]}, "actions must have at least"),
        (
            contextual,
            {"contexts": HOURS, "actions": lambda number: finite().points[:0]},
            "actions of step 0 must hold at least one point, got none",
        ),
        (lambda: InRounds(finite()), {"actions": ACTIONS}, "actions must be None for InRounds"),
        (
            lambda: OptimisticStrategy(
                finite(), KernelGP(rbf(1.0), 0.1), 2.0, context_domain=ContextSpace()
            ),
            {"contexts": [[1.0, 2.0], *[[1.0]] * 5]},
            r"contexts\[1\] must have shape \(2,\), got \(1,\)",
        ),
    ],
)
def test_streams_that_do_not_fit_are_refused_before_anything_is_asked(strategy, options, message):
    strategy = strategy()
    with pytest.raises(ValueError, match=message):
        quiet(strategy, lambda x, z=None: 0.0, 6, **options)
    assert strategy.events == ()


# --- failures -------------------------------------------------------------------------------------


def test_a_failing_evaluation_is_repeated_in_its_context_where_that_is_asked_for():
    flaky, strategy, smooth = Flaky(2, 5, of=g), contextual(), contextual()
    result = quiet(strategy, flaky, 6, max_retries=1, contexts=HOURS)
    assert result.failures == [] and result.ids == list(range(6))
    assert flaky.calls[2] == flaky.calls[3] and flaky.calls[5] == flaky.calls[6]
    assert len(flaky.calls) == 8
    quiet(smooth, g, 6, contexts=HOURS)
    assert events(strategy) == events(smooth)


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_a_trial_that_keeps_failing_is_given_up_and_the_run_goes_on(max_retries):
    times = max_retries + 1
    flaky, strategy = Flaky(*range(2, 2 + times), of=g), contextual()
    message = rf"trial 2 at \[.*\] in context \[.*\] failed {times} times? and was given up: Run"
    with pytest.warns(TrialFailedWarning, match=message) as caught:
        result = quiet(strategy, flaky, 6, max_retries=max_retries, contexts=HOURS)
    assert caught[0].filename == __file__  # the line that called run
    (failure,) = result.failures
    assert failure.id == 2 and str(failure.error) == f"attempt {1 + times}"
    assert (failure.x.tolist(), failure.context.tolist()) == flaky.calls[2]
    assert result.ids == [0, 1, 3, 4, 5] and torch.equal(result.contexts, HOURS[result.ids])
    assert len(flaky.calls) == 5 + times
    assert Abandoned(2, failed=True) in strategy.events and strategy.pending == []


@pytest.mark.parametrize("minimize", [False, True])
def test_a_failure_may_be_told_as_a_value_that_is_never_the_best(minimize, capsys):
    strategy, best = make(finite()), -99.0 if minimize else 99.0
    options = {"failure_value": best, "minimize": minimize}
    with pytest.warns(TrialFailedWarning, match="trial 1"):
        result = run(strategy, Flaky(1), 4, target=best, **options)
    assert Told(1, 99.0) in strategy.events and not strategy.history.abandoned
    assert result.ids == [0, 1, 2, 3] and result.Y[1] == best and result.stopped_by is None
    assert result.best_value == (min if minimize else max)(result.Y[[0, 2, 3]].tolist())
    assert f(result.best_x) == pytest.approx(result.best_value)
    assert [failure.id for failure in result.failures] == [1]
    assert f"best={best:.6g}" not in capsys.readouterr().err
    with pytest.warns(TrialFailedWarning, match="trial 0"):
        result = quiet(make(finite()), Flaky(0), 1, **options)
    assert (result.ids, result.best_x, result.best_value) == ([0], None, None)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_a_failure(value):
    values = iter([0.1, value, 0.2])
    with pytest.warns(TrialFailedWarning, match=f"finite value, got {value}"):
        result = quiet(make(finite()), lambda x: next(values), 3)
    assert result.ids == [0, 2] and [failure.id for failure in result.failures] == [1]


@pytest.mark.parametrize("returned", [None, "0.5", torch.zeros(2), [1.0], 1j], ids=repr)
def test_an_objective_that_returns_no_number_ends_the_run_at_once(returned):
    strategy, calls = make(finite()), []

    def objective(x):
        calls.append(x)
        return f(x) if len(calls) <= 2 else returned

    with pytest.raises(ObjectiveError, match="objective must return one number, got"):
        quiet(strategy, objective, 50)
    assert len(calls) == 3 and len(strategy.history.values) == 2  # what was told stays
    assert strategy.pending == [2] and not strategy.history.abandoned
    assert sorted(quiet(strategy, f, 4).ids) == list(range(4))


def test_what_could_never_work_is_never_asked_for():
    strategy = make(finite())
    for objective, message in ((3.0, "objective must be a function, got 3"), (g, "objective")):
        with pytest.raises(ObjectiveError, match=message):
            quiet(strategy, objective, 20)
    for options, error in [
        ({"num_trials": 0}, "num_trials"),
        ({"max_pending": 0}, "max_pending"),
        ({"max_pending": 2}, "max_pending must be 1 without an executor"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_consecutive_failures": 0}, "max_consecutive_failures"),
        ({"max_consecutive_failures": 2.5}, "max_consecutive_failures"),
        ({"failure_value": math.nan}, "failure_value"),
        ({"executor": 3}, "executor"),
        ({"executor": lambda: 3}, "executor must make an Executor, got 3"),
        ({"strategy": 3}, "strategy must be a Strategy or a Study, got 3"),
        ({"time_limit": 0.0}, "time_limit"),
        ({"target": math.inf}, "target"),
        ({"callback": lambda trial: None}, "callback"),
    ]:
        with pytest.raises(ValueError, match=error):
            run(
                **{"strategy": strategy, "objective": f, "num_trials": 5, "progress": False}
                | options
            )
    strategy.width = None  # and what the strategy raises is no failure of the objective
    with pytest.raises(TypeError):
        quiet(strategy, f, 3)
    assert strategy.events == ()


class Broken:
    """Raises from its ``working``-th call on, with one message or with one for each point."""

    def __init__(self, working=0, each=False, until=math.inf):
        self.working, self.each, self.until, self.calls = working, each, until, 0

    def __call__(self, x):
        self.calls += 1
        if self.working < self.calls <= self.until:
            raise RuntimeError(f"no such file: {x.tolist()}" if self.each else "no such file")
        return f(x)


@pytest.mark.parametrize("failure_value", [None, -2.0])
@pytest.mark.parametrize(("max_pending", "most"), [(1, 3), (5, 5), (64, 10)])
def test_an_objective_that_never_works_ends_the_run(max_pending, most, failure_value):
    strategy = RowsInTurn(finite())
    executor = None if max_pending == 1 else partial(Threads, 2)
    options = {"executor": executor, "max_pending": max_pending, "failure_value": failure_value}
    with (
        pytest.warns(TrialFailedWarning),
        pytest.raises(RepeatedFailures, match=f"{most} trials.*no such file") as stop,
    ):
        quiet(strategy, Broken(), 200, **options)
    told = strategy.history.values
    assert len(strategy.history.abandoned) + len(told) == most
    assert set(told.values()) == (set() if failure_value is None else {failure_value})
    assert isinstance(stop.value.__cause__, RuntimeError)


@pytest.mark.parametrize("most", [1, 4, 10])
def test_so_many_failures_in_a_row_end_the_run_and_what_was_told_stays(most):
    strategy = RowsInTurn(finite())
    options = {"max_retries": 1, "max_consecutive_failures": most}
    broken = Broken(working=6)
    with (
        pytest.warns(TrialFailedWarning),
        pytest.raises(RepeatedFailures, match=f"^{most} trials? failed in a row"),
    ):
        quiet(strategy, broken, 200, **options)
    assert sorted(strategy.history.values) == list(range(6)) and broken.calls == 6 + 2 * most
    assert sorted(strategy.history.abandoned) == list(range(6, 6 + most))
    assert len(quiet(strategy, f, 30).ids) == 30 - most


def test_failures_of_different_kinds_at_first_are_not_taken_for_one_and_none_never_ends_it():
    with pytest.warns(TrialFailedWarning):
        result = quiet(RowsInTurn(finite()), Broken(each=True, until=9), 12)
    assert (len(result.failures), len(result.ids)) == (9, 3)
    with pytest.warns(TrialFailedWarning):
        result = quiet(RowsInTurn(finite()), Broken(), 12, max_consecutive_failures=None)
    assert len(result.failures) == 12


def test_a_region_that_fails_does_not_eat_the_run():
    def fails_on_the_right(x):
        if x[0] > 0.5:
            raise RuntimeError("no yeast grew")
        return float(torch.sin(5 * x[0]) + x[1] * (1 - x[1]))

    points = bx.FiniteSet(bx.Box([(0, 1), (0, 1)]).sample(200, seed=1))
    strategy = bx.algorithms.gp_bucb(points, rbf(0.4), noise_variance=0.01, width=2.0)
    with pytest.warns(TrialFailedWarning):
        result = quiet(strategy, fails_on_the_right, 20)
    failed = torch.stack([failure.x for failure in result.failures])
    assert len(result.ids) > 10 and len(failed.unique(dim=0)) == len(failed)
    assert result.best_value > 1.1  # at most sin(5 * 0.314) + 0.25 = 1.25


# --- what ends it ---------------------------------------------------------------------------------


def test_ctrl_c_in_the_objective_leaves_a_study_that_goes_on():
    strategy, whole = make(finite()), make(finite())
    quiet(whole, f, 6)

    def objective(x):
        if len(strategy.history.trials) == 4:
            raise KeyboardInterrupt
        return f(x)

    result = quiet(strategy, objective, 6)
    assert result.interrupted and result.ids == [0, 1, 2] and strategy.pending == [3]
    assert "stopped by: Ctrl-C" in repr(result)
    assert not quiet(strategy, f, 6).interrupted
    assert events(strategy) == events(whole)

    def at_once(x):
        raise KeyboardInterrupt

    result = quiet(make(finite()), at_once, 7)
    assert (result.best_x, result.best_value, result.ids) == (None, None, [])
    assert result.X.shape == (0, 2)


@pytest.mark.parametrize("moment", ["ask", "tell"])
def test_ctrl_c_never_leaves_a_strategy_half_changed(moment, monkeypatch):
    strategy = make(finite(), initial=data(finite(), 3))
    if moment == "ask":
        strategy.ask()  # pending, and gets its row when the next trial is asked
    append, calls = GrowingCholesky.append, []

    def interrupted_append(self, *args):
        answer = append(self, *args)
        calls.append(self.num_points)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        return answer

    pool = Threads(1)  # so that the pending trial takes its time
    monkeypatch.setattr(GrowingCholesky, "append", interrupted_append)
    pending = 2 if moment == "ask" else 1
    result = quiet(strategy, f, 5, executor=lambda: pool, max_pending=pending)
    assert result.interrupted and calls[0] == 4
    twin = make(finite(), initial=data(finite(), 3))
    twin.replay(strategy.events)
    assert snapshot(strategy) == snapshot(twin)
    assert sorted(quiet(strategy, f, 5).ids) == list(range(5))


@pytest.mark.parametrize("minimize", [False, True])
def test_a_callback_sees_each_trial_once_it_was_told(minimize):
    strategy, seen, infos = make(finite()), [], []

    def callback(trial, value):
        assert len(strategy.history.values) == len(seen) + 1
        seen.append((trial.id, trial.x.tolist(), value))
        infos.append(trial.info.get("mean"))
        trial.x.zero_()  # it has one of its own

    objective = cost if minimize else f
    result = quiet(strategy, objective, 4, minimize=minimize, callback=callback)
    told = zip(result.ids, result.X.tolist(), result.Y.tolist(), strict=True)
    assert seen == list(told) and result.stopped_by is None
    sign = -1 if minimize else 1
    means = [trial.info["mean"] for trial in strategy.history.trials]
    assert infos == [0.0 + sign * mean for mean in means]


def test_the_value_of_a_trial_that_was_given_up_is_nan_for_the_callback():
    seen = {}
    with pytest.warns(TrialFailedWarning):
        quiet(
            RowsInTurn(finite()),
            Flaky(2),
            4,
            failure_value=-9.0,
            callback=lambda trial, value: seen.update({trial.id: value}),
        )
    assert [id for id, value in seen.items() if math.isnan(value)] == [2]


@pytest.mark.parametrize("yes", [True, np.True_, np.array([True]), torch.tensor(True)], ids=repr)
def test_true_ends_the_run_and_what_is_under_way_is_told(yes):
    strategy, calls = make(finite()), []

    def callback(trial, value):
        calls.append(trial.id)
        return yes if len(calls) == 4 else None

    options = {"executor": partial(Threads, 3), "max_pending": 3}
    result = quiet(strategy, f, 20, callback=callback, **options)
    assert result.stopped_by == "callback" and not strategy.pending
    assert sorted(calls) == sorted(result.ids) and 4 <= len(calls) <= 6
    for other in (1, "stop", [True], np.array([True, True]), torch.ones(2), False):
        assert len(quiet(RowsInTurn(finite()), f, 3, callback=lambda *_: other).ids) == 3  # noqa: B023


@pytest.mark.parametrize("raised", [OSError, KeyboardInterrupt])
def test_what_a_callback_raises_ends_the_run_after_the_trial_was_told(raised):
    strategy = RowsInTurn(finite())

    def callback(trial, value):
        if trial.id == 3:
            raise raised

    if raised is OSError:
        with pytest.raises(OSError, match=r"^$"):
            quiet(strategy, f, 6, callback=callback)
    else:
        assert quiet(strategy, f, 6, callback=callback).interrupted
    assert list(strategy.history.values) == [0, 1, 2, 3] and not strategy.pending


@pytest.fixture
def seconds(monkeypatch):
    """Seconds that pass as a test says."""
    now = SimpleNamespace(seconds=100.0)
    now.monotonic = lambda: now.seconds
    now.sleep = lambda seconds: setattr(now, "seconds", now.seconds + seconds)
    for module in (stopping, questions):
        monkeypatch.setattr(module, "time", now)
    return now


def test_nothing_is_asked_after_the_time_limit(seconds):
    strategy = RowsInTurn(finite())

    def objective(x):
        seconds.seconds += 4
        return f(x)

    result = quiet(strategy, objective, 9, time_limit=10)
    assert (result.ids, result.stopped_by, result.seconds) == ([0, 1, 2], "time_limit", 12)
    assert not strategy.pending
    assert quiet(strategy, objective, 4, time_limit=1).stopped_by is None  # it was the last one
    strategy.ask(3)
    result = quiet(strategy, objective, 7, time_limit=1)
    assert strategy.pending == [5, 6] and result.stopped_by == "time_limit"


def test_others_are_not_waited_for_after_the_time_limit(tmp_path, seconds):
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


@pytest.mark.parametrize("minimize", [False, True])
def test_the_run_ends_once_a_value_is_good_enough(minimize, tmp_path):
    objective, sign = (cost, -1) if minimize else (f, 1)
    values = [f(x) for x in finite().points]
    first = next(i for i, value in enumerate(values) if value > max(values[:3]))
    strategy = RowsInTurn(finite())
    options = {"minimize": minimize, "target": sign * values[first]}
    for _ in range(2):  # and it is still good enough
        result = quiet(strategy, objective, 50, **options)
        assert len(result.ids) == first + 1 and result.stopped_by == "target"
        assert result.best_value == options["target"]
    study = bx.Study(tmp_path / "lab.db", RowsInTurn(finite()), minimize=minimize)
    study.abandon(study.ask())
    if study.strategy.refuses_attached is None:
        study.attach(finite().points[3], sign * 7.0)
        assert quiet(study, objective, 5, target=sign * 6.0).ids == [1]


# --- optimize -------------------------------------------------------------------------------------

PEAK = torch.tensor([12.0, 60.0], dtype=torch.float64)
BOUNDS = [(0.0, 20.0), (20.0, 80.0)]
optimize = partial(bx.optimize, progress=False)


def hill(x):
    return 5 - float(((x - PEAK) / torch.tensor([20.0, 60.0])).square().sum())


def depth(x):
    return -hill(x)


def test_it_finds_the_top_from_bounds_alone():
    result = optimize(hill, BOUNDS, 12)
    assert_close(result.recommended_x, PEAK, rtol=0, atol=0.5)
    assert result.recommended_mean == pytest.approx(5, abs=0.02)
    assert result.best_value == max(result.Y.tolist()) == pytest.approx(hill(result.best_x))
    assert len(result.X) == 12


def test_a_cost_is_the_mirrored_study_and_initial_data_count():
    points = bx.FiniteSet(bx.Box(BOUNDS).sample(60, 0))
    X = points.points[:5]
    up = torch.tensor([hill(x) for x in X], dtype=torch.float64)
    numbers = {"num_initial": 2, "seed": 3}
    ours = optimize(hill, points, 4, initial=(X, up), **numbers)
    mirrored = optimize(depth, points, 4, initial=(X, -up), minimize=True, **numbers)
    assert torch.equal(ours.X, mirrored.X) and torch.equal(ours.Y, -mirrored.Y)
    assert torch.equal(ours.recommended_x, mirrored.recommended_x)
    assert ours.recommended_mean == -mirrored.recommended_mean
    assert ours.best_value == -mirrored.best_value == max(*up.tolist(), *ours.Y.tolist())
    assert points.contains(ours.recommended_x).all()
    ended = optimize(depth, points, 4, initial=(X, -up - 9), minimize=True, target=-12.0)
    assert (ended.ids, ended.stopped_by) == ([], "target") and ended.best_value < -12.0


@pytest.mark.parametrize("minimize", [False, True])
def test_it_goes_on_from_a_strategy_and_from_a_study(minimize, tmp_path):
    of, points = depth if minimize else hill, bx.FiniteSet(bx.Box(BOUNDS).sample(60, 0))
    whole = optimize(of, points, 6, num_initial=4, minimize=minimize)
    begun = optimize(of, points, 5, num_initial=4, minimize=minimize).strategy
    made = bx.algorithms.integrated_ei(points, num_initial=4)
    study = bx.Study(tmp_path / "lab.db", made, minimize=minimize)
    optimize(of, study, 5)
    for given in (begun, study):
        result = optimize(of, given, 6)
        assert torch.equal(result.X, whole.X)
        assert torch.equal(result.recommended_x, whole.recommended_x)
        assert result.recommended_mean == whole.recommended_mean
        assert result.best_value == whole.best_value
        with pytest.raises(ValueError, match="seed must be None"):
            optimize(of, given, 7, seed=1)


def test_what_is_recommended_of_nothing_and_of_a_strategy_that_recommends_nothing():
    def fails(x):
        raise RuntimeError("no signal")

    with pytest.warns(TrialFailedWarning):
        result = optimize(fails, BOUNDS, 2)
    assert result.recommended_x is result.recommended_mean is result.best_x is None
    strategy = make(finite())
    result = optimize(cost, strategy, 4, minimize=True)
    assert torch.equal(result.recommended_x, strategy.best()[0])
    assert result.recommended_mean == -strategy.best()[1]
    for wrong in ([[0.0, 20.0], [20.0, 20.0]], "unit cube", [(0, 1, 2)]):
        with pytest.raises(ValueError, match="domain"):
            optimize(hill, wrong, 3)
    with pytest.raises(ValueError, match="domain"):
        optimize(hill, contextual(), 3)
