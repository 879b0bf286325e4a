"""Locks of Optuna's storages: one holder at a time, none after its end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("optuna")
pytest.importorskip("psycopg")

from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend

from benchmarks.studies import postgresql
from botorch_ext.exceptions import HostWarning
from botorch_ext.integrations import optuna_locks


def lock_of(storage: Any, study_id: int = 0) -> Any:
    return optuna_locks.lock_of(storage, study_id)


CONTEXT: Any = multiprocessing.get_context("fork")


def _sqlite(folder: Any) -> Any:
    return RDBStorage(f"sqlite:///{folder}/study.db")


def _cached(folder: Any) -> Any:
    return get_storage(f"sqlite:///{folder}/study.db")


def _journal(folder: Any) -> Any:
    return JournalStorage(JournalFileBackend(f"{folder}/study.log"))


def _hold(make: Any, place: Any, pipe: Any) -> None:
    with lock_of(make(place)):
        pipe.send("held")
        time.sleep(60)


@contextmanager
def _held_by_another_process(make: Any, place: Any) -> Any:
    ours, theirs = CONTEXT.Pipe()
    child = CONTEXT.Process(target=_hold, args=(make, place, theirs), daemon=True)
    child.start()
    assert ours.poll(30) and ours.recv() == "held"
    try:
        yield child
    finally:
        child.kill()
        child.join()


def _takes(lock: Any, taken: threading.Event) -> threading.Thread:
    def take() -> None:
        with lock:
            taken.set()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return thread


def _excludes_and_ends_with_its_process(make: Any, place: Any, storage: Any) -> None:
    taken = threading.Event()
    with _held_by_another_process(make, place) as child:
        thread = _takes(lock_of(storage), taken)
        assert not taken.wait(0.2)
        os.kill(child.pid, signal.SIGKILL)
        assert taken.wait(10)
    thread.join()


@pytest.mark.parametrize("make", [_sqlite, _cached, _journal])
def test_a_file_excludes_other_processes(make: Any, tmp_path: Any) -> None:
    _excludes_and_ends_with_its_process(make, tmp_path, make(tmp_path))


def _server(url: str) -> Any:
    return RDBStorage(url)


@pytest.mark.skipif(not postgresql.is_installed(), reason="no PostgreSQL server here")
def test_a_server_excludes_other_processes() -> None:
    with postgresql.served() as server:
        url = server.new_database().replace("postgresql:", "postgresql+psycopg:")
        storage = _server(url)
        _excludes_and_ends_with_its_process(_server, url, storage)
        with lock_of(storage):
            assert storage.get_all_studies() == []
        assert storage.engine.pool.checkedout() == 0
        storage.remove_session()
        storage.engine.dispose()


@pytest.mark.parametrize("make", [lambda: InMemoryStorage(), lambda: RDBStorage("sqlite://")])
def test_threads_exclude_one_another_in_memory(make: Any) -> None:
    storage, taken = make(), threading.Event()
    with lock_of(storage):
        thread = _takes(lock_of(storage), taken)
        assert not taken.wait(0.1)
        with lock_of(make()):  # of another storage
            pass
    assert taken.wait(10)
    thread.join()


def test_threads_exclude_one_another_by_files(tmp_path: Any) -> None:
    taken = threading.Event()
    with lock_of(_journal(tmp_path)):
        thread = _takes(lock_of(_journal(tmp_path)), taken)
        assert not taken.wait(0.1)
    assert taken.wait(10)
    thread.join()


def test_a_file_has_one_lock_by_all_its_names(tmp_path: Any) -> None:
    taken, other = threading.Event(), tmp_path / "other"
    other.symlink_to(tmp_path, target_is_directory=True)
    with lock_of(_sqlite(tmp_path)):
        thread = _takes(lock_of(_sqlite(other)), taken)
        assert not taken.wait(0.1)
    assert taken.wait(10)
    thread.join()


def test_other_storages_have_none() -> None:
    class Remote(JournalStorage):
        def __init__(self) -> None:
            self._backend = object()

    assert lock_of(Remote()) is None


def _excludes(first: Any, second: Any) -> bool:
    taken = threading.Event()
    with lock_of(first):
        thread = _takes(lock_of(second), taken)
        excludes = not taken.wait(0.1)
    assert taken.wait(10)
    thread.join()
    return excludes


def test_a_lock_stays_where_the_working_folder_changes(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = RDBStorage("sqlite:///study.db")
    with lock_of(here):
        pass
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert _excludes(here, _sqlite(tmp_path))
    assert not list(elsewhere.iterdir())
    assert {file.name for file in tmp_path.glob("*.lock")} == {"study.db.asking.lock"}


def test_uris_of_sqlite(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    by_uri = RDBStorage(f"sqlite:///file:{tmp_path}/study.db?uri=true")
    assert _excludes(by_uri, _sqlite(tmp_path))
    shared = RDBStorage("sqlite:///file::memory:?cache=shared&uri=true")
    assert _excludes(shared, shared)
    assert [file.name for file in tmp_path.glob("*.lock")] == ["study.db.asking.lock"]


def test_a_file_that_is_deleted_and_made_again_has_one_holder(tmp_path: Any) -> None:
    taken, other = threading.Event(), threading.Event()
    with lock_of(_journal(tmp_path)):
        first = _takes(lock_of(_journal(tmp_path)), taken)
        assert not taken.wait(0.1)
        os.unlink(tmp_path / "study.log.asking.lock")
        assert taken.wait(10)  # it waits for the new one, which nobody has
        with lock_of(_journal(tmp_path)):
            second = _takes(lock_of(_journal(tmp_path)), other)
            assert not other.wait(0.1)
    assert other.wait(10)
    first.join()
    second.join()


def test_a_folder_that_cannot_be_written_gives_no_lock(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> int:
        raise PermissionError(path)

    storage = _sqlite(tmp_path)
    monkeypatch.setattr(optuna_locks, "_opened", refused)
    assert lock_of(storage) is None


def test_a_file_that_may_only_be_read_gives_a_lock(tmp_path: Any) -> None:
    with lock_of(_sqlite(tmp_path)):
        pass
    (tmp_path / "study.db.asking.lock").chmod(0o444)
    assert _excludes(_sqlite(tmp_path), _sqlite(tmp_path))


def test_a_long_wait_is_said(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_locks, "_LONG", 0.05)
    lock = lock_of(_journal(tmp_path))
    lock.__enter__()
    threading.Timer(0.3, lambda: lock.__exit__(None, None, None)).start()
    other = lock_of(_journal(tmp_path))
    with pytest.warns(HostWarning, match="another process has held"), other:
        pass


def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Any) -> None:
    child = CONTEXT.Process(target=time.sleep, args=(60,), daemon=True)
    with lock_of(_journal(tmp_path)):
        child.start()  # it has the open file too
    taken = threading.Event()
    try:
        thread = _takes(lock_of(_journal(tmp_path)), taken)
        assert taken.wait(5)
    finally:
        child.kill()
        child.join()
    thread.join()
