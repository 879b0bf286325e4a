import math
import multiprocessing
import re
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from functools import partial

import pytest
import torch

from botorch_ext import run
from botorch_ext.exceptions import TrialFailedWarning, WaitingForObservations
from botorch_ext.models.cholesky import GrowingCholesky
from botorch_ext.strategies import Abandoned, Asked, Told
from tests.objectives import f, first_worker_dies
from tests.strategies.sessions import (
    InRounds,
    RowsInTurn,
    Stuck,
    box,
    data,
    finite,
    make,
    plain,
    snapshot,
)

quiet = partial(run, progress=False)


def events(strategy):
    return [plain(event) for event in strategy.events]


# --- in this thread -------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [finite, box])
def test_a_serial_study_is_the_loop_of_ask_and_tell(domain):
    by_hand, strategy = make(domain(), num_initial=3), make(domain(), num_initial=3)
    for _ in range(8):
        trial = by_hand.ask()
        by_hand.tell(trial.id, f(trial.x))
    result = quiet(strategy, f, 8)
    assert events(strategy) == events(by_hand)
    assert result.strategy is strategy
    assert result.ids == list(range(8))
    assert torch.equal(result.X, torch.stack([t.x for t in by_hand.history.trials]))
    assert result.Y.tolist() == [f(x) for x in result.X]
    assert result.best_value == max(f(x) for x in result.X) == f(result.best_x)
    assert result.failures == []
    assert not result.interrupted


def test_num_trials_is_a_total():
    strategy, at_once = make(finite()), make(finite())
    quiet(at_once, f, 9)
    assert len(quiet(strategy, f, 4).ids) == 4
    assert len(quiet(strategy, f, 9).ids) == 9
    assert events(strategy) == events(at_once)
    assert len(quiet(strategy, f, 9).ids) == 9  # nothing is left to do
    assert len(quiet(strategy, f, 2).ids) == 9
    assert events(strategy) == events(at_once)


def test_trials_pending_from_before_are_evaluated_first():
    strategy = make(finite())
    asked = strategy.ask(3)
    strategy.tell(1, 0.5)
    seen = []

    def objective(x):
        seen.append(x.tolist())
        return f(x)

    result = quiet(strategy, objective, 5)
    assert seen[:2] == [asked[0].x.tolist(), asked[2].x.tolist()]
    assert result.ids == [1, 0, 2, 3, 4]
    assert result.Y[0] == 0.5  # the told value stands
    assert strategy.pending == []
    late = make(finite())
    late.ask(6)
    assert len(quiet(late, f, 4).ids) == 6  # more than the total are pending: all are evaluated


def test_minimize_tells_the_negative_and_returns_the_sign_of_the_objective():
    up, down = make(finite(), num_initial=2), make(finite(), num_initial=2)
    maximised = quiet(up, f, 8)
    minimised = quiet(down, lambda x: -f(x), 8, minimize=True)
    assert events(down) == events(up)  # told the same
    assert minimised.Y.tolist() == (-maximised.Y).tolist()
    assert minimised.best_value == min(minimised.Y.tolist()) == -maximised.best_value
    assert torch.equal(minimised.best_x, maximised.best_x)


def test_the_objective_may_return_a_tensor_and_change_its_argument():
    spoilt, clean = make(box()), make(box())

    def objective(x):
        value = torch.tensor(f(x))
        x.fill_(99.0)
        return value

    spoilt.ask()  # also where the trial was asked before
    clean.ask()
    quiet(spoilt, objective, 5)
    quiet(clean, lambda x: torch.tensor(f(x)), 5)
    assert snapshot(spoilt) == snapshot(clean)


# --- methods that wait, and methods that end ------------------------------------------------------


@pytest.mark.parametrize("threads", [None, 5])
def test_a_strategy_that_waits_is_asked_again_when_something_was_told(threads):
    strategy, counted = InRounds(finite()), Counted()
    executor = None if threads is None else partial(Threads, threads)
    result = quiet(strategy, counted, 11, executor=executor, max_pending=threads or 1)
    assert sorted(result.ids) == list(range(11))
    assert counted.most <= 3
    pending = 0
    for event in strategy.events:
        if isinstance(event, Asked) and event.trial.id % 3 == 0:
            assert pending == 0
        pending += 1 if isinstance(event, Asked) else -1


def test_a_waiting_round_closes_without_a_trial_that_is_given_up():
    strategy = InRounds(finite())
    strategy.ask(2)  # pending from before
    with Threads(3) as pool, pytest.warns(TrialFailedWarning, match="trial 1 .*failed 1 time "):
        result = quiet(strategy, fails_in_row(1), 6, executor=pool, max_pending=3, max_retries=0)
    assert sorted(result.ids) == [0, 2, 3, 4, 5]
    assert [failure.id for failure in result.failures] == [1]


def fails_in_row(row):
    def objective(x):
        if torch.equal(x, finite().points[row]):
            raise RuntimeError(f"row {row}")
        return f(x)

    return objective


@pytest.mark.parametrize("threads", [None, 3])
def test_a_study_ends_with_the_horizon_of_its_strategy(threads):
    strategy = InRounds(finite(), horizon=8)
    executor = None if threads is None else partial(Threads, threads)
    result = quiet(strategy, f, 20, executor=executor, max_pending=threads or 1)
    assert sorted(result.ids) == list(range(8))
    assert strategy.pending == []
    assert not result.interrupted
    assert result.best_value == max(result.Y.tolist())
    assert sorted(quiet(strategy, f, 20).ids) == list(range(8))


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


# --- failures -------------------------------------------------------------------------------------


class Flaky:
    """Raises at the attempts whose number is given, counted from 0."""

    def __init__(self, *failing):
        self.failing, self.attempts = failing, []

    def __call__(self, x):
        self.attempts.append(x.tolist())
        if len(self.attempts) - 1 in self.failing:
            raise RuntimeError(f"attempt {len(self.attempts) - 1}")
        return f(x)


def test_an_objective_that_fails_once_is_tried_again_where_that_is_asked_for():
    flaky, strategy, smooth = Flaky(2, 5), make(finite()), make(finite())
    result = quiet(strategy, flaky, 6, max_retries=1)
    assert result.failures == []
    assert result.ids == list(range(6))
    assert flaky.attempts[2] == flaky.attempts[3]
    assert flaky.attempts[5] == flaky.attempts[6]
    assert len(flaky.attempts) == 8
    quiet(smooth, f, 6)
    assert events(strategy) == events(smooth)


@pytest.mark.parametrize("max_retries", [0, 1, 3])
def test_a_trial_that_keeps_failing_is_given_up_and_the_study_goes_on(max_retries):
    flaky, strategy = Flaky(*range(2, 3 + max_retries)), make(finite())
    times = max_retries + 1
    message = rf"trial 2 at \[.*\] failed {times} times? and was given up: RuntimeError"
    with pytest.warns(TrialFailedWarning, match=message) as caught:
        result = quiet(strategy, flaky, 6, max_retries=max_retries)
    assert caught[0].filename == __file__  # the line that called run
    (failure,) = result.failures
    assert failure.id == 2
    assert failure.x.tolist() == flaky.attempts[2]
    assert str(failure.error) == f"attempt {1 + times}"
    assert result.ids == [0, 1, 3, 4, 5]
    assert len(flaky.attempts) == 5 + times
    assert Abandoned(2, failed=True) in strategy.events
    assert strategy.report()["abandoned"] == [2]
    assert strategy.pending == []


@pytest.mark.parametrize("minimize", [False, True])
def test_a_failure_may_be_told_as_a_value_instead(minimize):
    strategy = make(finite())
    with pytest.warns(TrialFailedWarning):
        result = quiet(strategy, Flaky(1), 4, failure_value=-3.0, minimize=minimize)
    assert Told(1, 3.0 if minimize else -3.0) in strategy.events
    assert result.ids == [0, 1, 2, 3]
    assert result.best_value == (min if minimize else max)(result.Y[[0, 2, 3]].tolist())
    assert result.Y[1] == -3.0
    assert [failure.id for failure in result.failures] == [1]
    assert strategy.report()["abandoned"] == []


@pytest.mark.parametrize("minimize", [False, True])
def test_a_value_told_for_a_failure_is_never_the_best(minimize, capsys):
    strategy = make(finite())
    best = -99.0 if minimize else 99.0
    with pytest.warns(TrialFailedWarning, match="trial 1"):
        result = run(strategy, Flaky(1), 4, failure_value=best, minimize=minimize)
    assert result.ids == [0, 1, 2, 3]
    assert result.Y[1] == best
    told = {0: result.Y[0], 2: result.Y[2], 3: result.Y[3]}
    top = (min if minimize else max)(told, key=told.get)
    assert result.best_value == told[top].item()
    assert torch.equal(result.best_x, result.X[top])
    assert f"best={best:.6g}" not in capsys.readouterr().err
    with pytest.warns(TrialFailedWarning, match="trial 0"):
        result = quiet(make(finite()), Flaky(0), 1, failure_value=best)
    assert (result.ids, result.best_x, result.best_value) == ([0], None, None)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "finite value, got nan"),
        (math.inf, "finite value, got inf"),
    ],
)
def test_a_value_that_is_not_finite_is_a_failure(value, message):
    strategy = make(finite())
    values = iter([0.1, value, 0.2])
    with pytest.warns(TrialFailedWarning, match=message):
        result = quiet(strategy, lambda x: next(values), 3)
    assert result.ids == [0, 2]
    assert message in str(result.failures[0].error)


def test_a_failing_strategy_is_not_taken_for_a_failing_objective():
    strategy = make(finite())
    strategy.width = None
    with pytest.raises(TypeError):
        quiet(strategy, f, 3)
    assert strategy.events == ()


# --- Ctrl-C ---------------------------------------------------------------------------------------


def test_ctrl_c_in_the_objective_leaves_a_study_that_goes_on():
    strategy, whole = make(finite()), make(finite())
    quiet(whole, f, 7)

    def objective(x):
        if len(strategy.history.trials) == 4:
            raise KeyboardInterrupt
        return f(x)

    result = quiet(strategy, objective, 7)
    assert result.interrupted
    assert result.ids == [0, 1, 2]
    assert strategy.pending == [3]
    assert result.best_value == max(result.Y.tolist())
    strategy.report()
    again = quiet(strategy, f, 7)
    assert not again.interrupted
    assert events(strategy) == events(whole)


def test_ctrl_c_before_the_first_value_returns_an_empty_result():
    def objective(x):
        raise KeyboardInterrupt

    result = quiet(make(finite()), objective, 7)
    assert result.interrupted
    assert (result.best_x, result.best_value, result.ids) == (None, None, [])
    assert result.X.shape == (0, 2)


@pytest.mark.parametrize("made", [False, True], ids=["instance", "factory"])
def test_ctrl_c_while_threads_work(made):
    strategy, release = make(finite()), threading.Event()
    pool = Threads(3)

    def objective(x):
        if len(strategy.history.values) >= 2:
            if not release.is_set():
                threading.Timer(0.05, interrupt).start()
            release.wait(10)
        return f(x)

    def interrupt():  # as from the keyboard, once, while the main thread waits
        if not interrupt.done:
            interrupt.done = True
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    interrupt.done = False
    handler = signal.getsignal(signal.SIGINT)
    started = time.perf_counter()
    executor = (lambda: pool) if made else pool
    result = quiet(strategy, objective, 9, executor=executor, max_pending=3)
    assert time.perf_counter() - started < 5  # it did not wait for the workers
    assert result.interrupted
    assert signal.getsignal(signal.SIGINT) is handler
    assert len(result.ids) + len(strategy.pending) == len(strategy.history.trials) < 9
    pending = strategy.pending
    assert len(pending) >= 2
    release.set()
    seen = []

    def notes(x):
        seen.append(x.tolist())
        return f(x)

    again = quiet(strategy, notes, 9)
    pool.shutdown()
    assert not again.interrupted
    assert seen[: len(pending)] == [strategy.history.trials[id].x.tolist() for id in pending]
    assert sorted(again.ids) == list(range(9))


class ByHand(Executor):
    """An executor whose futures the test completes."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.futures.append((future, fn, args))
        return future


class Interrupts(ByHand):
    """Ctrl-C when the fourth trial is handed out: two have come by then, one has failed."""

    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn, *args, **kwargs)
        if len(self.futures) == 4:
            for i in (2, 0):
                done, fn, args = self.futures[i]
                done.set_result(fn(*args))
            self.futures[1][0].set_exception(RuntimeError("failed"))
            raise KeyboardInterrupt
        return future


class ReachesWorkers(ByHand):
    """Ctrl-C at a terminal: workers of a pool have it too."""

    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn, *args, **kwargs)
        if len(self.futures) == 3:
            self.futures[0][0].set_exception(KeyboardInterrupt())
            self.futures[1][0].set_exception(SystemExit(1))
            future.set_result(fn(*args))
        return future


def test_ctrl_c_that_reaches_workers_keeps_what_has_come():
    strategy = make(finite())
    result = quiet(strategy, f, 9, executor=ReachesWorkers(), max_pending=3)
    assert result.interrupted and result.ids == [2]
    assert strategy.pending == [0, 1]


def test_ctrl_c_keeps_what_has_come():
    strategy = make(finite())
    result = quiet(strategy, f, 9, executor=Interrupts(), max_pending=4)
    assert result.interrupted
    assert result.ids == [0, 2]
    assert result.Y.tolist() == [f(x) for x in result.X]
    assert strategy.pending == [1, 3]  # the failed one may be tried again
    assert result.failures == []
    assert sorted(quiet(strategy, f, 9).ids) == list(range(9))


def test_a_second_ctrl_c_while_results_are_told_loses_none(monkeypatch):
    strategy, twin = make(finite()), make(finite())
    tell = type(strategy).tell

    def interrupted_tell(self, id, value):
        signal.raise_signal(signal.SIGINT)
        tell(self, id, value)

    monkeypatch.setattr(type(strategy), "tell", interrupted_tell)
    with pytest.raises(KeyboardInterrupt):
        quiet(strategy, f, 9, executor=Interrupts(), max_pending=4)
    monkeypatch.undo()
    assert sorted(strategy.history.values) == [0, 2]
    assert strategy.pending == [1, 3]
    twin.replay(strategy.events)
    assert snapshot(strategy) == snapshot(twin)


def test_ctrl_c_between_the_arrival_of_a_result_and_its_telling_loses_nothing(monkeypatch):
    strategy = make(finite())
    result_of = Future.result

    def interrupted_result(self, *args):
        monkeypatch.undo()
        result_of(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted_result)
    result = quiet(strategy, f, 3)
    assert result.interrupted
    assert result.ids == [0]


@pytest.mark.parametrize("moment", ["ask", "tell"])
@pytest.mark.parametrize("domain", [finite, box])
def test_ctrl_c_never_leaves_a_strategy_half_changed(domain, moment, monkeypatch):
    strategy = make(domain(), initial=data(domain(), 3))
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
    assert result.interrupted
    assert calls[0] == 4
    twin = make(domain(), initial=data(domain(), 3))
    twin.replay(strategy.events)
    assert snapshot(strategy) == snapshot(twin)
    assert sorted(quiet(strategy, f, 5).ids) == list(range(5))


# --- executors ------------------------------------------------------------------------------------


class Counted:
    """`f`, and the most calls that were under way at once."""

    def __init__(self, seconds=0.003):
        self.seconds, self.now, self.most, self.lock = seconds, 0, 0, threading.Lock()

    def __call__(self, x):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return f(x)


@pytest.mark.parametrize("num_threads", [2, 8])
def test_never_more_trials_under_way_than_allowed(num_threads):
    # Long enough that trials are under way together, also where asking is slow.
    strategy, counted = make(finite()), Counted(seconds=0.02)
    with Threads(num_threads) as pool:
        result = quiet(strategy, counted, 24, executor=pool, max_pending=4)
        assert pool.submit(int).result() == 0  # the caller's pool stays open
    assert sorted(result.ids) == list(range(24))
    assert counted.most == min(num_threads, 4)
    pending = most = 0
    for event in strategy.events:
        pending += 1 if isinstance(event, Asked) else -1
        most = max(most, pending)
    assert (most, pending) == (4, 0)
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


def test_a_made_executor_is_shut_down():
    made = []

    def executor():
        made.append(Threads(2))
        return made[-1]

    quiet(make(finite()), f, 6, executor=executor, max_pending=2)
    (pool,) = made
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)


def test_values_that_come_together_are_told_in_the_order_of_asking():
    class Together(ByHand):
        def submit(self, fn, /, *args, **kwargs):
            future = super().submit(fn, *args, **kwargs)
            if len(self.futures) % 4 == 0:
                for done, fn, args in reversed(self.futures[-4:]):
                    done.set_result(fn(*args))
            return future

    result = quiet(make(finite()), f, 12, executor=Together(), max_pending=4)
    # The first of a batch ends as soon as the whole batch is out, and all with it.
    assert result.ids == list(range(12))


class Breaks(ByHand):
    """Takes three trials; then its workers die: one value had come, two are lost."""

    def submit(self, fn, /, *args, **kwargs):
        future = super().submit(fn, *args, **kwargs)
        if len(self.futures) == 3:
            for broken, _, _ in (self.futures[0], self.futures[2]):
                broken.set_exception(BrokenExecutor("died"))
            done, fn, args = self.futures[1]
            done.set_result(fn(*args))
        return future


def test_values_that_had_come_survive_the_death_of_a_pool():
    calls, made = [], []

    def objective(x):
        calls.append(x.tolist())
        return f(x)

    def executor():
        made.append(Threads(1) if made else Breaks())
        return made[-1]

    strategy = make(finite())
    result = quiet(strategy, objective, 3, executor=executor, max_pending=3, max_retries=1)
    assert len(made) == 2  # replaced once, though two trials were lost
    assert result.ids == [1, 0, 2]
    assert len(calls) == 3  # and the one that had come was not evaluated again
    assert result.failures == []


def test_a_pool_found_dead_when_a_trial_is_handed_to_it():
    class Dead(ByHand):
        """Dies with one trial under way; what was under way fails later than the next submit."""

        def submit(self, fn, /, *args, **kwargs):
            if self.futures:
                self.futures[0][0].set_exception(BrokenExecutor("died"))
                raise BrokenExecutor("dead")
            return super().submit(fn, *args, **kwargs)

    made, counted = [], Counted()

    def executor():
        made.append(Threads(4) if made else Dead())
        return made[-1]

    result = quiet(make(finite()), counted, 6, executor=executor, max_pending=2, max_retries=1)
    assert len(made) == 2
    assert counted.most <= 2
    assert sorted(result.ids) == list(range(6))


def spawning(num_workers):
    return ProcessPoolExecutor(num_workers, mp_context=multiprocessing.get_context("spawn"))


def test_a_pool_of_processes_is_made_again_when_a_worker_dies(tmp_path):
    made = []

    def executor():
        made.append(spawning(1))
        return made[-1]

    strategy = make(finite())
    objective = partial(first_worker_dies, str(tmp_path / "flag"))
    result = quiet(strategy, objective, 5, executor=executor, max_pending=2)
    assert len(made) == 2
    assert sorted(result.ids) == list(range(5))
    assert result.failures == []
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))
    for pool in made:
        with pytest.raises((BrokenExecutor, RuntimeError)):
            pool.submit(int)


def test_the_death_of_a_given_pool_ends_the_run_and_not_the_study(tmp_path):
    strategy = make(finite())
    objective = partial(first_worker_dies, str(tmp_path / "flag"))
    with (
        spawning(1) as pool,
        pytest.raises(BrokenExecutor, match="pass a function that makes an executor"),
    ):
        quiet(strategy, objective, 5, executor=pool, max_pending=2)
    assert strategy.pending == [0, 1]
    assert strategy.history.values == {}
    result = quiet(strategy, objective, 5)
    assert result.ids == list(range(5))


def test_a_point_that_kills_its_worker_takes_no_other_trial_with_it():
    class Mortal(Executor):
        """Dies of row 4, with everything that is under way."""

        def __init__(self):
            self.futures, self.dead, self.lock = [], False, threading.Lock()

        def submit(self, fn, /, *args, **kwargs):
            if self.dead:
                raise BrokenExecutor("dead")
            self.futures.append(Future())
            threading.Timer(0.004, self.work, [self.futures[-1], fn, *args]).start()
            return self.futures[-1]

        def work(self, future, fn, x):
            with self.lock:
                if self.dead:
                    return
                if torch.equal(x, finite().points[4]):
                    self.dead = True
                    for lost in self.futures:
                        if not lost.done():
                            lost.set_exception(BrokenExecutor("died"))
                else:
                    future.set_result(fn(x))

    made = []

    def executor():
        made.append(Mortal())
        return made[-1]

    strategy = RowsInTurn(finite())
    with pytest.warns(TrialFailedWarning, match="trial 4 at .* failed 1 time "):
        result = quiet(strategy, f, 12, executor=executor, max_pending=4)
    assert [failure.id for failure in result.failures] == [4]
    assert sorted(result.ids) == [i for i in range(12) if i != 4]
    assert len(made) == 3  # it died of row 4 among others, then of row 4 alone


def test_a_worker_that_always_dies_costs_its_trials_only():
    class AlwaysDead(ByHand):
        def submit(self, fn, /, *args, **kwargs):
            future = super().submit(fn, *args, **kwargs)
            future.set_exception(BrokenExecutor("died"))
            return future

    strategy = make(finite())
    with pytest.warns(TrialFailedWarning, match="BrokenExecutor"):
        result = quiet(strategy, f, 2, executor=AlwaysDead, max_retries=2)
    assert [failure.id for failure in result.failures] == [0, 1]
    assert result.ids == []
    assert strategy.pending == []


# --- progress -------------------------------------------------------------------------------------


def test_the_progress_bar_shows_best_and_pending(capsys):
    strategy = make(finite())
    with Threads(4) as pool:
        result = run(strategy, f, 12, executor=pool, max_pending=4)
    shown = capsys.readouterr().err.replace("\r", "\n")
    assert "12/12" in shown
    assert f"best={result.best_value:.6g}, pending=0" in shown
    assert "best=nan, pending=4" in shown  # also while nothing has come yet
    counts = [int(n) for n in re.findall(r"(\d+)/12", shown)]
    assert counts == sorted(counts)


@pytest.mark.parametrize("minimize", [False, True])
def test_the_progress_bar_counts_on_and_shows_the_sign_of_the_objective(capsys, minimize):
    strategy = make(finite())
    run(strategy, f, 3, minimize=minimize, progress=False)
    assert capsys.readouterr().err == ""
    result = run(strategy, f, 6, minimize=minimize)
    shown = capsys.readouterr().err
    assert "3/6" in shown
    assert "0/6" not in shown
    assert f"best={result.best_value:.6g}, pending=0" in shown
    assert result.best_value == (min if minimize else max)(result.Y.tolist())
