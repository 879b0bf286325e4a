"""`run` on a study that cannot be reached for a while, and what it keeps when it ends."""

import threading
import warnings
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

import pytest

import botorch_ext as bx
from botorch_ext import run
from botorch_ext.exceptions import (
    TrialFailedWarning,
    UnreachableStudyError,
    UntoldValueWarning,
)
from botorch_ext.studies import target
from botorch_ext.studies.journal import Journal
from tests.studies.kept import at_random

quiet = partial(run, progress=False)


@pytest.fixture
def study(tmp_path):
    return bx.Study(tmp_path / "lab.db", at_random())


class AtOnce(Executor):
    """Evaluates when it is submitted: all that is under way has come."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        try:
            future.set_result(fn(*args))
        except Exception as error:  # noqa: BLE001 - as executors do
            future.set_exception(error)
        return future


@pytest.fixture
def outage(monkeypatch):
    """While it is set no database answers."""
    away = threading.Event()
    for name in ("reading", "writing"):
        usual = getattr(Journal, name)

        @contextmanager
        def use(self, usual=usual):
            if away.is_set():
                raise UnreachableStudyError("away")
            with usual(self) as connection:
                yield connection

        monkeypatch.setattr(Journal, name, use)
    return away


@pytest.mark.parametrize("progress", [False, True])
def test_a_run_waits_for_a_study_that_comes_back(study, outage, progress):
    calls, back = [], threading.Timer(0.6, outage.clear)

    def objective(x):
        calls.append(x)
        if len(calls) == 6:
            outage.set()
            back.start()
        return 0.5

    result = run(
        study,
        objective,
        12,
        executor=partial(ThreadPoolExecutor, 4),
        max_pending=4,
        progress=progress,
    )
    back.join()
    assert sorted(result.ids) == list(range(12))
    assert len(calls) == 12


def test_the_bar_ends_no_run(study, monkeypatch):
    shown = []

    def unreachable(self, look):
        shown.append(self)
        raise UnreachableStudyError("away")

    monkeypatch.setattr(target.Target, "read_once", unreachable)
    monkeypatch.setattr(target.Target, "read", lambda self, look: self.asked._kept.read(look))
    assert run(study, lambda x: 0.5, 3).ids == [0, 1, 2]
    assert shown


def test_values_that_cannot_be_told_are_shown(study, outage, monkeypatch):
    monkeypatch.setattr(target, "_PATIENCE", 0.3)
    calls = []

    def objective(x):
        calls.append(x)
        if len(calls) == 4:
            outage.set()
        return float(len(calls))

    with (
        pytest.warns(UntoldValueWarning) as caught,
        pytest.raises(UnreachableStudyError, match="away"),
    ):
        quiet(study, objective, 12, executor=AtOnce(), max_pending=4)
    outage.clear()
    assert study.pending == [0, 1, 2, 3]
    for id in range(4):
        assert f"{id + 1.0} for trial {id} at " in str(caught[0].message)


def test_a_warning_that_is_made_an_error_loses_no_value(study):
    calls = []

    def objective(x):
        calls.append(x)
        if len(calls) == 3:
            raise OSError("broken")
        return 0.5

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TrialFailedWarning):
            quiet(study, objective, 20, executor=AtOnce(), max_pending=8, max_retries=0)
    assert study.report()["num_told"] == 7
    assert study.report()["failed"] == [2]
    assert study.pending == []
