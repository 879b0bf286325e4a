"""Records: frozen dataclasses as dicts of plain values, which JSON can hold, and back.

The types of the fields say what a value may be: ``int`` is a whole number of at least 0, ``float``
and `Finite` are finite numbers, `NonNegative` and `Positive` are those of these signs,
``tuple[..., ...]`` is a list, and ``str``, ``bool``, ``Literal[...]``, ``dict[str, Any]`` and other
records are what they say. ``Any`` may be anything. A field with a default may be missing, and one
that is None is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from botorch_ext.checks import Allowed, amount, flag, short, whole_number

_Record = TypeVar("_Record")
_Decoder = Callable[[Any, str], Any]

Finite = Annotated[float, "finite"]
NonNegative = Annotated[float, "non-negative and finite"]
Positive = Annotated[float, "positive and finite"]
# The entries of records and reports that have the units and the sign of the values.
_SIGNED = {
    "best_observation",
    "lower",
    "mean",
    "mean_reward",
    "running_error",  # a sum of observations minus means
    "threshold",
    "upper",
}


def plain(record: Any) -> dict[str, Any]:
    """The fields of a record that are not None, as plain values by name.

    Args:
        record: A dataclass.

    Returns:
        A new dict; records in it are dicts, and tuples are lists.
    """
    return {name: _plain(value) for name, value in vars(record).items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return plain(value) if is_dataclass(value) else value


def decoded(kind: type[_Record], given: Any, name: str, among_others: bool = False) -> _Record:
    """The record that `plain` made these values of.

    Args:
        kind: The class of the record, a dataclass.
        given: What should be a dict of plain values.
        name: The name of the dict, for messages.
        among_others: Whether the dict may have other keys than those of the record.

    Raises:
        ValueError: If a key is missing or, unless it is ``among_others``, unknown, or if a value is
            not what the type of its field allows.
    """
    decoders = _decoders(kind)
    if not isinstance(given, dict) or not (among_others or decoders.keys() >= given.keys()):
        raise ValueError(f"{name} must be a dict with {sorted(decoders)}, got {short(given)}")
    values = {}
    for key, (decoder, is_needed) in decoders.items():
        whose = f"{key} in the {name}"
        if key in given:
            values[key] = decoder(given[key], whose)
        elif is_needed:
            raise ValueError(f"{whose} must be given, got {short(given)}")
    return kind(**values)


def in_sign(plain: Any, sign: float) -> Any:
    """Converts plain values of a record or a report between the signs of a strategy and its user.

    Args:
        plain: Plain values.
        sign: -1 if the user minimises, else 1.

    Returns:
        A copy whose means, bounds and observations are multiplied by the sign, or the values
        themselves if it is 1. If it is -1, ``lower`` and ``upper`` change places.
    """
    if sign > 0:
        return plain
    if isinstance(plain, list):
        return [in_sign(entry, sign) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    signed = {
        key: _negated(entry) if key in _SIGNED else _with_parts_in_sign(key, entry, sign)
        for key, entry in plain.items()
    }
    if "lower" in plain and "upper" in plain:
        signed |= {"lower": signed["upper"], "upper": signed["lower"]}
    return signed


def _with_parts_in_sign(key: str, entry: Any, sign: float) -> Any:
    # The parts of a width or of a length of rounds have the same names, and no sign.
    is_made_of_parts = key.endswith("width") or key == "round_lengths"
    return entry if is_made_of_parts else in_sign(entry, sign)


def _negated(entry: Any) -> Any:
    if isinstance(entry, list):
        return [_negated(value) for value in entry]
    return 0.0 - entry if isinstance(entry, float) else entry  # no -0.0


def check_record(kind: type) -> None:
    """Check that `decoded` can make a record.

    Raises:
        TypeError: If it is no dataclass, or if a field has a type that a record cannot have.
    """
    if not is_dataclass(kind):
        raise TypeError(f"record must be a dataclass, got {short(kind)}")
    _decoders(kind)


@cache
def _decoders(kind: Any) -> dict[str, tuple[_Decoder, bool]]:
    """The decoder of each field of a record, and whether the field must be given."""
    hints = get_type_hints(kind, include_extras=True)
    return {
        field.name: (
            _decoder(_without_none(hints[field.name])),
            field.default is MISSING and field.default_factory is MISSING,
        )
        for field in fields(kind)
    }


def _without_none(hint: Any) -> Any:
    """The type of values that are not None."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    given = [part for part in get_args(hint) if part is not type(None)]
    return given[0] if len(given) == 1 else hint


def _decoder(hint: Any) -> _Decoder:
    """The function from a plain value and its name to a value of a type."""
    kind, parts = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return partial(_number, allowed=parts[1])
    if kind is Literal:
        return partial(_one_of, allowed=parts)
    if kind is tuple and parts[1:] == (...,):
        return partial(_several, decoder=_decoder(parts[0]))
    if (given := _without_none(hint)) is not hint:
        return partial(_or_none, decoder=_decoder(given))
    if hint in _SIMPLE:
        return _SIMPLE[hint]
    if is_dataclass(hint):
        return partial(decoded, cast(type, hint))
    raise TypeError(f"record must have fields of types that it can have, got {hint}")


def _number(value: Any, name: str, allowed: Allowed) -> float:
    if type(value) not in (int, float):
        raise ValueError(f"{name} must be a number, got {short(value)}")
    return amount(value, name, allowed)


def _whole_number(value: Any, name: str) -> int:
    if type(value) is not int:
        raise ValueError(f"{name} must be a whole number, got {short(value)}")
    return whole_number(value, name, least=0)


def _one_of(value: Any, name: str, allowed: tuple[Any, ...]) -> Any:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {list(allowed)}, got {short(value)}")
    return value


def _of_kind(value: Any, name: str, kind: type | UnionType, what: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{name} must be {what}, got {short(value)}")
    return value


def _several(value: Any, name: str, decoder: _Decoder) -> tuple[Any, ...]:
    return tuple(decoder(part, name) for part in _of_kind(value, name, list | tuple, "a list"))


def _or_none(value: Any, name: str, decoder: _Decoder) -> Any:
    return None if value is None else decoder(value, name)


_SIMPLE: dict[Any, _Decoder] = {
    Any: lambda value, name: value,
    int: _whole_number,
    float: partial(_number, allowed="finite"),
    str: partial(_of_kind, kind=str, what="a text"),
    bool: flag,
    dict[str, Any]: partial(_of_kind, kind=dict, what="a dict"),
}
