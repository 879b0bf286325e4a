"""Rewards in units in which a kernel is at most 1."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_ext.checks import one_number


@dataclass(frozen=True)
class Scaling:
    """Subtracts a centre and divides by a scale.

    Args:
        center: What becomes 0, in units of the rewards.
        scale: What becomes a difference of 1, in units of the rewards.

    Raises:
        ValueError: A scale that is not positive, or a number that is not finite.
    """

    center: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not math.isfinite(one_number(self.center, "center")):
            raise ValueError(f"center must be finite, got {self.center}")
        if not 0 < one_number(self.scale, "scale") < math.inf:
            raise ValueError(f"scale must be positive and finite, got {self.scale}")

    def __call__(self, values: Tensor) -> Tensor:
        """The values in the new units."""
        return (values - self.center) / self.scale
