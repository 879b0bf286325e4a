"""Locks of Optuna's storages, so that one process or thread at a time asks for a study."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from filelock import BaseFileLock, FileLock, Timeout
from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from botorch_ext.exceptions import HostWarning

# The suffix of the lock file of a storage. The file is empty and may be deleted when nobody asks.
# Optuna itself locks a journal by a file whose name ends in .lock.
_SUFFIX = ".asking.lock"
# The number of the advisory locks of PostgreSQL, beside the id of a study.
_NUMBER = 0x626F746F
# The time between two tries, and the wait before a warning, in seconds.
_PAUSE, _LONG = 0.01, 60.0
_of_memory: weakref.WeakKeyDictionary[BaseStorage, Any] = weakref.WeakKeyDictionary()
_files: weakref.WeakKeyDictionary[BaseStorage, str] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def lock_of(storage: BaseStorage, study_id: int) -> AbstractContextManager[Any] | None:
    """The lock that only one process or thread can hold at a time.

    It is a lock file beside the file of SQLite or of a journal, an advisory lock of PostgreSQL, or
    a lock of threads for a storage in memory. It is released when its process ends.

    Args:
        storage: The storage of a study.
        study_id: The id of the study; a file has one lock for all its studies.

    Returns:
        The lock as a context manager; None if the storage has no lock or its file cannot be made.
    """
    if type(storage).__name__ == "_CachedStorage":
        storage = getattr(storage, "_backend", storage)
    if isinstance(storage, RDBStorage) and storage.engine.dialect.name == "postgresql":
        return _locked_server(storage.engine, study_id)
    file = _file_of(storage)
    if file == "":
        with _guard:
            return _of_memory.setdefault(storage, threading.Lock())
    if file is None:
        return None
    # Threads wait for each other too, since each has a lock of its own. Every user may lock it.
    lock = FileLock(file + _SUFFIX, mode=0o666, thread_local=False)
    return _locked_file(lock) if _is_possible(lock) else None


def _file_of(storage: BaseStorage) -> str | None:
    """The absolute path of the file of a storage, found when the storage was first seen, since the
    working folder may change. Empty for a storage in memory; None if there is no file."""
    with _guard:
        if storage not in _files:
            file = _found_file(storage)
            if file is None:
                return None
            _files[storage] = os.path.realpath(file) if file else ""
        return _files[storage]


def _found_file(storage: BaseStorage) -> str | None:
    if isinstance(storage, InMemoryStorage):
        return ""
    if isinstance(storage, JournalStorage):
        backend = storage._backend
        return backend._file_path if isinstance(backend, JournalFileBackend) else None
    if isinstance(storage, RDBStorage) and storage.engine.dialect.name == "sqlite":
        with storage.engine.connect() as connection:
            rows = connection.exec_driver_sql("PRAGMA database_list").fetchall()
        return next((file or "" for _, name, file in rows if name == "main"), "")
    return None


def _is_possible(lock: BaseFileLock) -> bool:
    try:
        with lock.acquire(blocking=False):
            return True
    except Timeout:  # another one has it
        return True
    except OSError:
        return False


@contextmanager
def _locked_file(lock: BaseFileLock) -> Iterator[None]:
    try:
        lock.acquire(timeout=_LONG, poll_interval=_PAUSE)
    except Timeout:
        warnings.warn(
            f"another process has held the lock {lock.lock_file} for {_LONG:g} s: if that process "
            "is stopped, end it",
            HostWarning,
            stacklevel=4,
        )
        lock.acquire(poll_interval=_PAUSE)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _locked_server(engine: Any, study_id: int) -> Iterator[None]:
    # A separate connection, since the storage may have only one.
    connection = engine.pool.recreate().connect()
    try:
        # Otherwise the wait would be a transaction, which prevents the server from cleaning up.
        connection.dbapi_connection.autocommit = True
        connection.cursor().execute(f"SELECT pg_advisory_lock({_NUMBER}, {study_id})")
        yield
    finally:
        connection.invalidate()  # closes it, and ends the lock
        connection.close()
