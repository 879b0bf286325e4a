"""Single numbers, checked at the door."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, Literal

_SHORT = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 80

Allowed = Literal["finite", "non-negative and finite", "positive and finite", "in (0, 1)"]
_HOLDS: dict[Allowed, Callable[[float], bool]] = {
    "finite": math.isfinite,
    "non-negative and finite": lambda number: 0 <= number < math.inf,
    "positive and finite": lambda number: 0 < number < math.inf,
    "in (0, 1)": lambda number: 0 < number < 1,
}


def short(value: Any) -> str:
    """How a value that was given looks, in one line that is not long."""
    if isinstance(value, int) and value.bit_length() > 10_000:  # which Python may refuse to print
        return f"an int of {value.bit_length()} bits"
    return " ".join(_SHORT.repr(value).split())


def whole_number(
    value: Any, name: str, least: int | None = None, error: type[ValueError] = ValueError
) -> int:
    """A whole number of any library, one of 64 bits, as an int, or an error that names the
    argument."""
    number = None
    if not (isinstance(value, bool) or _is_no_number(value)):
        with suppress(TypeError):
            number = operator.index(value)
    if number is None:
        raise error(f"{name} must be a whole number, got {short(value)}")
    if least is not None and number < least:
        raise error(f"{name} must be at least {least}, got {short(value)}")
    if not -(2**63) <= number < 2**63:
        raise error(f"{name} must be less than 2^63 either way, got {short(value)}")
    return number


def one_number(value: Any, name: str, whose: str = "") -> float:
    """A number of any library as a float, or a ValueError that names the argument (and, after the
    value, ``whose`` it is). Bools, dates and numbers that may be missing are none."""
    if type(value) is float:
        return value
    try:
        if not (isinstance(value, bool | str | bytes | bytearray) or _is_no_number(value)):
            # Of arrays and tensors `item` takes one entry, whatever their shape.
            return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # RuntimeError: of torch
        pass
    raise ValueError(f"{name} must be one number, got {short(value)}{whose}")


def amount(value: Any, name: str, allowed: Allowed) -> float:
    """`one_number` that is as it is allowed to be."""
    number = one_number(value, name)
    if not _HOLDS[allowed](number):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return number


def flag(value: Any, name: str) -> bool:
    """True or False itself, or a ValueError that names the argument."""
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {short(value)}")
    return value


def _is_no_number(value: Any) -> bool:
    """Whether what another library made is masked, or of a dtype other than real numbers."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return False
    kind = getattr(dtype, "kind", None)  # of numpy and pandas
    no_real = str(dtype) == "torch.bool" if kind is None else kind not in "iuf"
    return no_real or not callable(getattr(value, "mask", len))


def did_you_mean(given: Any, known: Iterable[Any]) -> str:
    """The end of a message: the known value that a misspelt one resembles, or nothing."""
    texts = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(given).casefold(), texts, n=1)
    return f"; did you mean {texts[close[0]]!r}?" if close else ""
