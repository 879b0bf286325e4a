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
from threading import Timer
from types import SimpleNamespace

import pytest
import torch

from botorch_ext import run
from botorch_ext.exceptions import ObjectiveError, TrialFailedWarning
from botorch_ext.strategies import Asked
from botorch_ext.studies import running_study
from tests.objectives import ends_at_first, f, first_worker_dies, killed_at_first, slow
from tests.strategies.sessions import RowsInTurn, finite, make, snapshot

quiet = partial(run, progress=False)


class ByHand(Executor):
    """An executor whose futures are completed by what a test does after each trial."""

    def __init__(self, then):
        self.then, self.futures, self.calls, self.ended = then, [], [], []

    def submit(self, fn, /, *args, **kwargs):
        self.futures.append(Future())
        self.calls.append(partial(fn, *args))
        self.then(self)
        return self.futures[-1]

    def complete(self, *places):
        for place in places:
            try:
                self.futures[place].set_result(self.calls[place]())
            except Exception as error:  # noqa: BLE001 - as executors do
                self.fail(error, place)

    def fail(self, error, *places):
        for place in places:
            self.futures[place].set_exception(error)


def at_once(executor):
    executor.complete(-1)


def in_turn(first, then=None):
    """A function that makes executors, the first one by another function, and those it made."""
    made = []

    def executor():
        made.append((then if made and then else first)())
        return made[-1]

    return executor, made


def require_all(result, number):
    """All trials were told their values, each once."""
    assert sorted(result.ids) == list(range(number)) and result.failures == []
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


def test_never_more_trials_under_way_than_allowed():
    strategy, lock, under_way = RowsInTurn(finite()), threading.Lock(), [0]

    def objective(x):
        with lock:
            under_way.append(under_way[-1] + 1)
        time.sleep(0.02)  # so that trials are under way together, also where asking is slow
        with lock:
            under_way.append(under_way[-1] - 1)
        return f(x)

    with Threads(8) as pool:
        require_all(quiet(strategy, objective, 16, executor=pool, max_pending=4), 16)
        assert pool.submit(int).result() == 0  # the caller's pool stays open
    pending = [0]
    for event in strategy.events:
        pending.append(pending[-1] + (1 if isinstance(event, Asked) else -1))
    assert max(under_way) == max(pending) == 4 and pending[-1] == 0


def test_values_that_come_together_are_told_in_the_order_of_asking():
    def together(executor):
        if len(executor.futures) % 4 == 0:
            executor.complete(-1, -2, -3, -4)

    result = quiet(make(finite()), f, 12, executor=ByHand(together), max_pending=4)
    # The first of a batch ends as soon as the whole batch is out, and all with it.
    assert result.ids == list(range(12))


def plain_end(self, wait=True):
    self.ended.append({"wait": wait})


def end_of_loky(self, wait=True, kill_workers=False):
    self.ended.append({"wait": wait, "kill_workers": kill_workers})


def end_of_python(self, wait=True, *, cancel_futures=False):
    self.ended.append({"wait": wait, "cancel_futures": cancel_futures})


@pytest.mark.parametrize(
    ("end", "options"),
    [
        (plain_end, {}),
        (end_of_loky, {"kill_workers": False}),
        (end_of_python, {"cancel_futures": True}),
    ],
)
def test_a_made_executor_is_shut_down_with_what_it_understands(end, options):
    executor = type("Own", (ByHand,), {"shutdown": end})(at_once)
    quiet(RowsInTurn(finite()), f, 4, executor=lambda: executor)
    assert executor.ended == [{"wait": True, **options}]
    quiet(RowsInTurn(finite()), f, 4, executor=executor)
    assert len(executor.ended) == 1  # a given one is the caller's
    with pytest.raises(ObjectiveError):
        quiet(RowsInTurn(finite()), lambda x: None, 4, executor=lambda: executor)
    assert executor.ended[1:] == [{"wait": False, **options}]
    bare = SimpleNamespace(submit=ByHand(at_once).submit)  # it needs no end
    assert len(quiet(RowsInTurn(finite()), f, 4, executor=lambda: bare).ids) == 4


@pytest.mark.slow
def test_ctrl_c_while_threads_work():
    strategy, release, pool = make(finite()), threading.Event(), Threads(3)
    # As from the keyboard, once, while the main thread waits.
    main = threading.main_thread().ident
    timer = Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))

    def objective(x):
        if len(strategy.history.values) >= 2:
            with lock:
                if timer.ident is None:
                    timer.start()
            release.wait(10)
        return f(x)

    lock, handler = threading.Lock(), signal.getsignal(signal.SIGINT)
    started = time.perf_counter()
    result = quiet(strategy, objective, 9, executor=pool, max_pending=3)
    assert time.perf_counter() - started < 5  # it did not wait for the workers
    assert result.interrupted and signal.getsignal(signal.SIGINT) is handler
    assert len(result.ids) + len(strategy.pending) == len(strategy.history.trials) < 9
    pending, seen = strategy.pending, []
    assert len(pending) >= 2
    release.set()
    again = quiet(strategy, lambda x: seen.append(x.tolist()) or f(x), 9)
    pool.shutdown()
    assert not again.interrupted and sorted(again.ids) == list(range(9))
    assert seen[: len(pending)] == [strategy.history.trials[id].x.tolist() for id in pending]


def interrupts(executor):
    """Ctrl-C when the fourth trial is handed out: two have come by then, one has failed."""
    if len(executor.futures) == 4:
        executor.complete(2, 0)
        executor.fail(RuntimeError("failed"), 1)
        raise KeyboardInterrupt


def reaches_workers(executor):
    """Ctrl-C at a terminal: workers of a pool have it too."""
    if len(executor.futures) == 3:
        executor.fail(KeyboardInterrupt(), 0)
        executor.fail(SystemExit(1), 1)
        executor.complete(2)


@pytest.mark.parametrize(
    ("then", "told", "pending"), [(interrupts, [0, 2], [1, 3]), (reaches_workers, [2], [0, 1])]
)
def test_ctrl_c_keeps_what_has_come(then, told, pending):
    strategy = make(finite())
    result = quiet(strategy, f, 9, executor=ByHand(then), max_pending=len(told + pending))
    assert result.interrupted and result.ids == told and result.failures == []
    assert strategy.pending == pending  # one that failed may be tried again
    require_all(quiet(strategy, f, 9), 9)


def test_a_second_ctrl_c_while_results_are_told_loses_none(monkeypatch):
    strategy, twin = make(finite()), make(finite())
    tell = type(strategy).tell

    def interrupted_tell(self, *given, **named):
        signal.raise_signal(signal.SIGINT)
        tell(self, *given, **named)

    monkeypatch.setattr(type(strategy), "tell", interrupted_tell)
    with pytest.raises(KeyboardInterrupt):
        quiet(strategy, f, 9, executor=ByHand(interrupts), max_pending=4)
    monkeypatch.undo()
    assert sorted(strategy.history.values) == [0, 2] and strategy.pending == [1, 3]
    twin.replay(strategy.events)
    assert snapshot(strategy) == snapshot(twin)


def test_ctrl_c_between_the_arrival_of_a_result_and_its_telling_loses_nothing(monkeypatch):
    result_of = Future.result

    def interrupted_result(self, *args):
        monkeypatch.undo()
        result_of(self, *args)
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted_result)
    result = quiet(make(finite()), f, 3)
    assert result.interrupted and result.ids == [0]


@pytest.mark.parametrize("first", [KeyboardInterrupt(), "no number"], ids=repr)
def test_what_is_told_when_a_run_ends_is_all_that_came(first):
    """Results that wait, one of them not finite, when another ends the run."""

    def all_at_once(executor):
        if len(executor.futures) == 4:
            for future, value in zip(executor.futures, [first, math.nan, 0.5, 0.25], strict=True):
                is_raised = isinstance(value, BaseException)
                (future.set_exception if is_raised else future.set_result)(value)

    strategy, raised = RowsInTurn(finite()), nullcontext()
    if first == "no number":
        raised = pytest.raises(ObjectiveError, match="must return one number")
    with raised, pytest.warns(TrialFailedWarning, match=r"trial 1 .* failed 1 time .* got nan"):
        quiet(strategy, f, 9, executor=ByHand(all_at_once), max_pending=4)
    assert strategy.history.values == {2: 0.5, 3: 0.25}
    assert strategy.history.failed == {1} and strategy.pending == [0]


DIED = BrokenExecutor("died")


def test_values_that_had_come_survive_the_death_of_a_pool():
    def breaks(pool):  # of three trials one value had come, two are lost
        if len(pool.futures) == 3:
            pool.fail(DIED, 0, 2)
            pool.complete(1)

    calls = []
    executor, made = in_turn(lambda: ByHand(breaks), lambda: Threads(1))
    options = {"executor": executor, "max_pending": 3, "max_retries": 1}
    result = quiet(make(finite()), lambda x: calls.append(x) or f(x), 3, **options)
    assert len(made) == 2  # replaced once, though two trials were lost
    assert result.ids == [1, 0, 2] and result.failures == []
    assert len(calls) == 3  # and the one that had come was not evaluated again


def test_a_point_that_kills_its_worker_takes_no_other_trial_with_it():
    def works(pool):
        """Dies of row 4 with two others, and of row 4 alone."""
        under_way = [place for place, future in enumerate(pool.futures) if not future.done()]
        if pool in dead:
            raise DIED
        if torch.equal(pool.calls[-1].args[0], finite().points[4]):
            dead.append(pool)
            pool.fail(DIED, *under_way)
        elif len(made) > 1:
            pool.complete(*under_way)
        elif len(under_way) == 4:
            pool.complete(*under_way[:2])

    dead, (executor, made) = [], in_turn(lambda: ByHand(works))
    with pytest.warns(TrialFailedWarning, match="trial 4 at .* failed 1 time "):
        result = quiet(RowsInTurn(finite()), f, 12, executor=executor, max_pending=4)
    assert [failure.id for failure in result.failures] == [4] and len(made) == 3
    assert sorted(result.ids) == [i for i in range(12) if i != 4]


def test_a_worker_that_always_dies_costs_its_trials_only():
    strategy, dead = make(finite()), lambda: ByHand(lambda pool: pool.fail(DIED, -1))
    with pytest.warns(TrialFailedWarning, match="BrokenExecutor"):
        result = quiet(strategy, f, 2, executor=dead, max_retries=2)
    assert [failure.id for failure in result.failures] == [0, 1]
    assert result.ids == strategy.pending == []


def test_a_cluster_that_leaves_its_futures_undone_ends_the_run(monkeypatch):
    monkeypatch.setattr(running_study, "_LOOK", 0.02)

    def loses(cluster):
        if len(cluster.futures) <= 3:
            cluster.complete(-1)
        else:  # later than the first look
            Timer(0.05, setattr, [cluster, "_client", SimpleNamespace(status="closed")]).start()

    strategy = make(finite())
    with pytest.raises(BrokenExecutor, match="lost its cluster"):
        quiet(strategy, f, 9, executor=ByHand(loses))
    assert sorted(strategy.history.values) == [0, 1, 2] and strategy.pending == [3]


def spawning(num_workers):
    return ProcessPoolExecutor(num_workers, mp_context=multiprocessing.get_context("spawn"))


def of_loky(num_workers):
    return pytest.importorskip("joblib.externals.loky").ProcessPoolExecutor(num_workers)


@pytest.mark.slow
@pytest.mark.parametrize("pool", [spawning, of_loky])
def test_a_pool_of_processes_is_made_again_when_a_worker_dies(tmp_path, pool):
    executor, made = in_turn(partial(pool, 1))
    objective = partial(first_worker_dies, str(tmp_path / "flag"))
    require_all(quiet(make(finite()), objective, 5, executor=executor, max_pending=2), 5)
    assert len(made) == 2
    for each in made:
        with pytest.raises((BrokenExecutor, RuntimeError)):
            each.submit(int)


@pytest.mark.slow
def test_the_death_of_a_given_pool_ends_the_run_and_not_the_study(tmp_path):
    strategy = make(finite())
    objective = partial(first_worker_dies, str(tmp_path / "flag"))
    with (
        spawning(1) as pool,
        pytest.raises(BrokenExecutor, match="pass a function that makes an executor"),
    ):
        quiet(strategy, objective, 5, executor=pool, max_pending=2)
    assert strategy.pending == [0, 1] and strategy.history.values == {}
    require_all(quiet(strategy, objective, 5), 5)


@pytest.mark.slow
@pytest.mark.parametrize("pool", [ProcessPoolExecutor, of_loky])
def test_an_objective_that_cannot_be_pickled_is_never_asked_for(pool):
    strategy, lock = make(finite()), threading.Lock()
    message = "objective must be picklable to reach other processes"
    with pytest.raises(ObjectiveError, match=message):
        quiet(strategy, lambda x: lock, 20, executor=partial(pool, 1), max_pending=2)
    assert not strategy.history.values and not strategy.history.abandoned
    if pool is ProcessPoolExecutor:  # of whose pools it is known beforehand
        with pool(1) as given, pytest.raises(ObjectiveError, match="as a function of a module"):
            quiet(strategy, lambda x: 0.0, 20, executor=given)
        assert strategy.events == ()


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
def test_dask_workers_that_are_killed(tmp_path):
    objective = partial(killed_at_first, str(tmp_path))
    with dask_client(tmp_path, processes=True, workers=2) as client:
        executor = partial(client.get_executor, pure=False)
        require_all(quiet(make(finite()), objective, 16, executor=executor, max_pending=3), 16)
    calls = [int(call.read_text()) for call in tmp_path.glob("call-*")]
    assert len(calls) >= 18  # two of them died
    assert len(set(calls)) >= 3 and os.getpid() not in calls


# Whether the trials under way fail before the next one is handed out depends on who is faster.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.TrialFailedWarning")
def test_a_run_ends_when_its_cluster_does(tmp_path):
    strategy = make(finite())
    with dask_client(tmp_path, processes=False, workers=1) as client:
        Timer(1.0, client.cluster.close).start()
        options = {"executor": partial(client.get_executor, pure=False), "max_pending": 3}
        with pytest.raises(Exception, match=r"(?i)(client is closed|cancel|lost)"):
            quiet(strategy, partial(slow, 0.05), 10_000, **options)
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
