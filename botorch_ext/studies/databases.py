"""Databases of studies: SQLite files and PostgreSQL servers, and what they fail with."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import Any

try:
    from sqlalchemy import create_engine
    from sqlalchemy.engine import URL, Connection, Engine, make_url
    from sqlalchemy.event import listen
    from sqlalchemy.exc import ArgumentError, DBAPIError
    from sqlalchemy.exc import TimeoutError as PoolTimeoutError
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    needs = "a study needs SQLAlchemy: pip install 'botorch-ext[studies]'"
    raise ImportError(needs) from error

from botorch_ext.exceptions import (
    BrokenStudyError,
    NoStudyError,
    StudyError,
    UnreachableStudyError,
    UnwritableStudyError,
)
from botorch_ext.studies.sqlite_files import (
    log_of,
    only_read,
    prepare_file,
    warn_of_network_file_systems,
)

# Seconds that a call waits for those of others, which may take long to decide.
_PATIENCE = 600
_FORMS = "a path, or a URL that begins with sqlite:// or postgresql://"


class Database:
    """One connection to the database of a study, for all threads of a process.

    Connections are closed before a fork: SQLite would lose its locks, and two processes would speak
    on one socket.

    Args:
        place: A path, or a URL.
        read_only: Whether it is only looked at: then nothing is made and nothing is locked.

    Raises:
        StudyError: Another place, a driver that is not installed, or a file that is only looked at
            and not there.

    Warns:
        NetworkFileSystemWarning: The file lies on one.
    """

    def __init__(self, place: str | os.PathLike[str], read_only: bool = False) -> None:
        self.url = url = _url_of(place)
        self.lock = RLock()
        self._read_only = read_only
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        #: How messages call it: without a password.
        self.name = self.url.database or ""
        options: dict[str, Any] = {"pool_size": 1, "max_overflow": 0, "hide_parameters": True}
        if self.is_sqlite:
            self.name = str(Path(self.name).absolute())
            warn_of_network_file_systems(self.name)
            options["connect_args"] = {"timeout": _PATIENCE, "isolation_level": None}
            if read_only:
                url = url.set(**only_read(Path(self.name)))
        else:
            self.name = f"{self.url.host}:{self.url.port or 5432}/{self.name}"
            options["pool_pre_ping"] = True
        self.engine: Engine = create_engine(url, **options)
        prepare = prepare_file if self.is_sqlite else _prepare
        listen(self.engine, "connect", _prepare_to_read if read_only else prepare)
        _opened.add(self)
        weakref.finalize(self, self.engine.dispose)

    @property
    def stamp(self) -> tuple[int, ...]:
        """What changes when a file does that is read as if nobody wrote to it; else always the
        same."""
        if self.engine.url.query.get("immutable") is None:
            return ()
        try:
            status = os.stat(self.name)
        except OSError:
            return (-1,)
        return status.st_ino, status.st_size, status.st_mtime_ns, log_of(self.name).exists()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that sees what was committed."""
        with self.lock, self._errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction, committed at the end of the block; on SQLite no other one is under way."""
        with self.lock, self._errors(), self.engine.connect() as connection:
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """What the driver raises as an error of this library."""
        try:
            yield
        except DBAPIError as error:
            raise self._named(error.orig) from error
        except sqlite3.Error as error:
            raise self._named(error) from error
        except PoolTimeoutError as error:
            raise UnreachableStudyError(f"{self.name} is in use: {error}") from error

    def _named(self, cause: Any) -> StudyError:
        code = getattr(cause, "sqlite_errorname", "")
        if code == "SQLITE_NOTADB":
            return NoStudyError(f"{self.name} must be the file of a study, got another file")
        if code.startswith("SQLITE_CORRUPT"):
            return BrokenStudyError(f"{self.name} was truncated or changed: {cause}")
        if self._read_only and code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return UnreachableStudyError(f"{self.name} cannot be read: {cause}")
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return UnwritableStudyError(f"{self.name} cannot be written, is the disk full? {cause}")
        if code.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            return UnwritableStudyError(f"{self.name} must be writable, got: {cause}")
        if code.startswith("SQLITE_CANTOPEN"):
            return UnwritableStudyError(f"{self.name} and its folder must be writable: {cause}")
        if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            return UnreachableStudyError(f"{self.name} was in use for {_PATIENCE} s: {cause}")
        return UnreachableStudyError(f"{self.name} does not answer as it should: {cause}")


def _url_of(place: str | os.PathLike[str]) -> URL:
    if not isinstance(place, str) or "://" not in place:
        return URL.create("sqlite", database=os.fspath(place))
    try:
        url = make_url(place)
    except (ArgumentError, ValueError):
        # Without the cause: it may show a password.
        raise StudyError(f"a study must be at {_FORMS}, got a URL that cannot be read") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    if url.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise StudyError(f"a study must be at {_FORMS}, got one that begins with {url.drivername}")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise StudyError("a study must be in a file, got a database in memory")
    if url.drivername == "postgresql+psycopg" and find_spec("psycopg") is None:
        raise StudyError("PostgreSQL needs psycopg: pip install 'botorch-ext[postgresql]'")
    return url


def _prepare_to_read(connection: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    else:
        connection.read_only = True


def _prepare(connection: Any, _: Any) -> None:
    cursor = connection.cursor()
    cursor.execute("SET synchronous_commit TO on")
    cursor.close()
    connection.commit()


# --- forks ----------------------------------------------------------------------------------------

_opened: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    for database in list(_opened):
        database.lock.acquire()  # once nobody uses the connection
        database.engine.dispose()
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    while _held:
        _held.pop().lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
