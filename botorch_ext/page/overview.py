"""Overviews: the trials of a study and what became of them, read from its events."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from botorch_ext.exceptions import BrokenStudyError, NoStudyError
from botorch_ext.limits import Limit
from botorch_ext.page.parameters import Column, Columns, columns_of
from botorch_ext.page.strategy_description import (
    GivenData,
    as_dict,
    given_data,
    limits_of,
    names,
    readable,
)
from botorch_ext.page.words import short
from botorch_ext.plain_events import ENDS_NO_TRIAL, PlainRecord

if TYPE_CHECKING:
    from botorch_ext.studies.databases import Database
    from botorch_ext.studies.journal import Entry, Journal

State = Literal["told", "attached", "withdrawn", "pending", "abandoned", "failed"]

# A time, the id of a trial, and parameters by name.
Widening = tuple[float, int, dict[str, Any]]
# The latest time that has a date.
_LATEST = 253402300799
# How often a file is read again if it changes meanwhile.
_TRIES = 4


@dataclass(frozen=True)
class Correction:
    """A value that replaced another one."""

    at: float
    old: float
    new: float


@dataclass
class TrialStory:
    """The story of a trial. Values have the sign of the user; times are in seconds since 1970.

    Args:
        id: The id of the trial.
        x: The ``d`` coordinates.
        context: The ``d_z`` coordinates of the context; empty without contexts.
        info: The info of the trial.
        asked_at: When the trial was asked; None if it was attached.
        num_asked_before: How many trials were asked before it.
        state: The state of the trial.
        value: The observation, if there is one.
        ended_at: When the trial was told, given up or withdrawn, if it was.
        num_asked_by_then: How many trials were asked when the trial was told or given up, or until
            now if it is pending.
        corrections: The corrections of the value, in order.
        outcomes: What was measured beside the value, by the names of its columns: the standard
            error, the number of repeats and the outcomes, as far as the trial has them.
        note: The note that is kept with the trial; empty if there is none.
        std: The standard error of the value, if it was told.
        num_repeats: The number of observations of which the value is the average.
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
    outcomes: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    std: float | None = None
    num_repeats: int = 1

    def noise_std(self, of_one: float) -> float:
        """The standard deviation of the noise of the value, from that of one measurement."""
        return of_one / math.sqrt(self.num_repeats) if self.std is None else self.std

    def measure(self, record: PlainRecord, objective: str) -> None:
        """Notes what an event says beside the value."""
        self.std, self.num_repeats = record.std, len(record.repeats) or 1
        beside = {} if record.std is None else {f"{objective} std": record.std}
        if record.repeats:
            beside[f"{objective} repeats"] = self.num_repeats
        self.outcomes = beside | dict(record.outcomes)

    @property
    def first_value(self) -> float | None:
        """The value before any correction, if there is a value."""
        return self.corrections[0].old if self.corrections else self.value

    def waited(self, now: float) -> float:
        """Seconds from the ask to the end of the trial, or until now; 0 for an attached trial."""
        end = now if self.ended_at is None else self.ended_at
        return 0.0 if self.asked_at is None else end - self.asked_at

    def end(self, state: State, at: float, value: float | None = None) -> None:
        """Ends the trial in a state."""
        self.state, self.ended_at, self.value = state, at, value


@dataclass(frozen=True)
class Overview:
    """A study as its events describe it.

    Args:
        place: The path or the address of the study, without a password.
        name: The name of the study.
        minimize: Whether small values are good.
        description: The description of the strategy, plain, with the present space.
        stories: The stories of all trials, by id.
        began_at: The time of the first event, in seconds since 1970; None if there is none.
        last_id: The id of the trial whose value came last, if there is one.
        widened: For each time that the space was widened, in order: the time, the id of the first
            trial in the wider space, and the wider parameters by name, plain.
    """

    place: str
    name: str
    minimize: bool
    description: dict[str, Any]
    stories: list[TrialStory]
    began_at: float | None
    last_id: int | None
    widened: Sequence[Widening] = ()

    @property
    def pending(self) -> list[TrialStory]:
        """The pending trials, in the order of asking."""
        return self.having("pending")

    @property
    def observed(self) -> list[TrialStory]:
        """The trials that have a value."""
        return [story for story in self.stories if story.value is not None]

    @property
    def corrected(self) -> list[TrialStory]:
        """The trials whose value was corrected."""
        return [story for story in self.stories if story.corrections]

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """The limits of outcomes by name."""
        return limits_of(self.description)

    def breaking(self, name: str) -> list[TrialStory]:
        """The trials that have a value, and an outcome that is not within its limit."""
        limit = self.limits[name]
        return [
            story for story in self.observed if not limit.holds(story.outcomes.get(name, math.nan))
        ]

    @property
    def within_limits(self) -> list[TrialStory]:
        """The trials that have a value, and outcomes within their limits."""
        broken = {story.id for name in self.limits for story in self.breaking(name)}
        return [story for story in self.observed if story.id not in broken]

    def measured_at(self, x: Iterable[Any]) -> list[TrialStory]:
        """The trials that have a value, at a point of ``d`` coordinates."""
        coordinates = list(map(float, x))
        return [story for story in self.observed if story.x == coordinates]

    @property
    def eligible(self) -> list[TrialStory]:
        """The trials whose value may be the best: one in the domain, within all limits."""
        return [story for story in self.within_limits if not story.info.get("outside")]

    @property
    def best(self) -> TrialStory | None:
        """The eligible trial with the best value, the first of several."""
        return self.best_of(self.eligible) if self.eligible else None

    def best_of(self, stories: Sequence[TrialStory]) -> TrialStory:
        """The trial with the best value among some that have one, the first of several."""
        return max(stories, key=lambda story: self.sign * (story.value or 0.0))

    @cached_property
    def columns(self) -> Columns:
        """The columns of points and contexts."""
        return self._columns(short)

    @cached_property
    def outcomes(self) -> list[str]:
        """The names of what was measured beside the values of trials."""
        return list(dict.fromkeys(name for story in self.stories for name in story.outcomes))

    @property
    def outcome_columns(self) -> list[Column]:
        """The columns of what was measured beside the values, with the units of their limits."""
        units = {name: limit.unit or "" for name, limit in self.limits.items()}
        return [Column(name, units.get(name, "")) for name in self.outcomes]

    @property
    def has_notes(self) -> bool:
        """Whether a note is kept with a trial."""
        return any(story.note for story in self.stories)

    @cached_property
    def objective(self) -> Column:
        """The column of the values, with their name and unit."""
        return self._objective(short)

    def in_full(self) -> tuple[Columns, Column]:
        """The columns of points and contexts, and that of the values, with names and choices of any
        length, for files."""
        return self._columns(str), self._objective(str)

    def _columns(self, text: Callable[[str], str]) -> Columns:
        first = self.stories[0] if self.stories else None
        dims = (len(first.x), len(first.context)) if first else (0, 0)
        return columns_of(self.description, *dims, text)

    def _objective(self, text: Callable[[str], str]) -> Column:
        name, unit = (self.description.get(key) for key in ("objective", "unit"))
        return Column(
            text(name) if isinstance(name, str) and name else "value",
            text(unit) if isinstance(unit, str) else "",
        )

    @property
    def sign(self) -> float:
        """The factor by which large values become good."""
        return -1.0 if self.minimize else 1.0

    @property
    def given(self) -> GivenData | None:
        """The initial data of the strategy, with its values."""
        return given_data(self.description)

    @property
    def has_rkhs_bound(self) -> bool:
        """Whether an argument of the strategy bounds the RKHS norm, which data may refute."""
        return names(self.description, "rkhs_bound")

    @property
    def best_given(self) -> tuple[float, list[float] | None] | None:
        """The value, and the coordinates if they are known, of the best initial datum; None if a
        trial is better."""
        if self.given is None or not self.given.values:
            return None
        values, points = self.given.values, self.given.points
        value = min(values) if self.minimize else max(values)
        point = points[values.index(value)] if points else None
        if self.best is not None and self.sign * (self.best.value or 0.0) > self.sign * value:
            return None
        return value, point

    @property
    def last(self) -> TrialStory | None:
        """The trial whose value came last."""
        return None if self.last_id is None else self.stories[self.last_id]

    @property
    def num_asked(self) -> int:
        """How many trials were asked."""
        return sum(story.asked_at is not None for story in self.stories)

    def having(self, state: State) -> list[TrialStory]:
        """The trials in a state."""
        return [story for story in self.stories if story.state == state]

    def scalars(self, story: TrialStory) -> dict[str, float | int | bool | str]:
        """The numbers and words in the info of a trial."""
        scalar = bool | int | float | str
        return {key: known for key, known in story.info.items() if isinstance(known, scalar)}


def read_overviews(place: str | os.PathLike[str], name: str | None = None) -> list[Overview]:
    """The overviews of the studies in a place. Nothing is written, and no other process is waited
    for.

    Args:
        place: A path or a URL.
        name: The name of the only study to read; None for all studies.

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
    """The overview of the only study in a place, or of the study of a name.

    Args:
        place: A path or a URL.
        name: The name of the study; None if there is only one.

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
    found = []
    for one in names if name is None else [name]:
        journal = Journal.open(database, one)
        if journal is None:
            raise BrokenStudyError(f"{database.name} was changed: {one!r} is no study")
        found.append(overview_of(journal))
    return found


def overview_of(journal: Journal) -> Overview:
    """The overview of the study of a journal."""
    with journal.reading() as connection:
        entries, _ = journal.since(connection, journal.start)
    stories, last, widened = _stories(entries, journal)
    began_at = entries[0].at if entries else None
    place, description = journal.database.name, readable(journal.description)
    space = as_dict(as_dict(description.get("strategy")).get("domain"))
    for _, _, parameters in widened:
        as_dict(space.get("parameters")).update(parameters)
    return Overview(
        place, journal.name, journal.minimize, description, stories, began_at, last, widened
    )


def _stories(
    entries: Sequence[Entry], journal: Journal
) -> tuple[list[TrialStory], int | None, list[Widening]]:
    """The stories of all trials, the id of the trial whose value came last, and when what was
    widened."""
    stories: list[TrialStory] = []
    widened: list[Widening] = []
    arrived: list[int] = []
    num_asked = 0
    objective = str(readable(journal.description).get("objective"))
    for number, entry in enumerate(entries):
        record = PlainRecord.read(entry.body)
        try:
            _follow(stories, record, entry.at, num_asked, objective)
        except (ValueError, IndexError) as error:
            raise BrokenStudyError(
                f"event {number} of study {journal.name!r} in {journal.database.name} does not fit "
                f"those before: {error}"
            ) from error
        num_asked += record.kind == "asked"
        if record.kind == "widened":
            plain = readable({"strategy": record.parameters})["strategy"]
            widened.append((entry.at, record.id, as_dict(plain)))
        if record.kind not in ENDS_NO_TRIAL:
            stories[record.id].num_asked_by_then = num_asked
        if record.kind in ("told", "attached"):
            arrived.append(record.id)
    for story in stories:
        if story.state == "pending":
            story.num_asked_by_then = num_asked
    last = next((id for id in reversed(arrived) if stories[id].value is not None), None)
    return stories, last, widened


def _follow(
    stories: list[TrialStory], record: PlainRecord, at: float, num_asked: int, objective: str
) -> None:
    """Adds an event to the stories; a ValueError or an IndexError where it cannot follow."""
    if type(at) is not float or not 0.0 <= at <= _LATEST:
        raise ValueError(f"it has no time, got {at!r}")
    if record.kind in ("told", "attached", "corrected") and not math.isfinite(record.value):
        raise ValueError(f"value must be finite, got {record.value}")
    if not all(map(math.isfinite, (*record.x, *(record.context or ())))):
        raise ValueError(f"coordinates must be finite, got {record.x} and {record.context}")
    is_new = record.kind in ("asked", "attached", "failed")
    if (is_new or record.kind == "widened") and record.id != len(stories):
        raise ValueError(f"id must be {len(stories)}, got {record.id}")
    if record.kind == "widened":
        for id in record.inside:
            stories[id].info.pop("outside", None)
        return
    if is_new:
        asked_at = at if record.kind == "asked" else None
        context = record.context or []
        story = TrialStory(record.id, record.x, context, record.info, asked_at, num_asked)
        sizes = [(len(one.x), len(one.context)) for one in (*stories[:1], story)]
        if sizes[0] != sizes[-1]:
            raise ValueError(f"trial {record.id} has other columns than those before")
        stories.append(story)
        if record.kind == "attached":
            story.end("attached", at, record.value)
            story.measure(record, objective)
        if record.kind == "failed":
            story.end("failed", at)
        return
    if record.id < 0:
        raise ValueError(f"id must be that of a trial, got {record.id}")
    story = stories[record.id]
    if record.kind == "noted":
        story.note = record.text
        return
    if record.kind == "withdrawn":
        if story.state not in ("attached", "failed"):
            raise ValueError(f"trial {record.id} is {story.state}")
        story.end("withdrawn" if story.asked_at is None else "abandoned", at)
        story.outcomes = {}
        return
    if record.kind == "corrected":
        if story.value is None:
            raise ValueError(f"trial {record.id} has no value")
        old, story.value = story.value, record.value
        story.measure(record, objective)
        if record.value != old or not story.outcomes:  # else another number alone was wrong
            story.corrections.append(Correction(at, old, record.value))
        return
    if story.state != "pending":
        raise ValueError(f"trial {record.id} is {story.state}")
    if record.kind == "told":
        story.end("told", at, record.value)
        story.measure(record, objective)
    else:
        story.end("failed" if record.failed else "abandoned", at)
