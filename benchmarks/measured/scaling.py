"""Scaling of rewards to units in which a kernel is at most 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_ext.checks import one_number


@dataclass(frozen=True)
class Scaling:
    """A linear scaling of values: it subtracts a centre and divides by a scale.

    Args:
        center: The value that becomes 0, in units of the rewards.
        scale: The difference that becomes 1, in units of the rewards.

    Raises:
        ValueError: If the scale is not positive, or a number is not finite.
    """

    center: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(one_number(self.center, "center")):
            raise ValueError(f"center must be finite, got {self.center}")
        if not 0 < one_number(self.scale, "scale") < math.inf:
            raise ValueError(f"scale must be positive and finite, got {self.scale}")

    def __call__(self, values: Tensor) -> Tensor:
        """The values in the new units, in the same shape."""
        return (values - self.center) / self.scale
