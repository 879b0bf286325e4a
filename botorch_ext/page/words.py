"""Words: times, durations, numbers and descriptions as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from botorch_ext.aligned import cut, printable

# Seconds in a unit, and from how many of them on it is used.
_UNITS = (("day", 86400, 2), ("h", 3600, 2), ("min", 60, 2), ("s", 1, 1))
_DEEPEST = 12
_MOST_PARTS, _MOST_ROWS = 24, 6


def moment(at: float | None) -> str:
    """A time in seconds since 1970 as date and time, without its zone, which is UTC."""
    return "" if at is None else f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"


def duration(seconds: float) -> str:
    """A length of time in its largest sensible unit."""
    seconds = max(seconds, 0.0)
    for unit, size, least in _UNITS:
        if seconds >= size * least:
            count = int(seconds / size)
            return f"{count} days" if unit == "day" else f"{count} {unit}"
    return "less than 1 s"


def number(value: float | None) -> str:
    """A number of six digits."""
    return "" if value is None else f"{value:.6g}"


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def short(text: str) -> str:
    """A name, cut where it is long, without characters that steer."""
    return printable(cut(text, 40))


def in_words(plain: Any, depth: int = 0) -> str:
    """An argument of a description, as one would write it in Python. Long ones are cut, and what is
    empty inside of others is left out."""
    if isinstance(plain, float):
        return number(plain)
    if isinstance(plain, str):
        return printable(plain if len(plain) <= 200 else f"{plain[:200]}...")
    if depth > _DEEPEST:
        return "..."
    if isinstance(plain, list):
        most = _MOST_ROWS if any(isinstance(part, list) for part in plain) else _MOST_PARTS
        shown = ", ".join(in_words(part, depth + 1) for part in plain[:most])
        return f"[{shown}, ... {len(plain)} in all]" if len(plain) > most else f"[{shown}]"
    if not isinstance(plain, dict):
        return str(plain)
    if "dtype" in plain and "values" in plain:
        return in_words(plain["values"], depth + 1)
    if "dtype" in plain and "shape" in plain:
        return f"{in_words(plain['shape'], depth + 1)} numbers"
    inner = [
        f"{short(str(key))}={in_words(part, depth + 1)}"
        for key, part in list(plain.items())[:_MOST_PARTS]
        if key not in ("class", "function") and part not in (None, [], {})
    ]
    words = ", ".join([*inner, "..."] if len(plain) > _MOST_PARTS else inner)
    called = plain.get("class", plain.get("function"))
    if called is None:
        return f"{{{words}}}"
    name = short(str(called))
    return f"{name}({words})" if inner or "class" in plain else name
