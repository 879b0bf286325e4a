"""Locks of Optuna's storages: one process or thread at a time asks for a study."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from optuna.storages import BaseStorage, InMemoryStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on Windows
    fcntl = None

# What the name of a file of a storage gets; the file is empty, and may be deleted when nobody asks.
_SUFFIX = ".asking"
# Of PostgreSQL, for all studies of a database.
_NUMBER = 0x626F746F72636865
_of_memory: weakref.WeakKeyDictionary[BaseStorage, Any] = weakref.WeakKeyDictionary()
_guard = threading.Lock()


def lock_of(storage: BaseStorage) -> AbstractContextManager[Any] | None:
    """What only one process has at a time: the lock of a file beside that of SQLite or of a
    journal, an advisory lock of PostgreSQL, in memory that of a thread. It ends with the process
    that has it. None where there is no such lock.

    Args:
        storage: Of a study.
    """
    storage = getattr(storage, "_backend", storage) if _is_cached(storage) else storage
    if isinstance(storage, InMemoryStorage):
        return _lock_in_memory(storage)
    path = None
    if isinstance(storage, JournalStorage):
        backend = storage._backend
        path = backend._file_path if isinstance(backend, JournalFileBackend) else None
    elif isinstance(storage, RDBStorage):
        url = storage.engine.url
        if url.get_backend_name() == "postgresql":
            return _locked_server(storage.engine)
        if url.get_backend_name() == "sqlite":
            if url.database in (None, "", ":memory:"):
                return _lock_in_memory(storage)
            path = url.database
    return None if path is None or fcntl is None else _locked_file(os.path.realpath(path) + _SUFFIX)


def _is_cached(storage: BaseStorage) -> bool:
    return type(storage).__name__ == "_CachedStorage"


def _lock_in_memory(storage: BaseStorage) -> Any:
    with _guard:
        return _of_memory.setdefault(storage, threading.Lock())


@contextmanager
def _locked_file(path: str) -> Iterator[None]:
    locks: Any = fcntl
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # Threads have one another's too, as each opens the file for itself.
        locks.flock(file, locks.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def _locked_server(engine: Any) -> Iterator[None]:
    # A connection of its own: the storage may have but one.
    connection = engine.pool.recreate().connect()
    try:
        cursor = connection.cursor()
        cursor.execute(f"SELECT pg_advisory_lock({_NUMBER})")
        yield
    finally:
        connection.invalidate()  # closes it, and ends the lock
        connection.close()
