"""Translations: converts a stored description to the names of today."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

#: Keys that no argument has. They hold digests of code; what cannot be described; the names of
#: arguments that have the value of their default; the names of those that the user gave; the
#: function that made a strategy, with its arguments; and the digest of numbers as float64.
MARKS = ("<code>", "<unknown>", "<default>", "<given>", "<call>", "<float64>")
CODE, UNKNOWN, DEFAULT, GIVEN, CALL, FLOAT64 = MARKS


@dataclass(frozen=True)
class Dropped:
    """An argument that no longer exists. Studies of format 1 do not say that it had its default.

    Args:
        default: The default that it had, plain.
    """

    default: Any


#: From an old name to the name of today. For an argument of a class or a function:
#: ``"Scaled.by": "factor"``, or `Dropped`. For a class or a function: ``"Multiplied": "Scaled"``;
#: its arguments are then listed under the old name.
TRANSLATIONS: dict[str, str | Dropped] = {}
#: Arguments that version 0.2.0 did not have, such as ``"Scaled.factor"``. That version identified
#: the trials of a strategy in Ax and Optuna by a digest. New arguments that have their defaults are
#: left out of the digest.
SINCE_0_2_0 = {"Box.conditions", "Box.steps"}
#: Arguments that version 0.2.0 had and that left, with their defaults, by the argument before them.
#: They stay in the digest.
UNTIL_0_2_0 = {"PhasedElimination.waits": {"closing": "allowance", "kappa": 1.0}}


def digested(described: Any) -> Any:
    """A description as version 0.2.0 made a digest of it."""
    return _with_old(bare(described, SINCE_0_2_0))


def _with_old(described: Any) -> Any:
    if isinstance(described, list):
        return [_with_old(part) for part in described]
    if not isinstance(described, dict):
        return described
    found: dict[str, Any] = {}
    for name, part in described.items():
        found[name] = _with_old(part)
        found |= UNTIL_0_2_0.get(f"{described.get('class')}.{name}", {})
    return found


def bare(described: Any, without: Set[str] = frozenset()) -> Any:
    """A description without the keys that no argument has.

    Args:
        described: The description, plain.
        without: Arguments, as in `SINCE_0_2_0`, that are left out if they have their defaults.
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
    """A part of a kept description, in the names of today."""
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
