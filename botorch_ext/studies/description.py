"""Description of a strategy: its arguments, as a plain nested dict.

Format 3 marks the arguments that have the value of their default, and those of them that the user
gave, which keep their value if the default changes. Arguments of objects, such as widths, count as
not given. Format 2 does not mark what was given. Format 1 marks no defaults, and has the arguments
of the strategy without those of the function that the user called.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from warnings import warn

from botorch_ext.checks import named
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    NewerStudyError,
    UndescribedWarning,
    VersionWarning,
)
from botorch_ext.strategies import Strategy
from botorch_ext.studies.plain_arguments import plain, plain_whole
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.plain_numbers import same_numbers
from botorch_ext.studies.translations import CALL, CODE, DEFAULT, GIVEN, MARKS, UNKNOWN, translated

FORMAT = 3
_LIBRARIES = ("botorch-ext", "torch", "botorch", "gpytorch")
_MISSING = object()
# The version of Python, because each version compiles the same lines to other code.
_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# Classes of domains, whose dtype is that of the strategy.
_DOMAINS = ("Box", "Space", "FiniteSet", "ShardedSet")
# Classes of which format 1 has only the name.
_FRAMES = ("DataFrame", "Series")


def describe(strategy: Strategy, whole: bool = True) -> dict[str, Any]:
    """Describes a strategy.

    Args:
        strategy: The strategy.
        whole: Whether tensors of up to 65,536 numbers are described by them, as in a study; else
            those of up to 200, as in the records of Ax and Optuna.

    Returns:
        Its class and arguments, those of the function that made it, the versions of the libraries,
        and digests of code that belongs to none of them. Devices are left out, because a study may
        move to another device.

    Warns:
        UndescribedWarning: Something in an argument cannot be described.
    """
    arguments = plain_whole(strategy) if whole else plain(strategy)
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
    """Takes out what a description has under a key that is no argument, with its place."""
    if isinstance(described, dict):
        if key in described:
            yield place, described.pop(key)
        for name, part in described.items():
            yield from _taken(part, key, place if name == CALL else f"{place}.{name}")
    elif isinstance(described, list):
        for i, part in enumerate(described):
            yield from _taken(part, key, f"{place}[{i}]")


def versions() -> dict[str, str | None]:
    """The versions of this library and of the libraries that it computes with."""
    return {name: _version(name) for name in _LIBRARIES}


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:  # run from a folder, not installed
        return None


def differences(kept: Any, given: Any, place: str = "") -> Iterator[str]:
    """The places where a kept description differs from one of today, with both values. An argument
    that is missing, or has the value of its default, counts as not given, and two arguments that
    were not given are the same."""
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
        if kept.get("class") != given.get("class"):  # all other entries differ too
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
    elif kept != given or type(kept) is not type(given):  # True differs from 1
        yield f"{place} is {_shown(kept)} in the study, got {_shown(given)}"


def _values_of(numbers: Any) -> Any:
    """The values of a described tensor; anything else is returned as it is."""
    is_tensor = isinstance(numbers, dict) and numbers.keys() == {"dtype", "values"}
    return numbers["values"] if is_tensor else numbers


def is_same(kept: Any, given: Any) -> bool:
    """Whether a kept description is the same as one of today.

    Args:
        kept: The description as it was read from JSON.
        given: The description of today as it would be read from JSON.
    """
    return next(differences(kept, given), None) is None


class _Unknown(str):
    """A place whose value a description does not have."""


def _is_default_or_missing(described: dict[str, Any], key: str) -> bool:
    """Whether an argument counts as not given."""
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
        kept: The description of the strategy that the study was begun with.
        given: The description of the strategy that the study is opened with.
        whose: The name of the study in messages.

    Raises:
        AnotherStrategyError: Arguments differ; the message names them.
        BrokenStudyError: No version wrote the kept description.
        NewerStudyError: A newer version wrote the kept description.

    Warns:
        VersionWarning: The version of a library, or the code of a function, differs.
        UndescribedWarning: The study does not say what an argument was.
    """
    _require_readable(kept, whose)
    given = from_json(to_json(given))
    versions = list(differences(kept.get("versions"), given["versions"]))
    found = list(differences(kept.get("strategy"), given["strategy"]))
    different = [each for each in found if not isinstance(each, _Unknown)]
    unknown = [each for each in found if isinstance(each, _Unknown)]
    if different:
        shown = named(different)
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
    # Each code is named once, though it is in the arguments of a function and of its strategy.
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
