"""Translations: a stored description in today's names, without the keys that no argument has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

#: Keys that no argument has: digests of code, what cannot be described, the names of arguments that
#: have the value of their default, those of them that a user gave, the function that made a
#: strategy, with its arguments, and the digest as float64 of numbers of another dtype.
MARKS = ("<code>", "<unknown>", "<default>", "<given>", "<call>", "<float64>")
CODE, UNKNOWN, DEFAULT, GIVEN, CALL, FLOAT64 = MARKS


@dataclass(frozen=True)
class Dropped:
    """An argument that is no more. Studies of format 1 do not say that it had its default.

    Args:
        default: What it then was, plain.
    """

    default: Any


#: From a class or a function and the name that an argument of it had, to its name now:
#: ``"Scaled.by": "factor"``; or to `Dropped`. From the name that a class or a function had to its
#: name now: ``"Multiplied": "Scaled"``, where its arguments stand under the old one.
TRANSLATIONS: dict[str, str | Dropped] = {}


def bare(described: Any) -> Any:
    """A description without the keys that no argument has."""
    if isinstance(described, dict):
        return {name: bare(part) for name, part in described.items() if name not in MARKS}
    return [bare(part) for part in described] if isinstance(described, list) else described


def translated(kept: dict[str, Any]) -> dict[str, Any]:
    """A part of a description that is kept, in the names of now."""
    kind = "class" if "class" in kept else "function"
    of, now = kept.get(kind), {}
    for key, part in kept.items():
        name = TRANSLATIONS.get(f"{of}.{key}", key)
        if not isinstance(name, Dropped):
            now[name] = part
        elif part != name.default:
            now[key] = part
    if kind in now:
        now[kind] = TRANSLATIONS.get(f"{of}", of)
    for mark in (DEFAULT, GIVEN):
        if isinstance(kept.get(mark), list):
            now[mark] = [TRANSLATIONS.get(f"{of}.{key}", key) for key in kept[mark]]
    return now
