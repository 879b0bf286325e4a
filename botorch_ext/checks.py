"""Single numbers, checked at the door."""

from __future__ import annotations

import operator
import reprlib
from typing import Any

_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 80


def whole_number(
    value: Any, name: str, least: int | None = None, error: type[ValueError] = ValueError
) -> int:
    """A whole number of any library as an int, or an error that names the argument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise error(f"{name} must be a whole number, got {_SHORT.repr(value)}")
    if least is not None and number < least:
        raise error(f"{name} must be at least {least}, got {value}")
    return number


def one_number(value: Any, name: str, whose: str = "") -> float:
    """A number of any library as a float, or a ValueError that names the argument (and, after the
    value, ``whose`` it is)."""
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # RuntimeError: of torch
        pass
    raise ValueError(f"{name} must be one number, got {_SHORT.repr(value)}{whose}")
