"""Journal: the events of studies in a database, to which events are only added."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.schema import CreateTable

from botorch_ext.checks import short
from botorch_ext.exceptions import BrokenStudyError, NewerStudyError, NoStudyError, StudyError
from botorch_ext.plain_events import from_json, to_json
from botorch_ext.studies.databases import Database

#: Schema 1 is that of versions 0.1 and 0.2.
SCHEMA = 2

_METADATA = sa.MetaData()
_STUDIES = sa.Table(
    "botorch_ext_studies",
    _METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("schema", sa.Integer, nullable=False),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("minimize", sa.Boolean, nullable=False),
    # The number and the digest of the last event, which could otherwise be deleted unnoticed; the
    # digest of each other event is part of the next digest. Null before the first event.
    sa.Column("last", sa.Integer),
    sa.Column("last_digest", sa.String(32)),
)
# Apart from the studies, whose rows are written anew with each event: it may have megabytes.
_DESCRIPTIONS = sa.Table(
    "botorch_ext_descriptions",
    _METADATA,
    sa.Column("study", sa.ForeignKey(_STUDIES.c.id), primary_key=True),
    sa.Column("description", sa.Text, nullable=False),
)
_EVENTS = sa.Table(
    "botorch_ext_events",
    _METADATA,
    sa.Column("study", sa.ForeignKey(_STUDIES.c.id), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),  # seconds since 1970
    sa.Column("body", sa.Text, nullable=False),
    # The digest of this event and of all events before it.
    sa.Column("digest", sa.String(32), nullable=False),
    # The events lie in the index, so that one page is written and not two.
    sqlite_with_rowid=False,
)
# What a file may hold besides the tables as SQLAlchemy makes them today: the tables as versions
# since 0.3.0 made them, and the tables of ANALYZE. Triggers, views and generated columns would run
# SQL of a stranger who made the file.
MADE_BEFORE = (
    "CREATE TABLE botorch_ext_studies (id INTEGER NOT NULL, schema INTEGER NOT NULL, "
    "name TEXT NOT NULL, minimize BOOLEAN NOT NULL, last INTEGER, "
    "last_digest VARCHAR(32), PRIMARY KEY (id), UNIQUE (name))",
    "CREATE TABLE botorch_ext_descriptions (study INTEGER NOT NULL, description TEXT NOT NULL, "
    "PRIMARY KEY (study), FOREIGN KEY(study) REFERENCES botorch_ext_studies (id))",
    "CREATE TABLE botorch_ext_events (study INTEGER NOT NULL, number INTEGER NOT NULL, "
    "at DOUBLE NOT NULL, body TEXT NOT NULL, digest VARCHAR(32) NOT NULL, "
    "PRIMARY KEY (study, number), FOREIGN KEY(study) REFERENCES botorch_ext_studies (id)) "
    "WITHOUT ROWID",
    "CREATE TABLE sqlite_stat1(tbl,idx,stat)",
    "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
)
# The lock under which tables are made on PostgreSQL.
_ADVISORY_LOCK = 0x626F746F


@dataclass(frozen=True)
class Position:
    """A position in a journal, up to which it was read."""

    count: int
    digest: str


@dataclass(frozen=True)
class Entry:
    """An event as the database has it.

    Args:
        at: When the event was added, in seconds since 1970.
        body: The event as one line of JSON.
    """

    at: float
    body: str


@dataclass(frozen=True)
class Journal:
    """The events of one study."""

    database: Database
    id: int
    name: str
    minimize: bool
    description: dict[str, Any]
    start: Position

    @classmethod
    def open(cls, database: Database, name: str) -> Journal | None:
        """Opens the journal of a study.

        Returns:
            The journal; None if there is no study of that name.

        Raises:
            NoStudyError: The file holds something else than studies.
            BrokenStudyError: The file was truncated or changed.
            NewerStudyError: The schema of the study is newer than this library.
        """
        if database.is_missing:
            return None
        with database.reading() as connection:
            found = cls._found(connection, database, name)
        if found is not None:
            database.keep()
        return found

    @classmethod
    def begin(
        cls, database: Database, name: str, minimize: bool, description: dict[str, Any]
    ) -> Journal:
        """Begins a study, unless another process has just begun one of that name."""
        database.keep()
        with database.writing() as connection:
            if not database.is_sqlite:
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY_LOCK)))
            _METADATA.create_all(connection)
            row = {"schema": SCHEMA, "name": name, "minimize": minimize}
            text = to_json(description)
            if cls._found(connection, database, name) is None:
                connection.execute(_STUDIES.insert().values(**row))
                own = sa.select(_STUDIES.c.id).where(_STUDIES.c.name == name)
                described = {"study": connection.scalar(own), "description": text}
                connection.execute(_DESCRIPTIONS.insert().values(**described))
            found = cls._found(connection, database, name)
        if found is None:
            raise BrokenStudyError(f"{database.name} does not keep what is written to it")
        database.carry_over()  # else a copy of the file alone would have no studies
        return found

    @staticmethod
    def names(database: Database) -> list[str]:
        """The names of the studies in a database, in the order in which they were begun."""
        with database.reading() as connection:
            if not _has_tables(connection, database):
                return []
            names = list(connection.scalars(sa.select(_STUDIES.c.name).order_by(_STUDIES.c.id)))
        if not all(isinstance(name, str) for name in names):
            raise BrokenStudyError(f"{database.name} was changed: the name of a study is no text")
        return names

    @classmethod
    def _found(cls, connection: Connection, database: Database, name: str) -> Journal | None:
        if not _has_tables(connection, database):
            return None
        # The schema is read first, alone, because the other columns depend on it.
        schemas = sa.select(_STUDIES.c.schema).where(_STUDIES.c.name == name)
        schema = connection.scalar(schemas)
        if schema is None:
            return None
        if schema == 1:
            raise _of_before(f"study {name!r} in {database.name}")
        if not isinstance(schema, int) or schema < SCHEMA:
            raise BrokenStudyError(
                f"study {name!r} in {database.name} has schema {schema}, which no version wrote"
            )
        if schema > SCHEMA:
            raise NewerStudyError(
                f"study {name!r} in {database.name} has schema {schema}, and this version of "
                f"botorch_ext knows {SCHEMA}: use a newer one"
            )
        columns = (_STUDIES.c.id, _STUDIES.c.minimize, _DESCRIPTIONS.c.description)
        both = sa.select(*columns).join(_DESCRIPTIONS).where(_STUDIES.c.name == name)
        row = connection.execute(both).one_or_none()
        if row is None:
            raise BrokenStudyError(
                f"the description of study {name!r} in {database.name} is missing"
            )
        try:
            description = from_json(row.description)
            if not isinstance(description, dict):
                raise ValueError("it has no entries")
        except ValueError as error:
            raise BrokenStudyError(
                f"the description of study {name!r} in {database.name} cannot be read: {error}"
            ) from error
        parts = (str(schema), name, str(bool(row.minimize)), row.description)
        start = Position(0, _digest("", *parts))
        return cls(database, row.id, name, bool(row.minimize), description, start)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection for `since`."""
        with self.database.reading() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction under the lock of the study, for `since` and `append`."""
        with self.database.writing() as connection:
            if not self.database.is_sqlite:  # which has locked the whole file
                own = sa.select(_STUDIES.c.id).where(_STUDIES.c.id == self.id)
                connection.execute(own.with_for_update())
            yield connection

    def since(self, connection: Connection, position: Position) -> tuple[list[Entry], Position]:
        """The events after a position, and the position after them.

        Raises:
            BrokenStudyError: Events are missing or were changed.
        """
        # This is read first: events that others add between two statements come after it.
        end, end_digest = self._last(connection)
        rows = iter(
            connection.execute(
                sa.select(_EVENTS.c.number, _EVENTS.c.at, _EVENTS.c.body, _EVENTS.c.digest)
                .where(_EVENTS.c.study == self.id, _EVENTS.c.number >= position.count - 1)
                .order_by(_EVENTS.c.number)
            )
        )
        entries, count, digest = [], position.count, position.digest
        if count:
            # The file may have been replaced by an older one.
            last = next(rows, None)
            if last is None or (last.number, last.digest) != (count - 1, digest):
                raise self._changed(count - 1)
        for number, at, body, kept in rows:
            # SQLite may hold bytes where text is expected; they have a digest too.
            digest = _digest(digest, str(number), repr(at), str(body))
            if number != count or digest != kept or (number == end and digest != end_digest):
                raise self._changed(count)
            entries.append(Entry(at, body))
            count += 1
        if end is not None and count <= end:
            raise self._changed(count)
        return entries, Position(count, digest)

    def entries(self) -> list[Entry]:
        """All events."""

        def reading() -> list[Entry]:
            with self.reading() as connection:
                return self.since(connection, self.start)[0]

        return self.database.alone(reading)

    def _last(self, connection: Connection) -> tuple[int | None, str | None]:
        """The number and the digest of the last event, from the row of the study."""
        own = sa.select(_STUDIES.c.last, _STUDIES.c.last_digest).where(_STUDIES.c.id == self.id)
        number, digest = connection.execute(own).one()
        if (type(number), type(digest)) not in ((int, str), (type(None), type(None))):
            raise BrokenStudyError(
                f"the last event of study {self.name!r} in {self.database.name} was changed"
            )
        return number, digest

    def _changed(self, number: int) -> BrokenStudyError:
        return BrokenStudyError(
            f"event {number} of study {self.name!r} in {self.database.name} is missing or was "
            "changed"
        )

    def append(self, connection: Connection, position: Position, bodies: Sequence[str]) -> Position:
        """Adds events after the last position of the journal, and returns the position after
        them."""
        rows, count, digest = [], position.count, position.digest
        for body in bodies:
            at = time.time()
            digest = _digest(digest, str(count), repr(at), body)
            own = {"study": self.id, "number": count, "at": at, "body": body, "digest": digest}
            rows.append(own)
            count += 1
        if rows:
            connection.execute(_EVENTS.insert(), rows)
            last = {"last": count - 1, "last_digest": digest}
            connection.execute(_STUDIES.update().where(_STUDIES.c.id == self.id).values(last))
        return Position(count, digest)


def _has_tables(connection: Connection, database: Database) -> bool:
    """Whether a database has the tables of studies; False for an empty database.

    Raises:
        NoStudyError: The file has other tables.
        BrokenStudyError: The file was truncated or changed.
        StudyError: A version before 0.3.0 made the tables.
    """
    if database.is_sqlite and not database.is_checked:
        _require_only_tables(connection, database)
        state = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if state != "ok":
            raise BrokenStudyError(f"{database.name} was truncated or changed: {state}")
        database.is_checked = True
    tables = set(sa.inspect(connection).get_table_names())
    if tables.issuperset(_METADATA.tables):
        return True
    if database.is_sqlite and tables.issuperset({_STUDIES.name, _EVENTS.name}):
        raise _of_before(database.name)
    if database.is_sqlite and tables:
        raise NoStudyError(f"{database.name} must hold studies, got tables {sorted(tables)[:5]}")
    return False


def _require_only_tables(connection: Connection, database: Database) -> None:
    """Raises a BrokenStudyError if a file with studies holds more than the tables of studies."""
    found = connection.exec_driver_sql("SELECT name, sql FROM sqlite_schema").all()
    if not {name for name, _ in found}.issuperset(_METADATA.tables):
        return
    made = [str(CreateTable(table).compile(connection)) for table in _METADATA.tables.values()]
    known = {_without_spaces(text) for text in (*made, *MADE_BEFORE)}
    for name, text in found:
        # The index of a key has no text.
        if text is not None and _without_spaces(text) not in known:
            raise BrokenStudyError(
                f"{database.name} must hold the tables of studies alone, as they are made, got "
                f"{short(text)} as {short(name)}"
            )


def _without_spaces(text: str) -> str:
    return "".join(str(text).split())


def _of_before(whose: str) -> StudyError:
    return StudyError(
        f"{whose} was written by botorch-ext 0.2 or earlier, which alone reads it: go on with "
        "botorch-ext 0.2.0, or write its trials to a table with that version and begin a new "
        "study with them as initial data"
    )


def _digest(before: str, *parts: str) -> str:
    text = to_json([before, *parts]).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()
