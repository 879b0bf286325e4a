"""Locks of Optuna's storages: one holder at a time, none after its end."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from typing import Any

import pytest

pytest.importorskip("optuna")

from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage, get_storage
from optuna.storages.journal import JournalFileBackend

from botorch_ext.exceptions import HostWarning
from botorch_ext.integrations import optuna_locks
from tests.hosts.in_optuna import bowl, sampler

CONTEXT: Any = multiprocessing.get_context("fork")
SUFFIX = ".asking.lock"


def lock_of(storage: Any) -> Any:
    return optuna_locks.lock_of(storage, 0)


def sqlite(folder: Any) -> Any:
    return RDBStorage(f"sqlite:///{folder}/study.db")


def cached(folder: Any) -> Any:
    return get_storage(f"sqlite:///{folder}/study.db")


def journal(folder: Any) -> Any:
    return JournalStorage(JournalFileBackend(f"{folder}/study.log"))


def takes(
    lock: Any, until: threading.Event | None = None
) -> tuple[threading.Event, threading.Thread]:
    """Another thread takes a lock, says so, and lets it go, at once or when it is told."""
    taken = threading.Event()

    def take() -> None:
        with lock:
            taken.set()
            if until is not None:
                until.wait(10)

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    return taken, thread


def excludes(first: Any, second: Any) -> bool:
    with lock_of(first):
        taken, thread = takes(lock_of(second))
        was_out = not taken.wait(0.1)
    assert taken.wait(10)
    thread.join()
    return was_out


@pytest.mark.parametrize("make", [sqlite, cached, journal])
def test_a_file_has_one_holder_by_all_its_names(make: Any, tmp_path: Any) -> None:
    other = tmp_path / "other"
    other.symlink_to(tmp_path, target_is_directory=True)
    assert excludes(make(tmp_path), make(other))
    assert excludes(make(tmp_path), make(tmp_path))
    assert [path.name.endswith(SUFFIX) for path in tmp_path.glob("*.lock")] == [True]
    (path,) = tmp_path.glob("*.lock")
    path.chmod(0o444)  # one that may only be read gives a lock too
    assert excludes(make(tmp_path), make(tmp_path))


def test_a_storage_in_memory_excludes_itself_alone(tmp_path: Any) -> None:
    for make in (InMemoryStorage, lambda: RDBStorage("sqlite://")):
        storage = make()
        assert excludes(storage, storage)
        with lock_of(storage), lock_of(make()):
            pass


def test_uris_and_working_folders(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    here = RDBStorage("sqlite:///study.db")
    by_uri = RDBStorage(f"sqlite:///file:{tmp_path}/study.db?uri=true")
    assert excludes(here, by_uri)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert excludes(here, sqlite(tmp_path))
    assert [*tmp_path.glob("**/*.lock")] == [tmp_path / f"study.db{SUFFIX}"]


@pytest.mark.parametrize("is_let_go_at_once", [False, True])
def test_a_file_that_is_deleted_while_one_waits_has_one_holder_again(
    tmp_path: Any, is_let_go_at_once: bool
) -> None:
    until = threading.Event()
    with lock_of(journal(tmp_path)):
        first, thread = takes(lock_of(journal(tmp_path)), until)
        assert not first.wait(0.1)
        os.unlink(tmp_path / f"study.log{SUFFIX}")
        # It waits for the new file, which nobody has.
        assert is_let_go_at_once or first.wait(10)
    assert first.wait(10)
    second, other = takes(lock_of(journal(tmp_path)))
    assert not second.wait(0.1)
    until.set()
    assert second.wait(10)
    thread.join()
    other.join()


def test_where_there_is_no_lock_it_is_said(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Remote(JournalStorage):
        def __init__(self) -> None:
            self._backend = object()

    assert lock_of(Remote()) is None

    def refused(*given: Any, **options: Any) -> None:
        raise PermissionError("not yours")

    monkeypatch.setattr(optuna_locks.FileLock, "acquire", refused)
    import optuna

    study = optuna.create_study(storage=sqlite(tmp_path), sampler=sampler())
    with pytest.warns(HostWarning, match="since RDBStorage has no lock|Storage has no lock") as got:
        study.optimize(bowl, n_trials=2)
    assert len(got) == 1


def test_a_long_wait_is_said(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optuna_locks, "_LONG", 0.05)
    until = threading.Event()
    taken, thread = takes(lock_of(journal(tmp_path)), until)
    assert taken.wait(10)
    threading.Timer(0.3, until.set).start()
    with pytest.warns(HostWarning, match="another process has held"), lock_of(journal(tmp_path)):
        pass
    thread.join()


def excludes_and_ends_with_its_process(make: Any, place: Any, storage: Any) -> None:
    ours, theirs = CONTEXT.Pipe()

    def hold() -> None:
        with lock_of(make(place)):
            theirs.send("held")
            time.sleep(60)

    child = CONTEXT.Process(target=hold, daemon=True)
    child.start()
    assert ours.poll(30) and ours.recv() == "held"
    taken, thread = takes(lock_of(storage))
    assert not taken.wait(0.2)
    child.kill()
    child.join()
    assert taken.wait(10)
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("make", [sqlite, journal])
def test_a_file_excludes_other_processes(make: Any, tmp_path: Any) -> None:
    excludes_and_ends_with_its_process(make, tmp_path, make(tmp_path))


@pytest.mark.slow
def test_a_child_that_was_forked_meanwhile_does_not_keep_it(tmp_path: Any) -> None:
    child = CONTEXT.Process(target=time.sleep, args=(60,), daemon=True)
    with lock_of(journal(tmp_path)):
        child.start()  # it has the open file too
    taken, thread = takes(lock_of(journal(tmp_path)))
    assert taken.wait(5)
    child.kill()
    child.join()
    thread.join()


@pytest.mark.slow
def test_a_server_excludes_other_processes() -> None:
    pytest.importorskip("psycopg")
    from benchmarks.studies import postgresql

    if not postgresql.is_installed():
        pytest.skip("no PostgreSQL server here")
    with postgresql.served() as server:
        url = server.new_database().replace("postgresql:", "postgresql+psycopg:")
        storage = RDBStorage(url)
        excludes_and_ends_with_its_process(RDBStorage, url, storage)
        with lock_of(storage):
            assert storage.get_all_studies() == []
        assert storage.engine.pool.checkedout() == 0
        storage.remove_session()
        storage.engine.dispose()
