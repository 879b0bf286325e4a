"""Translations: a stored description in today's names, without the keys that no argument has."""

from __future__ import annotations

from collections.abc import Set
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
#: Arguments that version 0.2.0 did not have, as ``"Scaled.factor"``. It knew the trials of a
#: strategy in Ax and Optuna by a digest, which is without those that have their defaults.
SINCE_0_2_0 = {"Box.conditions", "Box.steps"}


def bare(described: Any, without: Set[str] = frozenset()) -> Any:
    """A description without the keys that no argument has.

    Args:
        described: Plain.
        without: Arguments, as in `SINCE_0_2_0`, that are left out where they have their defaults.
    """
    if isinstance(described, dict):
        of = described.get("class")
        return {
            name: bare(part, without)
            for name, part in described.items()
            if name not in MARKS
            and not (f"{of}.{name}" in without and name in described.get(DEFAULT, ()))
        }
    return [bare(part, without) for part in described] if isinstance(described, list) else described


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
