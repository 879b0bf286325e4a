"""Description of a strategy in a study: the call that made it, in plain values (see `codec`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from warnings import warn

from botorch_ext.checks import named, short
from botorch_ext.codec import decode, differences, encode, renamed
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    StudyError,
    UndescribedWarning,
    VersionWarning,
)
from botorch_ext.plain_events import from_json, to_json, version_of
from botorch_ext.strategies import Strategy

_LIBRARIES = ("botorch-ext", "torch", "botorch", "gpytorch")
_ADVICE = "open the study in Python, with the strategy that it was begun with: bx.Study(path, ...)"


def describe(strategy: Strategy) -> dict[str, Any]:
    """Describes a strategy.

    Returns:
        The call that made it, and the versions of the libraries. Devices are left out, because a
        study may move to another device.

    Warns:
        UndescribedWarning: Something in an argument cannot be described.
    """
    made = encode(strategy, "strategy")
    unknown = [f"{place} (a {kind})" for place, kind in _unknown(made, "strategy")]
    if unknown:
        warn(
            "a study cannot tell whether it is opened with the same: " + "; ".join(unknown),
            UndescribedWarning,
            stacklevel=3,
        )
    return {"versions": versions(), "strategy": made}


def _unknown(plain: Any, place: str) -> Iterator[tuple[str, str]]:
    """The places of objects that do not show their arguments, and their classes."""
    if isinstance(plain, dict):
        if isinstance(plain.get("unknown"), str):
            yield place, plain["unknown"]
            return
        of = next((key for key in ("arguments", "dict") if isinstance(plain.get(key), dict)), None)
        for name, part in (plain if of is None else plain[of]).items():
            yield from _unknown(part, f"{place}.{name}")
    elif isinstance(plain, list):
        for i, part in enumerate(plain):
            yield from _unknown(part, f"{place}[{i}]")


def _without_sign(made: Any) -> Any:
    """The call that made a strategy without its ``minimize``, which the study may say instead."""
    arguments = made.get("arguments") if isinstance(made, dict) else None
    if not isinstance(arguments, dict):
        return made
    return made | {"arguments": {k: v for k, v in arguments.items() if k != "minimize"}}


def versions() -> dict[str, str | None]:
    """The versions of this library and of the libraries that it computes with."""
    return {name: version_of(name) for name in _LIBRARIES}


def described_strategy(description: dict[str, Any], whose: str) -> Strategy:
    """Makes the strategy of a study again.

    Raises:
        StudyError: The strategy needs a class or a function of the user that was not allowed, or
            the description is no description. The message names the argument.
    """
    try:
        strategy = decode(description.get("strategy"), "its strategy")
    except ValueError as error:
        raise StudyError(f"{whose} cannot make its strategy again, {error}: {_ADVICE}") from error
    if not isinstance(strategy, Strategy):
        raise StudyError(f"{whose} has no description of its strategy: {_ADVICE}")
    return strategy


def require_same(kept: dict[str, Any], given: dict[str, Any], whose: str) -> None:
    """Compares two descriptions.

    Args:
        kept: The description of the strategy that the study was begun with.
        given: The description of the strategy that the study is opened with.
        whose: The name of the study in messages.

    Raises:
        AnotherStrategyError: Arguments differ; the message names them.

    Warns:
        VersionWarning: The version of a library differs.
    """
    given = from_json(to_json(given))
    try:
        made = _without_sign(renamed(kept.get("strategy")))
        different = list(differences(made, _without_sign(given["strategy"])))
    except Exception as error:  # of plain values that nobody wrote
        raise BrokenStudyError(f"the description of {whose} cannot be read: {error!r}") from error
    if different:
        is_space = any(each.startswith("domain.parameters.") for each in different)
        hint = "; study.widen widens ranges and choices" if is_space else ""
        raise AnotherStrategyError(
            f"{whose} was begun with other arguments: {named(different)}{hint}"
        )
    before, now = kept.get("versions"), given["versions"]
    before = before if isinstance(before, dict) else {}
    other = [
        f"{name} is {short(before.get(name))} in the study, got {number!r}"
        for name, number in now.items()
        if number != before.get(name)
    ]
    if other:
        warn(
            f"{whose} was begun with other versions, so that its next question may be another one: "
            + "; ".join(other),
            VersionWarning,
            stacklevel=4,
        )
