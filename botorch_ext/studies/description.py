"""Description of a strategy: what it was made with, as a plain nested dict.

Format 3 says which arguments have the value of their default, and which of those a user gave: they
stay what they are when the default changes. Arguments of objects, as of widths, count as not given.
Format 2 does not say what was given. Format 1 says nothing of defaults, and has the arguments of
the strategy without those of the function that a user called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from warnings import warn

from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    NewerStudyError,
    UndescribedWarning,
    VersionWarning,
)
from botorch_ext.strategies import Strategy
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.plain_numbers import same_numbers
from botorch_ext.studies.translations import CALL, CODE, DEFAULT, GIVEN, MARKS, UNKNOWN, translated

FORMAT = 3
_LIBRARIES = ("botorch-ext", "torch", "botorch", "gpytorch")
_MISSING = object()
# Each version makes other code of the same lines.
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Differences that a message shows.
_MOST_SHOWN = 5
# What a strategy computes in is the dtype of its domain.
_DOMAINS = ("Box", "Space", "FiniteSet", "ShardedSet")
# What format 1 says nothing of but the class.
_FRAMES = ("DataFrame", "Series")


def describe(strategy: Strategy) -> dict[str, Any]:
    """Class and arguments of a strategy, those of the function it was made by, the versions of the
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
    call = strategy.arguments.of_function
    return {
        "format": FORMAT,
        "versions": versions(),
        "strategy": arguments,
        "made_by": None if call is None else call.made_by,
        "code": code,
    }


def _taken(described: Any, key: str, place: str = "strategy") -> Iterator[tuple[str, Any]]:
    """What stands under a key that is no argument, and where; it is taken out."""
    if isinstance(described, dict):
        if key in described:
            yield place, described.pop(key)
        for name, part in described.items():
            yield from _taken(part, key, place if name == CALL else f"{place}.{name}")
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
    """Each place where a description that is kept differs from one of today, with what is there in
    both. An argument that is missing, or has the value of its default, is as if it were not given;
    two of those are the same."""
    if same_numbers(kept, given):
        return
    if isinstance(kept, dict) is not isinstance(given, dict):
        kept, given = _values_of(kept), _values_of(given)
    if isinstance(kept, dict) and kept.get("class") in _FRAMES and "_mgr" in kept:
        yield _Unknown(place)
    elif isinstance(kept, dict) and isinstance(given, dict):
        kept = translated(kept)
        call, called = kept.get(CALL), given.get(CALL)
        if isinstance(call, dict) and called is not None:
            call = translated(call)
            if call.get("function") == called["function"]:
                kept, given = call, called
        keys = [key for key in dict.fromkeys((*kept, *given)) if key not in MARKS]
        if kept.get("class") != given.get("class"):  # they differ in everything
            keys = ["class"]
        elif given.get("class") in _DOMAINS:
            yield from differences(_dtypes(kept), _dtypes(given), f"{place}.dtype")
        for key in keys:
            is_kept = key in given and key in _named(kept, GIVEN)
            if is_kept or not all(_is_default_or_missing(each, key) for each in (kept, given)):
                inner = f"{place}.{key}" if place else str(key)
                yield from differences(kept.get(key, _MISSING), given.get(key, _MISSING), inner)
    elif isinstance(kept, list) and isinstance(given, list) and len(kept) == len(given):
        for i, (old, new) in enumerate(zip(kept, given, strict=True)):
            yield from differences(old, new, f"{place}[{i}]")
    elif kept != given or type(kept) is not type(given):  # True is another one than 1
        yield f"{place} is {_shown(kept)} in the study, got {_shown(given)}"


def _values_of(numbers: Any) -> Any:
    """The values of a described tensor; anything else as it is."""
    is_tensor = isinstance(numbers, dict) and numbers.keys() == {"dtype", "values"}
    return numbers["values"] if is_tensor else numbers


def is_same(kept: Any, given: Any) -> bool:
    """Whether a description that is kept differs nowhere from one of today.

    Args:
        kept: As it was read from JSON.
        given: As it would be read.
    """
    return next(differences(kept, given), None) is None


class _Unknown(str):
    """A place of which a description does not say what was there."""


def _is_default_or_missing(described: dict[str, Any], key: str) -> bool:
    """Whether an argument is as if it had not been given."""
    return key not in described or key in _named(described, DEFAULT)


def _named(described: dict[str, Any], mark: str) -> list[Any]:
    """The names under a mark."""
    names = described.get(mark)
    return names if isinstance(names, list) else []


def _dtypes(described: dict[str, Any]) -> list[Any]:
    return [
        part["dtype"] for part in described.values() if isinstance(part, dict) and "dtype" in part
    ]


def require_same(kept: dict[str, Any], given: dict[str, Any], whose: str) -> None:
    """Compares two descriptions.

    Args:
        kept: Of the strategy that a study was begun with.
        given: Of the one it is opened with.
        whose: The study, for messages.

    Raises:
        AnotherStrategyError: Other arguments; says which.
        BrokenStudyError: A description that no version wrote.
        NewerStudyError: One that a newer version wrote.

    Warns:
        VersionWarning: Another version of a library, or other code of a function.
        UndescribedWarning: The study does not say what an argument was.
    """
    _require_readable(kept, whose)
    given = from_json(to_json(given))
    versions = list(differences(kept.get("versions"), given["versions"]))
    found = list(differences(kept.get("strategy"), given["strategy"]))
    different = [each for each in found if not isinstance(each, _Unknown)]
    unknown = [each for each in found if isinstance(each, _Unknown)]
    if different:
        more = len(different) - _MOST_SHOWN
        ending = f"; and {more} more" if more > 0 else ""
        shown = "; ".join(different[:_MOST_SHOWN]) + ending
        raise AnotherStrategyError(f"{whose} was begun with other arguments: {shown}")
    if unknown:
        warn(
            f"{whose} does not say which numbers it was begun with, so that they may be others: "
            + "; ".join(unknown),
            UndescribedWarning,
            stacklevel=4,
        )
    if versions:
        warn(
            f"{whose} was begun with other versions, so that its next question may be another one: "
            + "; ".join(versions),
            VersionWarning,
            stacklevel=4,
        )
    before, now = (each.get("code", {}).get(_PYTHON, {}) for each in (kept, given))
    # One place for each: code is found in the arguments of a function and of its strategy.
    other = {
        str(before[place]): place
        for place in reversed(before)
        if now.get(place, before[place]) != before[place]
    }
    if other:
        warn(
            f"{whose} was begun with other code, so that its next question may be another one: "
            + "; ".join(reversed(other.values())),
            VersionWarning,
            stacklevel=4,
        )


def _require_readable(kept: dict[str, Any], whose: str) -> None:
    number, code = kept.get("format", 1), kept.get("code", {})
    if type(number) is not int or number < 1:
        wrong = f"its format is {_shown(number)}"
    elif not isinstance(code, dict) or not all(isinstance(each, dict) for each in code.values()):
        wrong = f"its code must be digests for each version of Python, got {_shown(code)}"
    elif number > FORMAT:
        raise NewerStudyError(
            f"the description of {whose} has format {number}, and this version of botorch_ext "
            f"knows {FORMAT}: use a newer one"
        )
    else:
        return
    raise BrokenStudyError(f"the description of {whose} cannot be read: {wrong}")


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "missing"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."
