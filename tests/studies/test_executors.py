"""Executors of other libraries, with workers that die."""

import logging
import multiprocessing
import os
import threading
from concurrent.futures import (
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import contextmanager
from functools import partial
from pickle import PicklingError
from threading import Timer
from types import SimpleNamespace

import pytest

from botorch_ext import run
from botorch_ext.exceptions import ObjectiveError, TrialFailedWarning
from botorch_ext.studies import running_study
from tests.objectives import (
    ends_at_first,
    f,
    first_call_fails,
    first_worker_dies,
    killed_at_first,
    slow,
)
from tests.strategies.sessions import finite, make

quiet = partial(run, progress=False)


class Plain(Executor):
    """Evaluates at once; its end takes what a test says."""

    def __init__(self):
        self.ended = []

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args))
        return future


class AsDask(Plain):
    def shutdown(self, wait=True):
        self.ended.append({"wait": wait})


class AsLoky(Plain):
    def shutdown(self, wait=True, kill_workers=False):
        self.ended.append({"wait": wait, "kill_workers": kill_workers})


class AsOfPython(Plain):
    def shutdown(self, wait=True, *, cancel_futures=False):
        self.ended.append({"wait": wait, "cancel_futures": cancel_futures})


@pytest.mark.parametrize(
    ("kind", "more"),
    [(AsDask, {}), (AsLoky, {"kill_workers": False}), (AsOfPython, {"cancel_futures": True})],
)
def test_a_made_executor_is_shut_down_with_what_it_understands(kind, more):
    executor = kind()
    quiet(make(finite()), f, 4, executor=lambda: executor)
    assert executor.ended == [{"wait": True, **more}]
    quiet(make(finite()), f, 4, executor=executor)  # a given one is the caller's
    assert len(executor.ended) == 1
    with pytest.raises(ObjectiveError):
        quiet(make(finite()), lambda x: None, 4, executor=lambda: executor)
    assert executor.ended[1:] == [{"wait": False, **more}]


def test_an_executor_that_can_only_submit_needs_no_end():
    assert (
        len(
            quiet(make(finite()), f, 4, executor=lambda: SimpleNamespace(submit=Plain().submit)).ids
        )
        == 4
    )


def test_an_objective_in_a_thread_may_fail_to_pickle():
    calls = []

    def objective(x):
        calls.append(x)
        if len(calls) == 2:
            raise PicklingError("a cache of its own")
        return f(x)

    executor = partial(ThreadPoolExecutor, 1)
    assert quiet(make(finite()), objective, 4, executor=executor, max_retries=1).ids
    assert len(calls) == 5


def test_a_function_that_makes_no_executor():
    with pytest.raises(ValueError, match="executor must make an Executor, got 3"):
        quiet(make(finite()), f, 4, executor=lambda: 3)


@pytest.fixture
def loky_pool():
    loky = pytest.importorskip("joblib.externals.loky")
    return partial(loky.ProcessPoolExecutor, 1)


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


@pytest.mark.parametrize("made", [False, True], ids=["instance", "factory"])
def test_dask_in_threads(tmp_path, made):
    strategy = make(finite())
    objective = partial(first_call_fails, str(tmp_path / "flag"))
    with dask_client(tmp_path, processes=False, workers=1) as client:
        executor = partial(client.get_executor, pure=False)
        given = executor if made else executor()
        result = quiet(strategy, objective, 10, executor=given, max_pending=3, max_retries=1)
        assert client.submit(int).result() == 0  # the caller's client stays open
    assert (tmp_path / "flag").exists()
    assert sorted(result.ids) == list(range(10))
    assert result.failures == []
    assert all(y == f(x) for x, y in zip(result.X, result.Y.tolist(), strict=True))


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


def _spawned(num_workers):
    return ProcessPoolExecutor(num_workers, mp_context=multiprocessing.get_context("spawn"))


@pytest.mark.parametrize("raised", [SystemExit, GeneratorExit])
@pytest.mark.parametrize("pool", [ThreadPoolExecutor, _spawned])
def test_an_objective_that_ends_its_worker_fails_its_trial(tmp_path, pool, raised):
    objective = partial(ends_at_first, str(tmp_path / "flag"), raised)
    with pool(1) as executor, pytest.warns(TrialFailedWarning, match=raised.__name__):
        result = quiet(make(finite()), objective, 3, executor=executor, max_retries=0)
    assert result.ids == [1, 2]
    assert [(each.id, type(each.error)) for each in result.failures] == [(0, raised)]
