"""`run` in this thread and `optimize`: what is asked, told and returned, and what ends it."""

import math
import re
import signal
from concurrent.futures import ThreadPoolExecutor as Threads
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.exceptions import (
    ObjectiveError,
    RepeatedFailures,
    TrialFailedWarning,
    WaitingForObservations,
)
from botorch_ext.models import KernelGP
from botorch_ext.models.cholesky import GrowingCholesky
from botorch_ext.strategies import Asked, OptimisticStrategy
from botorch_ext.studies import questions, stopping
from tests.helpers import pairwise, rbf
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


def same_trials(strategy, other):
    """Asserts that two strategies, of which one may minimise, have had the same events."""
    one, two = (each.history.events for each in (strategy, other))
    assert [plain(event) for event in one] == [plain(event) for event in two]


class Flaky:
    """Raises at the attempts whose number is given, counted from 0."""

    def __init__(self, *failing, of=f, message="attempt {}"):
        self.failing, self.of, self.message, self.calls = failing, of, message, []

    def __call__(self, *given):
        self.calls.append(tuple(each.tolist() for each in given))
        if len(self.calls) - 1 in self.failing:
            raise RuntimeError(self.message.format(len(self.calls) - 1))
        return self.of(*given)


def never_works():
    return Flaky(*range(1000), message="no such file")


SOURCES = {
    "known ahead": lambda values: values,
    "a function": lambda values: lambda number: values[number],
    "an iterator": iter,
}
# Which attempts fail, how often a trial is tried again, and what is told of one that failed.
FAILING = {
    "none": ((), 0, None),
    "and is repeated": ((2, 5), 1, None),
    "and is given up": ((2, 3, 4), 2, None),
    "and is told": ((1,), 0, 99.0),
}


def by_the_definition(strategy, objective, contexts, actions, retries, told_of_failures):
    """Asks six times; returns the values by the ids of their trials, and the ids that failed."""
    values, failed = {}, []
    for number in range(6):
        context = None if contexts is None else contexts[number]
        trial = strategy.ask(context=context, actions=actions and actions[number])
        given = (trial.x,) if context is None else (trial.x, trial.context)
        for _ in range(retries + 1):
            try:
                values[trial.id] = objective(*given)
            except RuntimeError:
                continue
            break
        else:
            failed.append(trial.id)
            if told_of_failures is None:
                strategy.abandon(trial.id, failed=True)
                continue
            values[trial.id] = told_of_failures
        strategy.tell(trial.id, values[trial.id])
    return values, failed


@pairwise(
    kept=[False, True],
    minimize=[False, True],
    source=[None, *SOURCES],
    changing=[False, True],
    failing=FAILING,
)
def test_a_run_is_the_loop_of_ask_evaluate_and_tell(
    tmp_path, kept, minimize, source, changing, failing
):
    (attempts, retries, told_of_failures), seen = FAILING[failing], []
    made, of = (make(finite()), f) if source is None else (contextual(), g)
    made.expect(bx.exceptions.ModelRefutedWarning)  # by the value of a failure
    hand, contexts = made.clone(), None if source is None else HOURS
    sign = -1 if minimize else 1
    actions = ACTIONS if changing else None
    options = {"minimize": minimize, "max_retries": retries}
    options["callback"] = lambda *given: seen.append(given)
    if told_of_failures is not None:
        options["failure_value"] = sign * told_of_failures
    if source is not None:
        options["contexts"] = SOURCES[source](HOURS)
    if changing:
        options["actions"] = SOURCES[source or "a function"](ACTIONS)
    flaky = Flaky(*attempts, of=of)
    values, failed = by_the_definition(hand, flaky, contexts, actions, retries, told_of_failures)
    counted = Flaky(*attempts, of=lambda *given: sign * of(*given))
    target = bx.Study(tmp_path / "lab.db", made, minimize=minimize) if kept else made
    with pytest.warns(TrialFailedWarning) if failed else nullcontext() as caught:
        result = quiet(target, counted, 6, **options)
    assert result.strategy.minimize == minimize and counted.calls == flaky.calls
    same_trials(result.strategy, hand)
    trials = hand.history.trials
    assert result.ids == [*values] and not result.interrupted
    assert result.Y.tolist() == [sign * value for value in values.values()]
    assert torch.equal(result.X, torch.stack([trials[id].x for id in values]))
    if source is not None:
        assert torch.equal(result.contexts, HOURS[result.ids])
    # The callback sees each trial once, in the sign of the objective; NaN of one that failed.
    assert [trial.id for trial, _ in seen] == list(range(6))
    for trial, value in seen:
        assert trial.info["mean"] == 0.0 + sign * trials[trial.id].info["mean"]
        expected = math.nan if trial.id in failed else sign * values[trial.id]
        assert value == pytest.approx(expected, rel=0, nan_ok=True)
    # What failed is never the best, whatever was told of it.
    best = max((id for id in values if id not in failed), key=values.get)
    assert result.best_value == sign * values[best] and torch.equal(result.best_x, trials[best].x)
    assert [failure.id for failure in result.failures] == failed
    for failure in result.failures:
        assert torch.equal(failure.x, trials[failure.id].x)
        assert str(failure.error) == f"attempt {attempts[-1]}"
        assert failure.context is None or torch.equal(failure.context, HOURS[failure.id])
        assert f"trial {failure.id} at [" in str(caught[0].message)
        assert caught[0].filename == __file__  # the line that called run


def test_the_same_call_goes_on_in_the_sign_of_the_first_one():
    strategy, at_once = (make(finite(), num_initial=3) for _ in range(2))
    for total in (3, 8, 8, 2):  # a total, so that nothing is left in the end
        result = quiet(strategy, cost, total, minimize=True if total == 3 else None)
    quiet(at_once, f, 8)
    same_trials(strategy, at_once)
    assert result.strategy is strategy and result.ids == list(range(8))
    assert result.best_value == min(result.Y.tolist()) and result.seconds > 0
    assert result.contexts is result.best_context is result.stopped_by is None
    with pytest.raises(ValueError, match="minimize must be True, as when"):
        quiet(strategy, cost, 9, minimize=False)


def test_the_objective_may_return_a_tensor_and_what_is_given_to_others_may_be_changed():
    spoilt, clean = contextual(), contextual()

    def objective(x, z):
        value = torch.tensor(g(x, z))
        x.fill_(99.0)
        z.fill_(-99.0)
        return value

    def callback(trial, value):
        trial.x.fill_(99.0)
        trial.info.clear()

    spoilt.ask(context=HOURS[0])  # also where the trial was asked before
    clean.ask(context=HOURS[0])
    quiet(spoilt, objective, 4, contexts=HOURS, callback=callback)
    quiet(clean, lambda x, z: torch.tensor(g(x, z)), 4, contexts=HOURS)
    assert events(spoilt) == events(clean)


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


def test_contexts_belong_to_the_number_of_the_trial():
    """A function is called just before each ask; pending trials keep theirs."""
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


@pytest.mark.parametrize("threads", [None, 5])
@pytest.mark.parametrize("source", [None, *SOURCES])
def test_a_strategy_that_waits_is_asked_again_and_misses_no_context(source, threads):
    strategy, of, options = InRounds(finite(), horizon=11), f, {}
    if source is not None:
        strategy, of = InRoundsByContext(finite(), CONTEXTS, horizon=11), g
        options["contexts"] = SOURCES[source](HOURS)
    executor = threads and partial(Threads, threads)
    result = quiet(strategy, of, 12, executor=executor, max_pending=threads or 1, **options)
    assert sorted(result.ids) == list(range(11)) and not strategy.pending  # its horizon
    pending = 0
    for event in strategy.events:
        if isinstance(event, Asked) and event.trial.id % 3 == 0:
            assert pending == 0
        pending += 1 if isinstance(event, Asked) else -1
    if source is not None:
        assert torch.equal(torch.stack([t.context for t in strategy.history.trials]), HOURS[:11])


@pytest.mark.parametrize("name", ["contexts", "actions"])
def test_the_end_of_an_iterator_ends_the_run(name):
    streams = {"contexts": HOURS, "actions": ACTIONS}
    streams[name] = iter(streams[name][:4])
    strategy = contextual()
    result = quiet(strategy, g, 9, **streams)
    assert result.ids == [0, 1, 2, 3] and strategy.pending == [] and not result.interrupted


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


def taking_repeats(**options):
    return bx.algorithms.integrated_ei(finite(), bx.Particles(4), num_initial=9, **options)


@pytest.mark.parametrize("minimize", [False, True])
@pytest.mark.parametrize("is_kept", [False, True])
def test_objectives_return_repeats_and_standard_errors(minimize, is_kept, tmp_path):
    seen, returned = [], [
        0.5,
        [0.25, 0.75],
        [0.25],
        {"value": 0.375, "std": 0.1},
        {"value": [0.25, 0.75], "std": 0.2},
        [0.5, math.nan],
        {"value": 0.5, "std": 0.0},
        2.0,
    ]  # fmt: skip
    strategy = taking_repeats(minimize=minimize)
    asked = bx.Study(tmp_path / "lab.db", strategy) if is_kept else strategy
    objective, said = (lambda x: returned[len(seen)]), pytest.warns(TrialFailedWarning)
    with said as warned:
        result = quiet(
            asked, objective, 8, callback=lambda trial, value: seen.append(value), max_retries=0
        )
    said = [str(each.message) for each in warned]
    assert "finite value, got nan" in said[0] and "std must be positive and finite" in said[1]
    history = result.strategy.history
    assert result.ids == [0, 1, 2, 3, 4, 7] and history.failed == {5, 6}
    assert result.Y.tolist() == [0.5, 0.5, 0.25, 0.375, 0.5, 2.0]
    np.testing.assert_equal(seen, [0.5, 0.5, 0.25, 0.375, 0.5, math.nan, math.nan, 2.0])
    assert {id: history.repeats_told(id) for id in history.repeats} == dict.fromkeys(
        (1, 4), (0.25, 0.75)
    )
    assert history.stds == {3: 0.1, 4: 0.2}
    assert result.best_value == (0.25 if minimize else 2.0)


@pytest.mark.parametrize("returned", [[], (1.0, 0.1), torch.zeros(2), {"value": 1.0}, {}], ids=repr)
def test_an_objective_that_returns_no_repeats_ends_the_run_at_once(returned):
    with pytest.raises(ObjectiveError, match=r"objective must return one number \(or a .*, got"):
        quiet(taking_repeats(), lambda x: returned, 5)


def test_objectives_of_methods_for_equal_noise_return_one_number():
    for returned in ([0.5, 0.6], {"value": 0.5, "std": 0.1}):
        with pytest.raises(ObjectiveError, match="objective must return one number, got"):
            quiet(RowsInTurn(finite()), lambda x, y=returned: y, 5)


def test_what_could_never_work_is_never_asked_for():
    strategy = make(finite())
    with pytest.raises(ObjectiveError, match="objective"):
        quiet(strategy, g, 20)
    for options, error in [
        ({"max_pending": 2}, "max_pending must be 1 without an executor"),
        ({"max_consecutive_failures": 0}, "max_consecutive_failures"),
        ({"max_consecutive_failures": 2.5}, "max_consecutive_failures"),
        ({"failure_value": math.nan}, "failure_value"),
        ({"executor": lambda: 3}, "executor must make an Executor, got 3"),
        ({"callback": lambda trial: None}, "callback"),
    ]:
        with pytest.raises(ValueError, match=error):
            quiet(strategy, f, 5, **options)
    strategy.width = None  # and what the strategy raises is no failure of the objective
    with pytest.raises(TypeError):
        quiet(strategy, f, 3)
    assert strategy.events == ()


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
        quiet(strategy, never_works(), 200, **options)
    told = strategy.history.values
    assert len(strategy.history.abandoned) + len(told) == most
    assert set(told.values()) == (set() if failure_value is None else {failure_value})
    assert isinstance(stop.value.__cause__, RuntimeError)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.TrialFailedWarning")
@pytest.mark.parametrize("most", [1, 4])
def test_so_many_failures_in_a_row_end_the_run_and_what_was_told_stays(most):
    strategy, broken = RowsInTurn(finite()), Flaky(*range(6, 20))
    options = {"max_retries": 1, "max_consecutive_failures": most}
    with pytest.raises(RepeatedFailures, match=f"^{most} trials? failed in a row"):
        quiet(strategy, broken, 200, **options)
    assert sorted(strategy.history.values) == list(range(6))
    assert len(broken.calls) == 6 + 2 * most
    assert sorted(strategy.history.abandoned) == list(range(6, 6 + most))
    assert len(quiet(strategy, f, 30).ids) == 30 - most


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.TrialFailedWarning")
def test_failures_of_different_kinds_at_first_are_not_taken_for_one_and_none_never_ends_it():
    result = quiet(RowsInTurn(finite()), Flaky(*range(9)), 12)
    assert (len(result.failures), len(result.ids)) == (9, 3)
    result = quiet(RowsInTurn(finite()), never_works(), 12, max_consecutive_failures=None)
    assert len(result.failures) == 12


@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError("no clock")], ids=repr)
@pytest.mark.parametrize("where", ["objective", "contexts", "callback"])
def test_what_is_raised_anywhere_leaves_a_strategy_that_goes_on(where, raised):
    strategy, whole = contextual(), contextual()
    quiet(whole, g, 6, contexts=HOURS)

    def at(place):
        if place == where and len(strategy.history.trials) == 4 - (where == "contexts"):
            raise raised

    def objective(x, z):
        at("objective")
        return g(x, z)

    def hour_of(number):
        at("contexts")
        return HOURS[number]

    options = {"contexts": hour_of, "callback": lambda trial, value: at("callback")}
    if raised is KeyboardInterrupt:
        result = quiet(strategy, objective, 6, **options)
        assert result.interrupted and "stopped by: Ctrl-C" in repr(result)
    elif where == "objective":  # a failure of its trial
        with pytest.warns(TrialFailedWarning, match="trial 3"):
            assert quiet(strategy, objective, 6, **options).ids == [0, 1, 2, 4, 5]
        return
    else:
        with pytest.raises(OSError, match="no clock"):
            quiet(strategy, objective, 6, **options)
    assert [*strategy.history.values] == list(range(3 + (where == "callback")))
    assert strategy.pending == ([3] if where == "objective" else [])
    assert not quiet(strategy, g, 6, contexts=HOURS).interrupted
    assert events(strategy) == events(whole)


def test_a_run_without_a_value_has_no_best():
    def at_once(x):
        raise KeyboardInterrupt

    result = quiet(make(finite()), at_once, 7)
    assert (result.best_x, result.best_value, result.ids) == (None, None, [])
    assert result.X.shape == (0, 2)
    with pytest.warns(TrialFailedWarning, match="trial 0"):
        result = quiet(make(finite()), Flaky(0), 1, failure_value=99.0)
    assert (result.ids, result.best_x, result.best_value) == ([0], None, None)


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


@pytest.mark.parametrize("kept", [False, True])
def test_it_goes_on_from_a_strategy_and_from_a_study(kept, tmp_path):
    points = bx.FiniteSet(bx.Box(BOUNDS).sample(60, 0))
    given = bx.algorithms.integrated_ei(points, num_initial=4)
    if kept:
        given = bx.Study(tmp_path / "lab.db", given, minimize=True)
    whole = optimize(depth, points, 6, num_initial=4, minimize=True)
    optimize(depth, given, 5, minimize=True)
    result = optimize(depth, given, 6)
    assert torch.equal(result.X, whole.X) and result.best_value == whole.best_value
    assert torch.equal(result.recommended_x, whole.recommended_x)
    assert result.recommended_mean == whole.recommended_mean
    with pytest.raises(ValueError, match="seed must be None"):
        optimize(depth, given, 7, seed=1)


def test_what_is_recommended_of_nothing_and_of_a_strategy_that_recommends_nothing():
    def fails(x):
        raise RuntimeError("no signal")

    with pytest.warns(TrialFailedWarning):
        result = optimize(fails, BOUNDS, 2)
    assert result.recommended_x is result.recommended_mean is result.best_x is None
    strategy = make(finite())
    result = optimize(cost, strategy, 4, minimize=True)
    assert torch.equal(result.recommended_x, strategy.best()[0])
    assert result.recommended_mean == strategy.best()[1] > 0
    assert f"expected value {result.recommended_mean:.6g}" in repr(result)
    with pytest.raises(ValueError, match="domain"):
        optimize(hill, contextual(), 3)
