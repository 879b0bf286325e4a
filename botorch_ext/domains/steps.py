"""Steps: numbers at equal distances, as the nearest floating-point numbers of their decimals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

# Whole numbers beyond are not told apart by a float64.
LARGEST = 2**53
# Powers of ten beyond are not exact in a float64.
_MOST_DIGITS = 22
#: How far from a step, in steps, a number may lie that is taken for it.
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Steps:
    """The numbers ``(first + k * stride) / scale`` for k = 0, 1, 2, ...

    Where decimals allow it all three are whole numbers, so that the third step of 0.1 from 0 is
    0.3 and not 0.30000000000000004.

    Args:
        first: A number, or a tensor of one for each column, as the others.
        stride: Positive.
        scale: Positive.
        num: How many steps there are beyond the first number.
    """

    first: Any
    stride: Any
    scale: Any = 1.0
    num: int = 0

    @classmethod
    def between(cls, low: float, high: float, step: float) -> Steps:
        """Those from ``low`` on that are at most ``high``.

        Raises:
            ValueError: A step that is not positive and finite, or too small to be counted.
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
        """How many steps a number, or each of a tensor, is from the first."""
        return (number * self.scale - self.first) / self.stride

    def value(self, place: Any) -> Any:
        """The number at a place, or those at a tensor of places."""
        return (self.first + place * self.stride) / self.scale
