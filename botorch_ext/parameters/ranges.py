"""Parameters of a space that are numbers, and the protocol of all parameters."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from typing import Any, Protocol

from botorch_ext.checks import one_number, whole_number
from botorch_ext.parameters.steps import LARGEST, TOLERANCE, Steps

# Digits after the point that a float64 near 1 has.
_MOST_DIGITS = 15
# Digits of what is asked on a logarithmic scale without steps.
_ASKED_DIGITS = 3
#: The number of significant digits by which every float64 is told from the others.
ALL_DIGITS = 17


class Parameter(Protocol):
    """The members that a `Space` needs of a parameter."""

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest number of the column; both are equal if there is no column."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the column takes all whole numbers between the ends."""
        ...

    @property
    def spacing(self) -> float | None:
        """The distance between neighbouring numbers of the column, if they have steps other than
        all whole numbers; otherwise None."""
        ...

    @property
    def log(self) -> bool:
        """Whether the column has a logarithmic scale."""
        ...

    @property
    def line(self) -> tuple[float, float] | None:
        """(a, b) if the value is a + b times the number of the column; otherwise None."""
        ...

    @property
    def unit(self) -> str | None:
        """The unit of the values, for people; None if they have none."""
        ...

    @property
    def rule(self) -> str:
        """What a value must be, in words that follow the name of the parameter."""
        ...

    def encoded(self, value: Any) -> float:
        """The number of a value in a point.

        Args:
            value: A value of the parameter.

        Returns:
            The number.

        Raises:
            ValueError: If the parameter cannot take the value; the message is meant to follow the
                name of the parameter.
        """
        ...

    def decoded(self, number: float) -> Any:
        """The value that a number in a point stands for.

        Args:
            number: A number of the column.

        Returns:
            A plain Python value.
        """
        ...


@dataclass(frozen=True, repr=False)
class Real:
    """A parameter whose values are the numbers of a range.

    Example:
        >>> import botorch_ext as bx
        >>> bx.Real(20, 80, unit="°C", digits=1)
        Real(20, 80, digits=1, unit='°C')
        >>> bx.Real(1e-4, 1e-1, log=True)
        Real(0.0001, 0.1, log=True)
        >>> bx.algorithms.integrated_ei(bx.Space(dose=bx.Real(1e-4, 1e-1, log=True))).ask().params
        {'dose': 0.00266}

    Args:
        low: The least value.
        high: The largest value; with steps, the largest value is the last step at or below it.
        log: Whether the scale is logarithmic, as for learning rates; ``low`` must then be above 0.
        step: The distance between neighbouring values, counted from ``low``; None allows all
            numbers of the range.
        digits: The number of digits after the decimal point that values may have, in place of
            ``step``.
        unit: The unit of the values, for people, as in ``"°C"``.
        significant: The number of significant digits of the values that strategies ask and
            recommend, as the 3 of 0.0149. Results may be attached with any number of the range.
            None: 3 digits on a logarithmic scale without steps, otherwise all; 17 are all digits.

    Raises:
        ValueError: If the ends are not finite or in the wrong order; if ``log`` is given and
            ``low`` is not above 0; if the step is not positive; if two of a step, digits and
            significant digits are given; if no step lies in the range; or if a logarithmic scale
            has steps of twice the lower end or more.
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    step: float | None = None
    digits: int | None = None
    unit: str | None = None
    significant: int | None = None

    is_whole, line = False, (0.0, 1.0)

    def __post_init__(self) -> None:
        _check_range(self)
        if self.digits is not None:
            digits = whole_number(self.digits, "digits", least=0)
            if self.step is not None or digits > _MOST_DIGITS:
                raise ValueError(
                    f"digits must be from 0 to {_MOST_DIGITS} and given without step, got {digits} "
                    f"with step {self.step}"
                )
        elif self.step is not None:
            one_number(self.step, "step")
        if self.significant is not None:
            significant = whole_number(self.significant, "significant", least=1)
            if self.spacing is not None or significant > ALL_DIGITS:
                raise ValueError(
                    f"significant must be from 1 to {ALL_DIGITS} and given without step and "
                    f"digits, got {significant} with steps of {self.spacing}"
                )
        low, high = self.ends
        if low > high:
            raise ValueError(
                f"digits must allow a number from {self.low} to {self.high}, but no number with "
                f"{self.digits} digits after the point lies between them"
            )
        if self.log and low < high and self.spacing and not self.spacing < 2 * low:
            raise ValueError(
                f"{'step' if self.digits is None else 'digits'} must give steps below twice low on "
                f"a logarithmic scale, got steps of {self.spacing:g} from {low:g} on"
            )

    @property
    def spacing(self) -> float | None:
        """The distance between neighbouring values; None if all numbers are allowed."""
        return self.step if self.digits is None else float(f"1e-{self.digits}")

    @property
    def asked_digits(self) -> int | None:
        """The number of significant digits of the values that are asked; None for all."""
        if self.significant is None:
            return _ASKED_DIGITS if self.log and self.spacing is None else None
        return None if self.significant == ALL_DIGITS else self.significant

    def settable(self, number: float) -> tuple[float, float]:
        """The numbers with so many digits as are asked around a number.

        Args:
            number: A number of the column.

        Returns:
            The nearer one, then the one on the other side, which may be the same; one of them may
            lie outside of the range.
        """
        digits, text = self.asked_digits or ALL_DIGITS, repr(number)
        below, above = (
            float(Context(prec=digits, rounding=side).create_decimal(text))
            for side in (ROUND_FLOOR, ROUND_CEILING)
        )
        return (below, above) if number - below <= above - number else (above, below)

    @cached_property
    def steps(self) -> Steps | None:
        """The values as `Steps`; None if all numbers are allowed."""
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
        """What a value must be, in words that follow the name of the parameter."""
        steps = "" if self.spacing is None else f" in steps of {self.spacing:g}"
        return f"must be a number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
        """The number of a value in a point.

        Args:
            value: A number; with steps it may differ from a step by rounding.

        Returns:
            The number; with steps the exact step.

        Raises:
            ValueError: If the value is outside the range or not a step; the message is meant to
                follow the name of the parameter.
        """
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
        """The value that a number in a point stands for.

        Args:
            number: A number of the column; it may have been rounded to fewer digits.

        Returns:
            A value of the range.
        """
        low, high = self.ends
        if self.steps is not None:
            number = self.steps.value(round(self.steps.place(number))) + 0.0
        return min(max(float(number), low), high)

    def __repr__(self) -> str:
        return _as_called(self)


@dataclass(frozen=True, repr=False)
class Integer:
    """A parameter whose values are the whole numbers of a range.

    Example:
        >>> import botorch_ext as bx
        >>> bx.Integer(16, 512, log=True)
        Integer(16, 512, log=True)
        >>> bx.Integer(0, 10, step=5).rule
        'must be a whole number from 0 to 10 in steps of 5'

    Args:
        low: The least value.
        high: The largest value; with steps, the largest value is the last step at or below it.
        log: Whether the scale is logarithmic; ``low`` must then be above 0.
        step: The distance between neighbouring values, counted from ``low``.
        unit: The unit of the values, for people, as in ``"layers"``.

    Raises:
        ValueError: As for `Real`; or if an end or the step is no whole number or beyond 2^53.
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
        """Whether the column takes all whole numbers of the range."""
        return self.step == 1

    @property
    def spacing(self) -> float | None:
        """The distance between neighbouring values; None if it is 1."""
        return None if self.step == 1 else float(self.step)

    @property
    def steps(self) -> Steps:
        """The values as `Steps`."""
        return Steps.between(float(self.low), float(self.high), float(self.step))

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest value."""
        return float(self.low), float(self.high - (self.high - self.low) % self.step)

    @property
    def rule(self) -> str:
        """What a value must be, in words that follow the name of the parameter."""
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"must be a whole number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
        """The number of a value in a point.

        Args:
            value: A whole number of the range.

        Returns:
            The number.

        Raises:
            ValueError: If the value is outside the range or not a step; the message is meant to
                follow the name of the parameter.
        """
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.low <= number <= self.high and (number - self.low) % self.step == 0:
            return number
        raise ValueError(f"{self.rule}, got {value!r}")

    def decoded(self, number: float) -> int:
        """The value that a number in a point stands for.

        Args:
            number: A number of the column.

        Returns:
            The nearest whole number.
        """
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
        raise ValueError(f"unit must be a string, got {given.unit!r}")


def _as_called(given: Real | Integer) -> str:
    """The call that makes a range, without the arguments that have their default."""
    options = [each for each in fields(given)[2:] if getattr(given, each.name) != each.default]
    written = "".join(f", {each.name}={getattr(given, each.name)!r}" for each in options)
    return f"{type(given).__name__}({given.low}, {given.high}{written})"


def _number_or_nan(value: Any) -> float:
    try:
        return one_number(value, "value")
    except ValueError:
        return math.nan
