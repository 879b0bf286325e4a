"""Steps: equally spaced numbers, each rounded to the nearest floating-point number of its decimal
form."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Beyond this number a float64 cannot tell neighbouring whole numbers apart.
LARGEST = 2**53
# The largest power of ten that is exact in a float64.
_MOST_DIGITS = 22
#: A number at most this far from a step, in steps, is taken for that step.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Steps:
    """The numbers ``(first + k * stride) / scale`` for k = 0, 1, 2, ...

    If decimals allow it, the first three arguments are whole numbers, so that the third step of 0.1
    from 0 is 0.3 and not 0.30000000000000004. Each of the three is one number, or a tensor with one
    for each column.

    Args:
        first: The first number, times ``scale``.
        stride: The distance of neighbouring numbers, times ``scale``; positive.
        scale: The common denominator; positive.
        num: The number of steps beyond the first number.
    """

    first: Any
    stride: Any
    scale: Any = 1.0
    num: int = 0

    @classmethod
    def between(cls, low: float, high: float, step: float) -> Steps:
        """The steps from ``low`` that are at most ``high``.

        Raises:
            ValueError: If the step is not positive and finite, or too small to be counted.
        """
        if not 0 < step < math.inf:
            raise ValueError(f"step must be positive and finite, got {step}")
        if not (high - low) / step < LARGEST:
            raise ValueError(f"step must be larger for numbers from {low} to {high}, got {step}")
        num = math.floor((high - low) / step + TOLERANCE)
        decimals = [Decimal(repr(float(number))) for number in (low, step)]
        digits = max(0, *(-int(each.as_tuple().exponent) for each in decimals))
        largest = max(abs(low), abs(low + num * step)) * 10.0 ** min(digits, _MOST_DIGITS)
        if digits > _MOST_DIGITS or largest > LARGEST:
            return cls(float(low), float(step), num=num)
        first, stride = (float(each.scaleb(digits)) for each in decimals)
        return cls(first, stride, 10.0**digits, num)

    def place(self, number: Any) -> Any:
        """The distances of numbers from the first one, in steps.

        Args:
            number: A number, or a tensor of numbers.

        Returns:
            The distances, in the shape of ``number``; they need not be whole numbers.
        """
        return (number * self.scale - self.first) / self.stride

    def value(self, place: Any) -> Any:
        """The numbers at distances from the first one.

        Args:
            place: A distance in steps, or a tensor of distances.

        Returns:
            The numbers, in the shape of ``place``.
        """
        return (self.first + place * self.stride) / self.scale
