"""Databases of studies: connections to SQLite files and PostgreSQL servers, and their errors."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import RLock, get_ident
from typing import Any, TypeVar, cast

try:
    from sqlalchemy import create_engine
    from sqlalchemy.engine import Connection, Engine
    from sqlalchemy.event import listen
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError
    from sqlalchemy.pool import QueuePool
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    needs = "a study needs SQLAlchemy: pip install 'botorch-ext[studies]'"
    raise ImportError(needs) from error

from botorch_ext.exceptions import (
    BrokenStudyError,
    MovedStudyError,
    NoStudyError,
    StudyError,
    UnreachableStudyError,
    UnwritableStudyError,
)
from botorch_ext.studies.addresses import url_of
from botorch_ext.studies.postgresql_servers import CLIENT_SETTINGS, prepare_server
from botorch_ext.studies.sqlite_files import (
    Hold,
    bound_texts,
    log_of,
    only_read,
    require_not_cut,
    resolved,
    warn_of_network_file_systems,
)

T = TypeVar("T")

# For how many seconds a call waits for the calls of other processes, which may compute long.
_LONGEST_WAIT = 1800.0
# For how many seconds SQLite waits by itself, during which Ctrl-C has no effect.
_DEAF = 0.1


class Database:
    """One connection to the database of a study, which all threads of a process share. Threads use
    it one at a time, by `alone`.

    Connections are closed before a fork. SQLite would otherwise lose its locks, and two processes
    would use one socket.

    Args:
        place: A path or a URL.
        read_only: Whether the database is only read: nothing is then made and nothing is locked.

    Raises:
        StudyError: The place is none, its driver is not installed, or a file to be read is missing.

    Warns:
        NetworkFileSystemWarning: The file lies on a network file system.
    """

    def __init__(self, place: str | os.PathLike[str], read_only: bool = False) -> None:
        self.url = url = url_of(place)
        self.lock = RLock()
        self._read_only = read_only
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        #: The name in messages, without a password.
        self.name = self.url.database or ""
        #: Whether the whole file was checked.
        self.is_checked = False
        self.hold: Hold | None = None
        self._alone: int | None = None  # the thread in a call of `alone`
        self._last: list[Any] = []  # the last connection that the pool made
        options: dict[str, Any] = {"pool_size": 1, "max_overflow": -1, "hide_parameters": True}
        if self.is_sqlite:
            self.name = resolved(self.name)  # the path beside which SQLite has its log
            warn_of_network_file_systems(self.name)
            options["connect_args"] = {"timeout": _DEAF, "isolation_level": None}
            if read_only:
                url = url.set(**only_read(Path(self.name)))
            else:
                require_not_cut(self.name)
                self.hold = Hold(self.name)
        else:
            self.name = f"{self.url.host}:{self.url.port or 5432}/{self.name}"
            given = {key: n for key, n in CLIENT_SETTINGS.items() if key not in url.query}
            options |= {"pool_pre_ping": True, "connect_args": given}
            # A snapshot from before the lock would not see what the last owner of the lock did.
            options["isolation_level"] = "READ COMMITTED"
        self.engine: Engine = create_engine(url, **options)
        listen(self.engine, "connect", partial(_note, self._last))
        listen(self.engine, "close", _end)
        prepare = partial(prepare_server, _LONGEST_WAIT) if self.hold is None else self.hold.prepare
        listen(self.engine, "connect", _prepare_to_read if read_only else prepare)
        _opened.add(self)
        weakref.finalize(self, _close, self.engine, self.hold)

    @property
    def is_missing(self) -> bool:
        """Whether the file is missing; a connection would make it."""
        return self.is_sqlite and not os.path.exists(self.name)

    @property
    def stamp(self) -> tuple[int, ...]:
        """A value that changes with a file that is read without locks; of other databases it is
        always the same."""
        if self.engine.url.query.get("immutable") is None:
            return ()
        try:
            status = os.stat(self.name)
        except OSError:
            return (-1,)
        return status.st_ino, status.st_size, status.st_mtime_ns, log_of(self.name).exists()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection that reads what was committed."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is committed at the end of the block. On SQLite there is no other
        transaction at the same time."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
            try:
                connection.commit()
            except AssertionError as error:  # SQLAlchemy, if its commit is interrupted
                raise error.__context__ or error from None
            self._require_at_its_path(connection)

    def keep(self) -> None:
        """Marks the database as one with studies: its file has a log from now on, and is not made
        again if it is deleted."""
        if self.hold is not None and not self.hold.is_study:
            with self.lock:
                self.hold.is_study = True
                self.engine.dispose()

    def carry_over(self) -> None:
        """Writes the log into its file as far as possible, so that a copy of the file alone has
        what was committed."""
        if self.is_sqlite:
            with self.reading() as connection:
                connection.rollback()
                connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")

    def alone(self, work: Callable[[], T]) -> T:
        """The result of a call that no other thread of this process interrupts.

        Nothing stays locked if Ctrl-C, or an exception of a signal handler, interrupts the call at
        any line, even if the exception is kept with its frames. A ``with`` block would not do: just
        before and after it there are moments in which it releases nothing.
        """
        try:
            try:
                self.lock.acquire()
                self._alone = get_ident()
                return work()
            finally:
                self._let_go()
        finally:  # the call above may have been interrupted
            self._let_go()

    @property
    def is_alone(self) -> bool:
        """Whether this thread is in a call of `alone`."""
        return self._alone == get_ident()

    def close(self) -> None:
        """Closes the connection, which the next use opens again."""
        with self.lock:
            _close(self.engine, self.hold)

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._errors():
            self._roll_back()
            connection = self._begun(begin) if self.is_sqlite else self.engine.connect()
            try:
                yield connection
            except GeneratorExit:  # Ctrl-C left this block, which is rolled back elsewhere
                raise
            except BaseException:
                with suppress(SQLAlchemyError):  # the state of the connection may be unknown
                    connection.close()
                raise
            connection.close()

    def _let_go(self) -> None:
        """Releases what this thread still holds: its transaction and the lock."""
        if self.lock.acquire(blocking=False):  # this thread has the lock, or no thread has it
            self._roll_back()
            self._alone = None
            with suppress(RuntimeError):  # raised once this thread no longer has the lock
                while True:
                    self.lock.release()

    def _roll_back(self) -> None:
        """Ends the transaction of a call that was interrupted."""
        if not self._last:
            return
        record = self._last[0]
        raw = record.dbapi_connection
        if raw is None or (self._is_idle and not _is_in_transaction(raw)):
            return
        if hasattr(record, "finalize_callback"):
            record.invalidate()
        else:  # SQLAlchemy 2.0, if its first statements failed
            raw.close()
        self.engine.dispose()

    def _begun(self, begin: str) -> Connection:
        """A connection to a file, in a transaction. This method waits, instead of SQLite, where
        Ctrl-C has no effect."""
        end = time.monotonic() + _LONGEST_WAIT
        while True:
            if self._would_make_anew():
                raise _moved(self.name)
            try:
                connection = self.engine.connect()
                try:
                    connection.exec_driver_sql(begin)
                    connection.exec_driver_sql("PRAGMA schema_version")  # reads the current file
                    self._require_at_its_path(connection)
                except BaseException:
                    connection.close()
                    raise
            except (DBAPIError, sqlite3.Error) as error:
                if not _is_in_use(getattr(error, "orig", error)) or time.monotonic() > end:
                    raise
                time.sleep(_DEAF / 10)
            else:
                return connection

    @property
    def _is_idle(self) -> bool:
        """Whether there is a connection that nobody uses."""
        return cast(QueuePool, self.engine.pool).checkedin() > 0

    def _would_make_anew(self) -> bool:
        known = self.hold is not None and self.hold.is_taken
        return known and not self._is_idle and self.is_missing

    def _require_at_its_path(self, connection: Connection) -> None:
        """Raises a MovedStudyError, and closes the file, if another file or another log lies at its
        path."""
        moved = None if self.hold is None else self.hold.moved(connection)
        if moved is None:
            return
        if moved == self.name:  # complete the moved file, whose log does not fit the file here
            connection.rollback()
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        # All connections of this process share what SQLite knows of the log, so all are closed. The
        # files are still held, so that none writes an old log back or deletes the log of others.
        same = [each for each in list(_opened) if each.name == self.name]
        locked = [each for each in same if each.lock.acquire(blocking=False)]
        if len(locked) == len(same):
            for each in same:
                each.engine.dispose()
        for each in locked:
            each.lock.release()
        raise _moved(moved)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Converts errors of the driver to errors of this library."""
        try:
            yield
        except DBAPIError as error:
            raise self._named(error.orig) from error
        except SQLAlchemyError as error:  # an exception was raised within SQLAlchemy
            raise getattr(error, "orig", None) or error.__context__ or error from None
        except sqlite3.Error as error:
            raise self._named(error) from error
        except UnicodeDecodeError as error:  # of a text that nobody wrote
            raise BrokenStudyError(f"{self.name} was changed: {error}") from error

    def _named(self, cause: Any) -> StudyError:
        code = getattr(cause, "sqlite_errorname", "")
        if code == "SQLITE_NOTADB":
            return NoStudyError(f"{self.name} must be the file of a study, got another file")
        if code.startswith(("SQLITE_CORRUPT", "SQLITE_TOOBIG")):
            return BrokenStudyError(f"{self.name} was truncated or changed: {cause}")
        if self._read_only and code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return UnreachableStudyError(f"{self.name} cannot be read: {cause}")
        if code.startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return UnwritableStudyError(f"{self.name} cannot be written, is the disk full? {cause}")
        if code.startswith(("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH")):
            return UnwritableStudyError(f"{self.name} and its folder must be writable: {cause}")
        if code.startswith("SQLITE_CANTOPEN"):
            return UnwritableStudyError(
                f"{self.name} must be writable, and its folder there and writable: {cause}"
            )
        if _is_in_use(cause):
            return UnreachableStudyError(f"{self.name} was in use for {_LONGEST_WAIT} s: {cause}")
        return UnreachableStudyError(f"{self.name} does not answer as it should: {cause}")


def _is_in_use(cause: Any) -> bool:
    code = getattr(cause, "sqlite_errorname", "") or getattr(cause, "sqlstate", None) or ""
    return code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "55P03"))


def _is_in_transaction(raw: Any) -> bool:
    if isinstance(raw, sqlite3.Connection):
        return raw.in_transaction
    return raw.info.transaction_status.name != "IDLE"


def _moved(path: str) -> MovedStudyError:
    return MovedStudyError(
        f"{path} was moved, deleted or replaced while it was open: bring it back, and look whether "
        "the last call was kept"
    )


def _note(last: list[Any], _: Any, record: Any) -> None:
    last[:] = [record]


def _end(connection: Any, _: Any) -> None:
    """Ends the transaction of a connection before the connection is closed. The frames of an
    exception may keep a statement, which would keep the transaction and its locks alive."""
    if isinstance(connection, sqlite3.Connection):
        with suppress(sqlite3.Error):
            connection.rollback()


def _close(engine: Engine, hold: Hold | None) -> None:
    if hold is not None:
        hold.release()
    engine.dispose()
    if hold is not None:
        hold.drop()


def _prepare_to_read(connection: Any, _: Any) -> None:
    if isinstance(connection, sqlite3.Connection):
        bound_texts(connection)
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA trusted_schema = OFF")
    else:
        connection.read_only = True


# --- forks ----------------------------------------------------------------------------------------

_opened: weakref.WeakSet[Database] = weakref.WeakSet()
_held: list[Database] = []


def _before_fork() -> None:
    for database in list(_opened):
        database.lock.acquire()  # once nobody uses the connection
        database.engine.dispose()  # while held, so that the log stays
        _held.append(database)


def _after_fork_in_parent() -> None:
    while _held:
        _held.pop().lock.release()


def _after_fork_in_child() -> None:
    while _held:
        database = _held.pop()
        database.lock = RLock()
        if database.hold is not None:
            database.hold.drop()  # without a release, which would be that of the parent


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork_in_parent,
        after_in_child=_after_fork_in_child,
    )
