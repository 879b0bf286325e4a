"""Overviews: all that the events of a study say, trial by trial."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from botorch_ext.exceptions import BrokenStudyError, NoStudyError
from botorch_ext.reports.parameters import Column, Columns, columns_of
from botorch_ext.reports.strategy_description import GivenData, given_data
from botorch_ext.reports.words import short
from botorch_ext.studies.plain_events import PlainRecord, in_sign
from botorch_ext.studies.translations import bare

if TYPE_CHECKING:
    from botorch_ext.studies.databases import Database
    from botorch_ext.studies.journal import Entry, Journal

State = Literal["told", "attached", "pending", "abandoned", "failed"]

# Later times have no date.
_LATEST = 253402300799
# How often a file is read that changes meanwhile, before what was read last stands.
_TRIES = 4


@dataclass(frozen=True)
class Correction:
    """A value that replaced another one.

    Args:
        at: When, in seconds since 1970.
        old: The value before.
        new: The value from then on.
    """

    at: float
    old: float
    new: float


@dataclass
class TrialStory:
    """What became of a trial. Values are those of the user; times are in seconds since 1970.

    Args:
        id: Of the trial.
        x: Its ``d`` coordinates.
        context: Its ``d_z`` coordinates; none where there are no contexts.
        info: What was known when it was asked.
        asked_at: When it was asked; None where it was attached.
        num_asked_before: How many trials had been asked before it.
        state: What it is now.
        value: Its observation, if there is one.
        ended_at: When it was told or given up, if it was.
        num_asked_by_then: How many trials had been asked when it was told or given up; by now,
            while it is pending.
        corrections: Of its value, in order.
    """

    id: int
    x: list[float]
    context: list[float]
    info: dict[str, Any]
    asked_at: float | None
    num_asked_before: int
    state: State = "pending"
    value: float | None = None
    ended_at: float | None = None
    num_asked_by_then: int = 0
    corrections: list[Correction] = field(default_factory=list)

    @property
    def first_value(self) -> float | None:
        """What was told at first, if it has a value."""
        return self.corrections[0].old if self.corrections else self.value

    def waited(self, now: float) -> float:
        """Seconds from when it was asked to its end, or until now; 0 where it was attached."""
        end = now if self.ended_at is None else self.ended_at
        return 0.0 if self.asked_at is None else end - self.asked_at

    def end(self, state: State, at: float, value: float | None = None) -> None:
        """Says what became of it."""
        self.state, self.ended_at, self.value = state, at, value


@dataclass(frozen=True)
class Overview:
    """A study as its events tell it.

    Args:
        place: Where it is, without a password.
        name: Of the study.
        minimize: Whether small values are good.
        description: Of its strategy, plain.
        stories: Of all trials, by id.
        began_at: When the first event happened, in seconds since 1970; None before.
        last_id: The trial whose value came last, if there is one.
    """

    place: str
    name: str
    minimize: bool
    description: dict[str, Any]
    stories: list[TrialStory]
    began_at: float | None
    last_id: int | None

    @property
    def pending(self) -> list[TrialStory]:
        """Trials that are asked and neither told nor given up, in the order of asking."""
        return self.having("pending")

    @property
    def observed(self) -> list[TrialStory]:
        """Trials that have a value."""
        return [story for story in self.stories if story.value is not None]

    @property
    def corrected(self) -> list[TrialStory]:
        """Trials whose value was another one before."""
        return [story for story in self.stories if story.corrections]

    @property
    def inside(self) -> list[TrialStory]:
        """Trials that have a value at a point of the domain, which may be the best."""
        return [story for story in self.observed if not story.info.get("outside")]

    @property
    def best(self) -> TrialStory | None:
        """The trial with the best value in the domain, the first of several."""
        return self.best_of(self.inside) if self.inside else None

    def best_of(self, stories: Sequence[TrialStory]) -> TrialStory:
        """The trial with the best value among some that have one, the first of several."""
        return max(stories, key=lambda story: self.sign * (story.value or 0.0))

    @cached_property
    def columns(self) -> Columns:
        """What the columns of points and contexts are called."""
        first = self.stories[0] if self.stories else None
        dims = (len(first.x), len(first.context)) if first else (0, 0)
        return columns_of(self.description, *dims)

    @cached_property
    def objective(self) -> Column:
        """What the values are called, and their unit."""
        name, unit = (self.description.get(key) for key in ("objective", "unit"))
        return Column(
            short(name) if isinstance(name, str) and name else "value",
            short(unit) if isinstance(unit, str) else "",
        )

    @property
    def sign(self) -> float:
        """What values are multiplied by so that large ones are good."""
        return -1.0 if self.minimize else 1.0

    @property
    def given(self) -> GivenData | None:
        """Data that the strategy was made with, its values in its own sign."""
        return given_data(self.description)

    @property
    def best_given(self) -> tuple[float, list[float] | None] | None:
        """Value and coordinates, if they are known, of the best of these data, where no trial is
        better."""
        if self.given is None or not self.given.values:
            return None
        values, points = self.given.values, self.given.points
        value = max(values)
        point = points[values.index(value)] if points else None
        if self.best is not None and self.sign * (self.best.value or 0.0) > value:
            return None
        return self.sign * value, point

    @property
    def last(self) -> TrialStory | None:
        """The trial whose value came last."""
        return None if self.last_id is None else self.stories[self.last_id]

    @property
    def num_asked(self) -> int:
        """Trials that were asked."""
        return len(self.stories) - len(self.having("attached"))

    def having(self, state: State) -> list[TrialStory]:
        """The trials in a state."""
        return [story for story in self.stories if story.state == state]

    def scalars(self, story: TrialStory) -> dict[str, float | int | bool | str]:
        """The numbers and words that were recorded when a trial was asked."""
        return {key: known for key, known in story.info.items() if _is_scalar(known)}


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float | str)


def read_overviews(place: str | os.PathLike[str], name: str | None = None) -> list[Overview]:
    """The overviews of the studies in a place, or of the one of a name. Nothing is written, and
    nobody is waited for.

    Raises:
        ImportError: SQLAlchemy is not installed.
        StudyError: Nothing that can be read, no study, or none of that name.
    """
    from botorch_ext.studies.databases import Database

    for _ in range(_TRIES):
        database = Database(place, read_only=True)
        before = database.stamp
        try:
            found = _read(database, name)
        except BrokenStudyError:
            if database.stamp == before:
                raise
        else:
            if database.stamp == before:
                return found
    return _read(Database(place, read_only=True), name)


def read_overview(place: str | os.PathLike[str], name: str | None = None) -> Overview:
    """The overview of the one study in a place, or of the one of a name.

    Raises:
        ImportError: SQLAlchemy is not installed.
        StudyError: As `read_overviews`; or several studies and no name.
    """
    found = read_overviews(place, name)
    if len(found) > 1:
        names = ", ".join(repr(overview.name) for overview in found)
        raise NoStudyError(f"{found[0].place} holds several studies, say which by name: {names}")
    return found[0]


def _read(database: Database, name: str | None) -> list[Overview]:
    from botorch_ext.studies.journal import Journal

    names = Journal.names(database)
    if not names:
        raise NoStudyError(f"{database.name} holds no study")
    if name is not None and name not in names:
        held = ", ".join(map(repr, names))
        raise NoStudyError(f"{database.name} holds no study {name!r}, but {held}")
    journals = (Journal.open(database, one) for one in (names if name is None else [name]))
    return [overview_of(journal) for journal in journals if journal is not None]


def overview_of(journal: Journal) -> Overview:
    """The overview of the study of a journal."""
    with journal.reading() as connection:
        entries, _ = journal.since(connection, journal.start)
    stories, last = _stories(entries, journal)
    began_at = entries[0].at if entries else None
    place, description = journal.database.name, bare(journal.description)
    return Overview(place, journal.name, journal.minimize, description, stories, began_at, last)


def _stories(entries: Sequence[Entry], journal: Journal) -> tuple[list[TrialStory], int | None]:
    """What became of each trial, and the id of the one that was told last."""
    stories: list[TrialStory] = []
    last, num_asked, sign = None, 0, -1.0 if journal.minimize else 1.0
    for number, entry in enumerate(entries):
        record = PlainRecord.read(entry.body)
        record = replace(record, info=in_sign(record.info, sign))
        try:
            _follow(stories, record, entry.at, num_asked)
        except (ValueError, IndexError) as error:
            raise BrokenStudyError(
                f"event {number} of study {journal.name!r} in {journal.database.name} does not fit "
                f"those before: {error}"
            ) from error
        num_asked += record.kind == "asked"
        if record.kind != "corrected":
            stories[record.id].num_asked_by_then = num_asked
        if record.kind in ("told", "attached"):
            last = record.id
    for story in stories:
        if story.state == "pending":
            story.num_asked_by_then = num_asked
    return stories, last


def _follow(stories: list[TrialStory], record: PlainRecord, at: float, num_asked: int) -> None:
    """Adds an event to the stories; a ValueError or an IndexError where it cannot follow."""
    if type(at) is not float or not 0.0 <= at <= _LATEST:
        raise ValueError(f"it has no time, got {at!r}")
    if record.kind in ("told", "attached", "corrected") and not math.isfinite(record.value):
        raise ValueError(f"value must be finite, got {record.value}")
    if not all(map(math.isfinite, (*record.x, *(record.context or ())))):
        raise ValueError(f"coordinates must be finite, got {record.x} and {record.context}")
    if record.kind in ("asked", "attached"):
        if record.id != len(stories):
            raise ValueError(f"id must be {len(stories)}, got {record.id}")
        asked_at = at if record.kind == "asked" else None
        context = record.context or []
        story = TrialStory(record.id, record.x, context, record.info, asked_at, num_asked)
        sizes = [(len(one.x), len(one.context)) for one in (*stories[:1], story)]
        if sizes[0] != sizes[-1]:
            raise ValueError(f"trial {record.id} has other columns than those before")
        stories.append(story)
        if record.kind == "attached":
            story.end("attached", at, record.value)
        return
    if record.id < 0:
        raise ValueError(f"id must be that of a trial, got {record.id}")
    story = stories[record.id]
    if record.kind == "corrected":
        if story.value is None:
            raise ValueError(f"trial {record.id} has no value")
        story.corrections.append(Correction(at, story.value, record.value))
        story.value = record.value
        return
    if story.state != "pending":
        raise ValueError(f"trial {record.id} is {story.state}")
    if record.kind == "told":
        story.end("told", at, record.value)
    else:
        story.end("failed" if record.failed else "abandoned", at)
