"""Parameters of a space that are numbers, and what all parameters have."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields
from functools import cached_property
from typing import Any, Protocol

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains.steps import LARGEST, TOLERANCE, Steps

# Digits after the point that a float64 near 1 has.
_MOST_DIGITS = 15


class Parameter(Protocol):
    """What a `Space` asks of a parameter."""

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number of the column; equal where there is no column."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the column has whole numbers, all between the ends."""
        ...

    @property
    def spacing(self) -> float | None:
        """The distance of numbers of the column that are not all whole; None for all numbers."""
        ...

    @property
    def log(self) -> bool:
        """Whether the logarithm is what counts."""
        ...

    @property
    def line(self) -> tuple[float, float] | None:
        """(a, b) where the value is a + b times the number of the column; None where it is not."""
        ...

    @property
    def unit(self) -> str | None:
        """What the values are in, for people."""
        ...

    @property
    def rule(self) -> str:
        """What a value must be, as words that follow the name."""
        ...

    def encoded(self, value: Any) -> float:
        """The number of a value, or a ValueError whose message follows the name."""
        ...

    def decoded(self, number: float) -> Any:
        """The value of a number: a plain Python one."""
        ...


@dataclass(frozen=True, repr=False)
class Real:
    """A range of numbers.

    Args:
        low: The least value.
        high: The largest; with steps, the last step at or below it.
        log: Whether the logarithm is what counts; then ``low`` is above 0.
        step: The distance between two values, which begin at ``low``; None for all numbers.
        digits: How many digits after the point a value can have, in place of ``step``.
        unit: What the values are in, for people, as in ``"°C"``.

    Raises:
        ValueError: Ends that are not finite or in the wrong order, a logarithm of 0, a step that is
            not positive, both a step and digits, steps of which not even one lies in the range, or
            on a logarithmic scale steps of twice the lower end or more.
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    step: float | None = None
    digits: int | None = None
    unit: str | None = None

    is_whole, line = False, (0.0, 1.0)

    def __post_init__(self) -> None:
        _check_range(self)
        if self.digits is not None:
            digits = whole_number(self.digits, "digits", least=0)
            if self.step is not None or digits > _MOST_DIGITS:
                raise ValueError(
                    f"digits must be from 0 to {_MOST_DIGITS} and without step, got {digits} with "
                    f"step {self.step}"
                )
        elif self.step is not None:
            one_number(self.step, "step")
        low, high = self.ends
        if low > high:
            raise ValueError(f"digits must leave a number from {self.low} to {self.high}, got none")
        if self.log and low < high and self.spacing and not self.spacing < 2 * low:
            raise ValueError(
                f"{'step' if self.digits is None else 'digits'} must give steps below twice low on "
                f"a logarithmic scale, got steps of {self.spacing:g} from {low:g} on"
            )

    @property
    def spacing(self) -> float | None:
        """The distance of two values; None for all numbers."""
        return self.step if self.digits is None else float(f"1e-{self.digits}")

    @cached_property
    def steps(self) -> Steps | None:
        """The values where they have steps."""
        if self.spacing is None:
            return None
        if self.digits is None:
            return Steps.between(float(self.low), float(self.high), self.spacing)
        whole = Steps.between(0.0, max(abs(self.low), abs(self.high)), self.spacing)
        low = math.ceil(whole.place(float(self.low)) - TOLERANCE)
        high = math.floor(whole.place(float(self.high)) + TOLERANCE)
        return Steps(low * whole.stride, whole.stride, whole.scale, high - low)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        if self.steps is None:
            return float(self.low), float(self.high)
        least, largest = self.steps.value(0), self.steps.value(self.steps.num)
        return least, min(largest, float(self.high)) if self.digits is None else largest

    @property
    def rule(self) -> str:
        """What a value must be, as words that follow the name."""
        steps = "" if self.spacing is None else f" in steps of {self.spacing:g}"
        return f"must be a number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
        """A value as a number, a step without what rounding did to it; or a ValueError whose
        message follows the name."""
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.steps is None:
            if self.low <= number <= self.high:
                return number
        elif math.isfinite(number):
            place = self.steps.place(number)
            if abs(place - round(place)) < TOLERANCE and 0 <= round(place) <= self.steps.num:
                return self.decoded(number)
        raise ValueError(f"{self.rule}, got {value!r}")

    def decoded(self, number: float) -> float:
        """The value of a number, which may have been rounded to fewer digits."""
        low, high = self.ends
        if self.steps is not None:
            number = self.steps.value(round(self.steps.place(number))) + 0.0
        return min(max(float(number), low), high)

    def __repr__(self) -> str:
        return _as_called(self)


@dataclass(frozen=True, repr=False)
class Integer:
    """A range of whole numbers.

    Args:
        low: The least value.
        high: The largest; with steps, the last step at or below it.
        log: Whether the logarithm is what counts; then ``low`` is above 0.
        step: The distance between two values, which begin at ``low``.
        unit: As for `Real`.

    Raises:
        ValueError: As `Real`; ends that are no whole numbers, or beyond 2^53.
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    step: int = 1
    unit: str | None = None

    line = (0.0, 1.0)

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high), ("step", self.step)):
            if type(value) is not int or abs(value) > LARGEST:
                raise ValueError(f"{name} must be a whole number up to 2^53, got {value!r}")
        _check_range(self)
        if self.log and self.step > 1 and not self.step < 2 * self.low:
            raise ValueError(
                "step must be below twice low on a logarithmic scale, got steps of "
                f"{self.step} from {self.low} on"
            )

    @property
    def is_whole(self) -> bool:
        """Whether the values are all whole numbers of the range."""
        return self.step == 1

    @property
    def spacing(self) -> float | None:
        """The distance of two values; None where it is 1."""
        return None if self.step == 1 else float(self.step)

    @property
    def steps(self) -> Steps:
        """The values."""
        return Steps.between(float(self.low), float(self.high), float(self.step))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        return float(self.low), float(self.high - (self.high - self.low) % self.step)

    @property
    def rule(self) -> str:
        """As for `Real`."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"must be a whole number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
        """As for `Real`."""
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.low <= number <= self.high and (number - self.low) % self.step == 0:
            return number
        raise ValueError(f"{self.rule}, got {value!r}")

    def decoded(self, number: float) -> int:
        """As for `Real`."""
        return round(number)

    def __repr__(self) -> str:
        return _as_called(self)


def _check_range(given: Real | Integer) -> None:
    low, high = one_number(given.low, "low"), one_number(given.high, "high")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"low must be at most high, both finite, got {low} and {high}")
    if not math.isfinite(high - low):
        raise ValueError(f"high must be a finite distance from low, got {low} and {high}")
    if given.log and not low > 0:
        raise ValueError(f"low must be above 0 on a logarithmic scale, got {low}")
    if given.step is not None and not 0 < given.step < math.inf:
        raise ValueError(f"step must be positive and finite, got {given.step}")
    if not isinstance(given.unit, str | None):
        raise ValueError(f"unit must be a text, got {given.unit!r}")


def _as_called(given: Real | Integer) -> str:
    """A range as it can be written, without what has its default."""
    options = [each for each in fields(given)[2:] if getattr(given, each.name) != each.default]
    written = "".join(f", {each.name}={getattr(given, each.name)!r}" for each in options)
    return f"{type(given).__name__}({given.low}, {given.high}{written})"


def _number_or_nan(value: Any) -> float:
    try:
        return one_number(value, "value")
    except ValueError:
        return math.nan
