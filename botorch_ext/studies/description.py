"""Description of a strategy: what it was made with, as a plain nested dict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from warnings import warn

from botorch_ext.exceptions import AnotherStrategyError, UndescribedWarning, VersionWarning
from botorch_ext.strategies import Strategy
from botorch_ext.studies.plain_arguments import CODE, UNKNOWN, plain
from botorch_ext.studies.plain_events import from_json, to_json

_LIBRARIES = ("botorch-ext", "torch", "botorch", "gpytorch")
_MISSING = object()
# Each version makes other code of the same lines.
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Differences that a message shows.
_MOST_SHOWN = 5


def describe(strategy: Strategy) -> dict[str, Any]:
    """Class and arguments of a strategy, the function it was made by, the versions of the
    libraries, and digests of the code that is of none of them. Devices are left out: a study may
    move to another one.

    Warns:
        UndescribedWarning: Something in an argument cannot be described.
    """
    arguments = plain(strategy)
    unknown = [f"{place} ({kind})" for place, kind in _taken(arguments, UNKNOWN)]
    if unknown:
        warn(
            "a study cannot tell whether it is opened with the same: " + "; ".join(unknown),
            UndescribedWarning,
            stacklevel=3,
        )
    code = {_PYTHON: dict(_taken(arguments, CODE))}
    made_by = strategy.arguments.made_by
    return {"versions": versions(), "strategy": arguments, "made_by": made_by, "code": code}


def _taken(described: Any, key: str, place: str = "strategy") -> Iterator[tuple[str, Any]]:
    """What stands under a key that is no argument, and where; it is taken out."""
    if isinstance(described, dict):
        if key in described:
            yield place, described.pop(key)
        for name, part in described.items():
            yield from _taken(part, key, f"{place}.{name}")
    elif isinstance(described, list):
        for i, part in enumerate(described):
            yield from _taken(part, key, f"{place}[{i}]")


def versions() -> dict[str, str | None]:
    """Of this library and those that it computes with."""
    return {name: _version(name) for name in _LIBRARIES}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder, not installed
        return None


def differences(kept: Any, given: Any, place: str = "") -> Iterator[str]:
    """Each place where two descriptions differ, with what is there in both."""
    if isinstance(kept, dict) and isinstance(given, dict):
        keys = dict.fromkeys((*kept, *given))
        # Things of two classes differ in everything.
        for key in keys if kept.get("class") == given.get("class") else ("class",):
            inner = f"{place}.{key}" if place else str(key)
            yield from differences(kept.get(key, _MISSING), given.get(key, _MISSING), inner)
    elif isinstance(kept, list) and isinstance(given, list) and len(kept) == len(given):
        for i, (old, new) in enumerate(zip(kept, given, strict=True)):
            yield from differences(old, new, f"{place}[{i}]")
    elif kept != given or _kind(kept) is not _kind(given):
        yield f"{place} is {_shown(kept)} in the study, got {_shown(given)}"


def _kind(value: Any) -> type:
    """Of a value: 2 is the same argument as 2.0, and True another one than 1."""
    return float if type(value) is int else type(value)


def require_same(kept: dict[str, Any], given: dict[str, Any], whose: str) -> None:
    """Compares two descriptions.

    Args:
        kept: Of the strategy that a study was begun with.
        given: Of the one it is opened with.
        whose: The study, for messages.

    Raises:
        AnotherStrategyError: Other arguments; says which.

    Warns:
        VersionWarning: Another version of a library, or other code of a function.
    """
    given = from_json(to_json(given))
    versions = list(differences(kept.get("versions"), given["versions"]))
    different = list(differences(kept.get("strategy"), given["strategy"]))
    if different:
        more = len(different) - _MOST_SHOWN
        ending = f"; and {more} more" if more > 0 else ""
        shown = "; ".join(different[:_MOST_SHOWN]) + ending
        raise AnotherStrategyError(f"{whose} was begun with other arguments: {shown}")
    if versions:
        warn(
            f"{whose} was begun with other versions, so that its next question may be another one: "
            + "; ".join(versions),
            VersionWarning,
            stacklevel=4,
        )
    before, now = (each.get("code", {}).get(_PYTHON, {}) for each in (kept, given))
    other = [place for place in before if now.get(place, before[place]) != before[place]]
    if other:
        warn(
            f"{whose} was begun with other code, so that its next question may be another one: "
            + "; ".join(other),
            VersionWarning,
            stacklevel=4,
        )


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
