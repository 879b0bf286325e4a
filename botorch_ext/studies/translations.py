"""Translations: what arguments were called, and did, when a study was begun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botorch_ext.studies.plain_arguments import DEFAULT


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
    if isinstance(kept.get(DEFAULT), list):
        now[DEFAULT] = [TRANSLATIONS.get(f"{of}.{key}", key) for key in kept[DEFAULT]]
    return now
