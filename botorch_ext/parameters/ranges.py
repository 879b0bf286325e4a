"""Parameters of a space that are numbers: `Real` and `Integer`."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, fields
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from typing import Any

from botorch_ext.checks import one_number, whole_number
from botorch_ext.parameters.base import Parameter
from botorch_ext.parameters.steps import LARGEST, TOLERANCE, Steps

# Digits after the point that a float64 near 1 has.
_MOST_DIGITS = 15
# Digits of what is asked on a logarithmic scale without steps.
_ASKED_DIGITS = 3
#: The number of significant digits by which every float64 is told from the others.
ALL_DIGITS = 17


class _Range(Parameter):
    """The numbers between two ends."""

    low: Any
    high: Any
    step: Any
    line = (0.0, 1.0)
    growth = "a lower low or a higher high on the same steps"

    def _check(self) -> None:
        low, high = one_number(self.low, "low"), one_number(self.high, "high")
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"low must be at most high, both finite, got {low} and {high}")
        if not math.isfinite(high - low):
            raise ValueError(f"high must be a finite distance from low, got {low} and {high}")
        if self.log and not low > 0:
            raise ValueError(f"low must be above 0 on a logarithmic scale, got {low}")
        if self.step is not None and not 0 < self.step < math.inf:
            raise ValueError(f"step must be positive and finite, got {self.step}")
        if not isinstance(self.unit, str | None):
            raise ValueError(f"unit must be a string, got {self.unit!r}")

    def may_become(self: Any, wider: Any) -> bool:
        same = [each.name for each in fields(self)[2:]]
        if type(wider) is not type(self) or any(
            getattr(self, name) != getattr(wider, name) for name in same
        ):
            return False
        steps = wider.steps
        if steps is not None and wider.low != self.low:
            place = steps.place(self.ends[0])
            # Steps whose decimals are too long are rounded otherwise from another low.
            if abs(place - round(place)) > TOLERANCE or not steps.stride.is_integer():
                return False
        return wider.low <= self.low and self.high <= wider.high

    def __repr__(self: Any) -> str:
        """The call that makes the range, without the arguments that have their default."""
        options = [each for each in fields(self)[2:] if getattr(self, each.name) != each.default]
        written = "".join(f", {each.name}={getattr(self, each.name)!r}" for each in options)
        return f"{type(self).__name__}({self.low}, {self.high}{written})"


@dataclass(frozen=True, repr=False)
class Real(_Range):
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

    def __post_init__(self) -> None:
        self._check()
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
        return self.step if self.digits is None else float(f"1e-{self.digits}")

    @property
    def asked_digits(self) -> int | None:
        """The number of significant digits of the values that are asked; None for all."""
        if self.significant is None:
            return _ASKED_DIGITS if self.log and self.spacing is None else None
        return None if self.significant == ALL_DIGITS else self.significant

    def settable(self, number: float) -> tuple[float, float]:
        """The numbers with so many digits as are asked around a number.

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
        if self.steps is None:
            return float(self.low), float(self.high)
        least, largest = self.steps.value(0), self.steps.value(self.steps.num)
        return least, min(largest, float(self.high)) if self.digits is None else largest

    @property
    def rule(self) -> str:
        steps = "" if self.spacing is None else f" in steps of {self.spacing:g}"
        return f"must be a number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
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
        low, high = self.ends
        if self.steps is not None:
            number = self.steps.value(round(self.steps.place(number))) + 0.0
        return min(max(float(number), low), high)


@dataclass(frozen=True, repr=False)
class Integer(_Range):
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

    def __post_init__(self) -> None:
        for name, value in (("low", self.low), ("high", self.high), ("step", self.step)):
            if type(value) is not int or abs(value) > LARGEST:
                raise ValueError(f"{name} must be a whole number up to 2^53, got {value!r}")
        self._check()
        if self.log and self.step > 1 and not self.step < 2 * self.low:
            raise ValueError(
                "step must be below twice low on a logarithmic scale, got steps of "
                f"{self.step} from {self.low} on"
            )

    @property
    def is_whole(self) -> bool:
        return self.step == 1

    @property
    def spacing(self) -> float | None:
        return None if self.step == 1 else float(self.step)

    @property
    def steps(self) -> Steps:
        """The values as `Steps`."""
        return Steps.between(float(self.low), float(self.high), float(self.step))

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.low), float(self.high - (self.high - self.low) % self.step)

    @property
    def rule(self) -> str:
        steps = "" if self.step == 1 else f" in steps of {self.step}"
        return f"must be a whole number from {self.low} to {self.high}{steps}"

    def encoded(self, value: Any) -> float:
        number = math.nan if isinstance(value, bool) else _number_or_nan(value)
        if self.low <= number <= self.high and (number - self.low) % self.step == 0:
            return number
        raise ValueError(f"{self.rule}, got {value!r}")

    def decoded(self, number: float) -> int:
        return round(number)


def _number_or_nan(value: Any) -> float:
    try:
        return one_number(value, "value")
    except ValueError:
        return math.nan
