"""Checks of single numbers and flags that users pass."""

from __future__ import annotations

import math
import operator
import reprlib
from collections.abc import Callable, Iterable, Sequence
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
# The most items that a message names.
_MOST_NAMED = 5


def short(value: Any) -> str:
    """A short text of a value, in one line, for messages."""
    if isinstance(value, int) and value.bit_length() > 10_000:  # which Python may refuse to print
        return f"an int of {value.bit_length()} bits"
    return " ".join(_SHORT.repr(value).split())


def some_of(values: Any) -> str:
    """A short text of numbers, for messages: all of them if they are few, otherwise the first ones
    and their shape.

    Args:
        values: Numbers as a tensor, an array or a list.
    """
    shape = tuple(values.shape) if hasattr(values, "shape") else (len(values),)
    text = short(values.tolist() if hasattr(values, "tolist") else values)
    return text if max(shape, default=0) <= _SHORT.maxlist else f"{text} of shape {shape}"


def whole_number(
    value: Any, name: str, least: int | None = None, error: type[ValueError] = ValueError
) -> int:
    """Check a whole number.

    Args:
        value: A number of any library; bools, missing values and floats are refused.
        name: The name of the argument, for the message.
        least: The least number allowed; None for no limit.
        error: The class of the error.

    Returns:
        The number as an int of at most 64 bits.

    Raises:
        ValueError: If it is not such a number.
    """
    number = None
    if not (isinstance(value, bool) or _is_no_number(value)):
        with suppress(TypeError):
            number = operator.index(value)
    if number is None:
        raise error(f"{name} must be a whole number, got {short(value)}")
    if least is not None and number < least:
        raise error(f"{name} must be at least {least}, got {short(value)}")
    if not -(2**63) <= number < 2**63:
        raise error(f"{name} must be from -2^63 to less than 2^63, got {short(value)}")
    return number


def one_number(value: Any, name: str, whose: str = "") -> float:
    """Check a number.

    Args:
        value: A number of any library; bools, dates and missing values are refused.
        name: The name of the argument, for the message.
        whose: A text that follows the value in the message.

    Returns:
        The number as a float, which may be NaN or infinite.

    Raises:
        ValueError: If it is not one number.
    """
    if type(value) is float:
        return value
    try:
        if not (isinstance(value, bool | str | bytes | bytearray) or _is_no_number(value)):
            # `item` converts arrays and tensors with one entry, whatever their shape.
            return float(value.item() if hasattr(value, "item") else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # torch raises RuntimeError
        pass
    raise ValueError(f"{name} must be one number, got {short(value)}{whose}")


def amount(value: Any, name: str, allowed: Allowed) -> float:
    """Check a number and its range.

    Args:
        value: A number of any library.
        name: The name of the argument, for the message.
        allowed: The range, in words.

    Returns:
        The number as a float.

    Raises:
        ValueError: If it is not one number in this range.
    """
    number = one_number(value, name)
    if not _HOLDS[allowed](number):
        raise ValueError(f"{name} must be {allowed}, got {value}")
    return number


def flag(value: Any, name: str) -> bool:
    """A value that must be True or False.

    Args:
        value: What was given.
        name: The name of the argument, for the message.

    Raises:
        ValueError: If it is not a bool.
    """
    if not isinstance(value, bool):
        raise ValueError(f"{name} must be True or False, got {short(value)}")
    return value


def is_text(value: Any) -> bool:
    """Whether a value is a text that can be written in UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def _is_no_number(value: Any) -> bool:
    """Whether a value of another library is masked, or has a dtype other than real numbers."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return False
    kind = getattr(dtype, "kind", None)  # of numpy and pandas
    no_real = str(dtype) == "torch.bool" if kind is None else kind not in "iuf"
    return no_real or not callable(getattr(value, "mask", len))


def did_you_mean(given: Any, known: Iterable[Any]) -> str:
    """The end of a message that suggests a known value for a misspelt one.

    Args:
        given: What was given.
        known: The known values.

    Returns:
        A text such as ``"; did you mean 'water'?"``, or an empty text if none is similar.
    """
    texts = {str(each).casefold(): each for each in known}
    close = get_close_matches(str(given).casefold(), texts, n=1)
    return f"; did you mean {texts[close[0]]!r}?" if close else ""


def named(sentences: Sequence[str]) -> str:
    """The first five sentences of a message, and how many more there are."""
    more = len(sentences) - _MOST_NAMED
    return "; ".join(sentences[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
