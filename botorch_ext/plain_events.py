"""Plain events: events of a study as JSON, whose numbers are read back bit for bit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from botorch_ext.checks import is_text
from botorch_ext.exceptions import BrokenStudyError

Kind = Literal[
    "asked", "attached", "failed", "told", "corrected", "abandoned", "withdrawn", "noted", "widened"
]
# The kinds that end no trial.
ENDS_NO_TRIAL: tuple[Kind, ...] = ("corrected", "noted", "widened")

_NOT_FINITE = "not finite"
# The entries that an event with a value may also have.
_MEASURED = ("outcomes", "std", "repeats")
# The entries that each kind of event has besides its id.
_ENTRIES: dict[Kind, tuple[str, ...]] = {
    "asked": ("x", "context", "info"),
    "attached": ("x", "context", "info", "value"),
    "failed": ("x", "context", "info"),
    "told": ("value",),
    "corrected": ("value",),
    "abandoned": ("failed",),
    "withdrawn": (),
    "noted": ("text",),
    "widened": ("parameters", "inside"),
}


@dataclass(frozen=True)
class PlainRecord:
    """An event without tensors, with values in the sign of the user.

    Args:
        kind: The kind of the event.
        id: The id of the trial; that of the next one if the space was widened.
        x: The ``d`` coordinates of a new trial.
        context: The ``d_z`` coordinates of its context, or None.
        info: The info of a new trial.
        value: The value, if the event has one.
        outcomes: The outcomes by name, if the event has any.
        std: The standard error of the value, or None.
        repeats: The observations of which the value is the average, if it is one.
        failed: Whether the evaluation of an abandoned trial failed.
        text: The note, if the event is one.
        parameters: The wider parameters by name, as `codec` encodes them, if the event has any.
        inside: The ids of attached results that lie inside the wider space, and lay outside before.
        version: The version of the library that wrote the event; None in older studies.
    """

    kind: Kind
    id: int
    x: list[float] = field(default_factory=list)
    context: list[float] | None = None
    info: dict[str, Any] = field(default_factory=dict)
    value: float = math.nan
    outcomes: Mapping[str, float] = field(default_factory=dict)
    std: float | None = None
    repeats: tuple[float, ...] = ()
    failed: bool = False
    text: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)
    inside: tuple[int, ...] = ()
    version: str | None = None

    @classmethod
    def read(cls, text: str) -> PlainRecord:
        """Reads the record of a line.

        Args:
            text: A line that `line` wrote.

        Raises:
            BrokenStudyError: `line` did not write the text.
        """
        try:
            return cls._read(from_json(text))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise BrokenStudyError(f"an event of the study cannot be read: {error!r}") from error

    @classmethod
    def _read(cls, entries: dict[str, Any]) -> PlainRecord:
        kind = entries.pop("event")
        if kind not in _ENTRIES:
            raise ValueError(f"unknown kind {kind!r}")
        optional = ("version", *(_MEASURED if "value" in _ENTRIES[kind] else ()))
        names = ["id", *_ENTRIES[kind], *(name for name in optional if name in entries)]
        known = {name: _CHECKED[name](entries.pop(name)) for name in names}
        if entries:
            raise ValueError(f"unknown entries {sorted(entries)}")
        return cls(kind, **known)

    def line(self) -> str:
        """The record as one line of JSON."""
        own = {name: getattr(self, name) for name in ("id", *_ENTRIES[self.kind])}
        optional = {name: getattr(self, name) for name in (*_MEASURED, "version")}
        given = {name: value for name, value in optional.items() if value}
        return to_json({"event": self.kind} | own | given)


@cache
def version_of(name: str) -> str | None:
    """The version of an installed package; None if it is not installed, as a folder that is run."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def to_json(plain: Any) -> str:
    """The JSON text of plain values, which need not be finite."""
    try:
        return _WRITER.encode(plain)
    except ValueError:
        return _WRITER.encode(_marked(plain))


def from_json(text: str) -> Any:
    """The plain values of a text that `to_json` wrote."""
    try:
        # A reader with a hook takes twice the time.
        reader = _MARKED_READER if _NOT_FINITE in text else _READER
        return reader.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except TypeError as error:
        raise ValueError("it is no text") from error


def _marked(plain: Any) -> Any:
    if isinstance(plain, float) and not math.isfinite(plain):
        return {_NOT_FINITE: repr(plain)}
    if isinstance(plain, dict):
        return {key: _marked(value) for key, value in plain.items()}
    if isinstance(plain, list | tuple):
        return [_marked(value) for value in plain]
    return plain


def _unmarked(record: dict[str, Any]) -> Any:
    is_marked = list(record) == [_NOT_FINITE] and isinstance(record[_NOT_FINITE], str)
    return float(record[_NOT_FINITE]) if is_marked else record


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


# Made once: `json.dumps` and `json.loads` would make them for each text.
_WRITER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_READER = json.JSONDecoder(parse_constant=_refused)
_MARKED_READER = json.JSONDecoder(object_hook=_unmarked, parse_constant=_refused)


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{value!r} is no number")
    return float(value)


def _of_kind(value: Any, kinds: tuple[type, ...], what: str) -> Any:
    if type(value) not in kinds:
        raise ValueError(f"{value!r} {what}")
    return value


def _numbers(values: Any) -> list[float]:
    return [_number(value) for value in _of_kind(values, (list,), "is no list of numbers")]


def _text(value: Any) -> str:
    if not is_text(value):
        raise ValueError(f"{value!r} is no text")
    return value


def _ids(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(id) is int and id >= 0 for id in value):
        raise ValueError(f"{value!r} is no list of ids")
    return tuple(value)


_entries = partial(_of_kind, kinds=(dict,), what="has no entries")
_CHECKED: dict[str, Callable[[Any], Any]] = {
    "id": partial(_of_kind, kinds=(int,), what="is no whole number"),
    "x": _numbers,
    "context": lambda given: None if given is None else _numbers(given),
    "info": _entries,
    "value": _number,
    "outcomes": lambda given: {name: _number(each) for name, each in _entries(given).items()},
    "std": _number,
    "repeats": lambda given: tuple(_numbers(given)),
    "failed": lambda given: given is True,
    "text": _text,
    "parameters": _entries,
    "inside": _ids,
    "version": partial(_of_kind, kinds=(str, type(None)), what="is no version"),
}
