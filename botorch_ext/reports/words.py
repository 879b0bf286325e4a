"""Words: times, durations, numbers and descriptions as people read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

# Seconds in a unit, and from how many of them on it is used.
_UNITS = (("day", 86400, 2), ("h", 3600, 2), ("min", 60, 2), ("s", 1, 0))
_DEEPEST = 12
_MOST_PARTS = 24


def moment(at: float | None) -> str:
    """A time in seconds since 1970 as date and time, without its zone, which is UTC."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def iso(at: float | None) -> str:
    """A time in seconds since 1970, as ISO 8601 has it."""
    if at is None:
        return ""
    text = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def duration(seconds: float) -> str:
    """A length of time in its largest sensible unit."""
    seconds = max(seconds, 0.0)
    for unit, size, least in _UNITS:
        if seconds >= size * least:
            count = int(seconds / size)
            return f"{count} days" if unit == "day" else f"{count} {unit}"
    return "0 s"


def number(value: float | None) -> str:
    """A number of six digits."""
    return "" if value is None else f"{value:.6g}"


def point(coordinates: Iterable[float]) -> str:
    """Coordinates in brackets."""
    return f"({', '.join(map(number, coordinates))})"


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def printable(text: str) -> str:
    """A text without characters that would steer a terminal or break a line."""
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)


def in_words(plain: Any, depth: int = 0) -> str:
    """An argument of a description, as one would write it in Python; long ones are cut."""
    if isinstance(plain, float):
        return number(plain)
    if isinstance(plain, str):
        return printable(plain if len(plain) <= 200 else f"{plain[:200]}...")
    if depth > _DEEPEST:
        return "..."
    if isinstance(plain, list):
        return f"[{_joined([in_words(part, depth + 1) for part in plain[: _MOST_PARTS + 1]])}]"
    if not isinstance(plain, dict):
        return str(plain)
    if "dtype" in plain and "values" in plain:
        return in_words(plain["values"], depth + 1)
    if "dtype" in plain and "shape" in plain:
        return f"{in_words(plain['shape'], depth + 1)} numbers"
    named = list(plain.items())[: _MOST_PARTS + 1]
    called = plain.get("class", plain.get("function"))
    inner = [
        f"{printable(str(key))}={in_words(part, depth + 1)}"
        for key, part in named
        if key not in ("class", "function")
    ]
    if called is None:
        return f"{{{_joined(inner)}}}"
    name = printable(str(called))
    return f"{name}({_joined(inner)})" if inner or "class" in plain else name


def _joined(parts: Sequence[str]) -> str:
    shown = parts[:_MOST_PARTS]
    return ", ".join([*shown, "..."] if len(parts) > len(shown) else shown)
