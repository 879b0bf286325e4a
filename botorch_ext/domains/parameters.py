"""Parameters of other tools, each as one column of numbers or as no column at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from botorch_ext.checks import one_number

# Whole numbers beyond are not told apart by a float64.
_LARGEST = 2**53
# How far from a step, in steps, a number may lie that is written as one.
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Real:
    """A range of numbers, in its own units; with steps the column counts them.

    Args:
        low: The least value.
        high: The largest; with steps, the last step at or below it.
        log: Whether the logarithm is what counts; then ``low`` is above 0.
        step: Between two values, counted from ``low``; None for all numbers.

    Raises:
        ValueError: Ends that are not finite or in the wrong order, a logarithm of 0, or steps on a
            logarithmic scale.
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log, self.step)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number of the column."""
        if self.step is None:
            return float(self.low), float(self.high)
        return 0.0, float(math.floor((self.high - self.low) / self.step + _TOLERANCE))

    @property
    def is_whole(self) -> bool:
        """Whether the column has whole numbers alone."""
        return self.step is not None

    @property
    def line(self) -> tuple[float, float]:
        """(a, b) where the value is a + b times the number of the column."""
        return (0.0, 1.0) if self.step is None else (self.low, self.step)

    def encoded(self, value: Any) -> float:
        """The number of a value, or a ValueError whose message follows the name."""
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.step is None:
            if self.low <= number <= self.high:
                return number
        elif math.isfinite(number):
            count = (number - self.low) / self.step
            if abs(count - round(count)) < _TOLERANCE and 0 <= round(count) <= self.ends[1]:
                return float(round(count))
        steps = "" if self.step is None else f" in steps of {self.step}"
        raise ValueError(f"must be a number from {self.low} to {self.high}{steps}, got {value!r}")

    def decoded(self, number: float) -> float:
        """The value of a number."""
        if self.step is None:
            return float(number)
        return min(self.low + round(number) * self.step, float(self.high))


@dataclass(frozen=True)
class Whole:
    """A range of whole numbers, in its own units; with steps above 1 the column counts them.

    Args:
        low: The least value.
        high: The largest; with steps, the last step at or below it.
        log: Whether the logarithm is what counts; then ``low`` is above 0.
        step: Between two values, counted from ``low``.

    Raises:
        ValueError: As `Real`; ends that are no whole numbers, or beyond 2^53.
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    is_whole = True

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high), ("step", self.step)):
            if type(value) is not int or abs(value) > _LARGEST:
                raise ValueError(f"{name} must be a whole number up to 2^53, got {value!r}")
        _check_range(self.low, self.high, self.log, None if self.step == 1 else self.step)

    @property
    def ends(self) -> tuple[float, float]:
        """As in `Real`."""
        if self.step == 1:
            return float(self.low), float(self.high)
        return 0.0, float((self.high - self.low) // self.step)

    @property
    def line(self) -> tuple[float, float]:
        """As in `Real`."""
        return (0.0, 1.0) if self.step == 1 else (float(self.low), float(self.step))

    def encoded(self, value: Any) -> float:
        """As in `Real`."""
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.low <= number <= self.high and number.is_integer():
            count, rest = divmod(int(number) - self.low, self.step)
            if not rest:
                return number if self.step == 1 else float(count)
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        raise ValueError(
            f"must be a whole number from {self.low} to {self.high}{steps}, got {value!r}"
        )

    def decoded(self, number: float) -> int:
        """As in `Real`."""
        return round(number) if self.step == 1 else self.low + round(number) * self.step


@dataclass(frozen=True)
class Choice:
    """Values of any kind without an order; the column has their places.

    Args:
        values: Those that there are; a value may come once.

    Raises:
        ValueError: No values, or one that comes twice.
    """

    values: tuple[Any, ...]

    is_whole, log, line = False, False, None

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _checked_values(self.values))

    @property
    def ends(self) -> tuple[float, float]:
        """As in `Real`."""
        return 0.0, len(self.values) - 1.0

    def encoded(self, value: Any) -> float:
        """As in `Real`."""
        place = _place(self.values, value)
        if place is None:
            raise ValueError(f"must be one of {list(self.values)}, got {value!r}")
        return float(place)

    def decoded(self, number: float) -> Any:
        """As in `Real`."""
        return self.values[round(number)]


@dataclass(frozen=True)
class Ordered(Choice):
    """Values of which neighbours are alike; the column has their places.

    Args:
        values: Those that there are, in their order, which of numbers is the ascending one.

    Raises:
        ValueError: As `Choice`, or numbers that do not ascend.
    """

    is_whole = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(isinstance(value, int | float) for value in self.values):
            return
        numbers = [one_number(value, "values") for value in self.values]
        if any(not a < b for a, b in pairwise(numbers)):
            raise ValueError(f"values must be in ascending order, got {list(self.values)}")


@dataclass(frozen=True)
class Fixed:
    """One value; no column.

    Args:
        value: Of any kind.
    """

    value: Any

    is_whole, log, line = False, False, None
    ends = (0.0, 0.0)

    def encoded(self, value: Any) -> float:
        """As in `Real`."""
        if _place((self.value,), value) is None:
            raise ValueError(f"must be {self.value!r}, got {value!r}")
        return 0.0

    def decoded(self, number: float) -> Any:
        """As in `Real`."""
        return self.value


Parameter = Real | Whole | Choice | Ordered | Fixed


def _check_range(low: float, high: float, log: bool, step: float | None) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"low must be at most high, both finite, got {low} and {high}")
    if not math.isfinite(high - low):
        raise ValueError(f"high must be a finite distance from low, got {low} and {high}")
    if log and not low > 0:
        raise ValueError(f"low must be above 0 on a logarithmic scale, got {low}")
    if step is not None and not 0 < step < math.inf:
        raise ValueError(f"step must be positive and finite, got {step}")
    if step is not None and log:
        raise ValueError(f"step must not be given on a logarithmic scale, got {step}")


def _checked_values(values: Sequence[Any]) -> tuple[Any, ...]:
    values = tuple(values)
    if not values:
        raise ValueError("values must have an entry, got none")
    for i, value in enumerate(values):
        if any(_same(value, other) for other in values[:i]):
            raise ValueError(f"values must differ from each other, got {value!r} twice")
    return values


def _place(values: Sequence[Any], value: Any) -> int | None:
    """Where a value stands: as itself or, where it is a number, as an equal one of another type."""
    for i, other in enumerate(values):
        if _same(value, other):
            return i
    if isinstance(value, int | float) and not isinstance(value, bool):
        for i, other in enumerate(values):
            if isinstance(other, int | float) and not isinstance(other, bool) and other == value:
                return i
    return None


def _same(value: Any, other: Any) -> bool:
    """Whether two values are one choice: True is not 1, NaN is NaN, and a tuple is the list that
    JSON makes of it."""
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    if type(value) is not type(other):
        return False
    return bool(value == other) or (value != value and other != other)


def _number_or_nan(value: Any) -> float:
    try:
        return one_number(value, "value")
    except ValueError:
        return math.nan
