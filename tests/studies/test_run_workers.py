"""`run` on executors: of Python and of other libraries, with workers that die, and Ctrl-C."""

import logging
import math
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from contextlib import contextmanager, nullcontext
from functools import partial
from pickle import PicklingError
from threading import Timer
from types import SimpleNamespace

import pytest
import torch

from botorch_ext import run
from botorch_ext.exceptions import ObjectiveError, TrialFailedWarning
from botorch_ext.strategies import Asked
from botorch_ext.studies import running_study
from tests.objectives import (
    ends_at_first,
    f,
    first_call_fails,
    first_worker_dies,
    killed_at_first,
    slow,
)
from tests.strategies.sessions import RowsInTurn, finite, make, snapshot

quiet = partial(run, progress=False)


class ByHand(Executor):
    """An executor whose futures the test completes."""

    def __init__(self):
        self.futures = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.futures.append((future, fn, args))
        return future


class Plain(Executor):
    """Evaluates at once; its end takes what a test says."""

    def __init__(self):
        self.ended = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args))
        return future


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


def test_never_more_trials_under_way_than_allowed():
    # Long enough that trials are under way together, also where asking is slow.
    strategy, counted = RowsInTurn(finite()), Counted(seconds=0.02)
    with Threads(8) as pool:
        result = quiet(strategy, counted, 16, executor=pool, max_pending=4)
        assert pool.submit(int).result() == 0  # the caller's pool stays open
    assert sorted(result.ids) == list(range(16))
    assert counted.most == 4
    pending = most = 0
    for event in strategy.events:
        pending += 1 if isinstance(event, Asked) else -1
        most = max(most, pending)
    assert (most, pending) == (4, 0)
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


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


@pytest.mark.parametrize("options", [{}, {"kill_workers": False}, {"cancel_futures": True}])
def test_a_made_executor_is_shut_down_with_what_it_understands(options):
    """As executors of Dask, loky and Python do; a given one is the caller's."""

    class Own(Plain):
        if not options:

            def shutdown(self, wait=True):
                self.ended.append({"wait": wait})
        elif "kill_workers" in options:

            def shutdown(self, wait=True, kill_workers=False):
                self.ended.append({"wait": wait, "kill_workers": kill_workers})
        else:

            def shutdown(self, wait=True, *, cancel_futures=False):
                self.ended.append({"wait": wait, "cancel_futures": cancel_futures})

    executor = Own()
    quiet(RowsInTurn(finite()), f, 4, executor=lambda: executor)
    assert executor.ended == [{"wait": True, **options}]
    quiet(RowsInTurn(finite()), f, 4, executor=executor)
    assert len(executor.ended) == 1
    with pytest.raises(ObjectiveError):
        quiet(RowsInTurn(finite()), lambda x: None, 4, executor=lambda: executor)
    assert executor.ended[1:] == [{"wait": False, **options}]
    bare = SimpleNamespace(submit=Plain().submit)  # it needs no end
    assert len(quiet(RowsInTurn(finite()), f, 4, executor=lambda: bare).ids) == 4


# --- Ctrl-C and other ends ------------------------------------------------------------------------


@pytest.mark.slow
def test_ctrl_c_while_threads_work():
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
    result = quiet(strategy, objective, 9, executor=pool, max_pending=3)
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


# What four trials come to at once: the first one ends the run.
ENDS = {
    KeyboardInterrupt: [KeyboardInterrupt(), math.nan, 0.5, 0.25],
    ObjectiveError: ["no number", math.nan, 0.5, 0.25],
}


@pytest.mark.parametrize("ends", ENDS)
def test_what_is_told_when_a_run_ends_is_all_that_came(ends):
    """Results that wait, one of them not finite, when another ends the run."""

    class All(ByHand):
        def submit(self, fn, /, *args):
            future = super().submit(fn, *args)
            if len(self.futures) == 4:
                for (waiting, _, _), value in zip(self.futures, ENDS[ends], strict=True):
                    is_raised = isinstance(value, BaseException)
                    (waiting.set_exception if is_raised else waiting.set_result)(value)
            return future

    strategy, raised = RowsInTurn(finite()), nullcontext()
    if ends is ObjectiveError:
        raised = pytest.raises(ObjectiveError, match="must return one number")
    with raised, pytest.warns(TrialFailedWarning, match=r"trial 1 .* failed 1 time .* got nan"):
        quiet(strategy, f, 9, executor=All(), max_pending=4)
    assert strategy.history.values == {2: 0.5, 3: 0.25}
    assert strategy.history.failed == {1} and strategy.pending == [0]


# --- workers that die -----------------------------------------------------------------------------


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


def test_an_objective_in_a_thread_may_fail_to_pickle():
    calls = []

    def objective(x):
        calls.append(x)
        if len(calls) == 2:
            raise PicklingError("a cache of its own")
        return f(x)

    executor = partial(Threads, 1)
    assert quiet(make(finite()), objective, 4, executor=executor, max_retries=1).ids
    assert len(calls) == 5


def test_a_cluster_that_leaves_its_futures_undone_ends_the_run(monkeypatch):
    monkeypatch.setattr(running_study, "_LOOK", 0.02)

    class Lost(Plain):
        def submit(self, fn, /, *args, **kwargs):
            self.futures = [*getattr(self, "futures", []), Future()]
            if len(self.futures) <= 3:
                self.futures[-1].set_result(fn(*args))
            else:  # later than the first look
                Timer(0.05, setattr, [self, "_client", SimpleNamespace(status="closed")]).start()
            return self.futures[-1]

    strategy = make(finite())
    with pytest.raises(BrokenExecutor, match="lost its cluster"):
        quiet(strategy, f, 9, executor=Lost())
    assert sorted(strategy.history.values) == [0, 1, 2]
    assert strategy.pending == [3]


# --- pools and clusters of processes --------------------------------------------------------------


def spawning(num_workers):
    return ProcessPoolExecutor(num_workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.fixture
def loky_pool():
    loky = pytest.importorskip("joblib.externals.loky")
    return partial(loky.ProcessPoolExecutor, 1)


@pytest.mark.slow
def test_loky_workers_that_die(tmp_path, loky_pool):
    made = []

    def executor():
        made.append(loky_pool())
        return made[-1]

    objective = partial(first_worker_dies, str(tmp_path / "flag"))
    result = quiet(make(finite()), objective, 5, executor=executor, max_pending=2)
    assert len(made) == 2
    assert sorted(result.ids) == list(range(5))
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


@pytest.mark.slow
def test_an_objective_that_loky_cannot_pickle(loky_pool):
    strategy, lock = make(finite()), threading.Lock()
    with pytest.raises(ObjectiveError, match="must be picklable"):
        quiet(strategy, lambda x: lock, 9, executor=loky_pool, max_pending=2)
    assert not strategy.history.values
    assert not strategy.history.abandoned


# --- Dask -----------------------------------------------------------------------------------------


@contextmanager
def dask_client(folder, processes, workers):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1 if processes else 2,
            processes=processes,
            protocol="tcp://",
            host="127.0.0.1",
            # None would be port 8787 of every interface.
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_dask_in_threads(tmp_path):
    strategy = make(finite())
    objective = partial(first_call_fails, str(tmp_path / "flag"))
    with dask_client(tmp_path, processes=False, workers=1) as client:
        executor = client.get_executor(pure=False)
        result = quiet(strategy, objective, 10, executor=executor, max_pending=3, max_retries=1)
        assert client.submit(int).result() == 0  # the caller's client stays open
    assert (tmp_path / "flag").exists()
    assert sorted(result.ids) == list(range(10))
    assert result.failures == []
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


@pytest.mark.slow
def test_dask_workers_that_are_killed(tmp_path):
    strategy = make(finite())
    with dask_client(tmp_path, processes=True, workers=2) as client:
        result = quiet(
            strategy,
            partial(killed_at_first, str(tmp_path)),
            16,
            executor=lambda: client.get_executor(pure=False),
            max_pending=3,
        )
    assert sorted(result.ids) == list(range(16))  # each told once
    assert result.failures == []
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))
    calls = [int(call.read_text()) for call in tmp_path.glob("call-*")]
    assert len(calls) >= 18  # two of them died
    assert len(set(calls)) >= 3
    assert os.getpid() not in calls


# Whether the trials under way fail before the next one is handed out depends on who is faster.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.TrialFailedWarning")
def test_a_run_ends_when_its_cluster_does(tmp_path):
    strategy = make(finite())
    with dask_client(tmp_path, processes=False, workers=1) as client:
        Timer(1.0, client.cluster.close).start()
        with pytest.raises(Exception, match=r"(?i)(client is closed|cancel|lost)"):
            quiet(
                strategy,
                partial(slow, 0.05),
                10_000,
                executor=lambda: client.get_executor(pure=False),
                max_pending=3,
            )
    told, num_asked = strategy.history.values, len(strategy.history.trials)
    assert told
    answered = [*told, *strategy.pending, *strategy.history.abandoned]
    assert sorted(answered) == list(range(num_asked))
    lost = len(strategy.history.abandoned)
    assert len(quiet(strategy, f, num_asked + 2).ids) == num_asked + 2 - lost


@pytest.mark.slow
@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit])
@pytest.mark.parametrize("pool", [Threads, spawning])
def test_an_objective_that_ends_its_worker_fails_its_trial(tmp_path, pool, raised):
    objective = partial(ends_at_first, str(tmp_path / "flag"), raised)
    with pool(1) as executor, pytest.warns(TrialFailedWarning, match=raised.__name__):
        result = quiet(make(finite()), objective, 3, executor=executor, max_retries=0)
    assert result.ids == [1, 2]
    assert [(each.id, type(each.error)) for each in result.failures] == [(0, raised)]
