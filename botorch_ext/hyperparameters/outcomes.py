"""Outcomes: observations standardised, of which those far too low are squeezed."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

# Below q2 - _REACH (q3 - q1) of the quartiles an observation is squeezed, by this factor.
_REACH, _FACTOR = 2.0, 0.3


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Observations as a GP with zero mean and unit variance sees them.

    Args:
        values: ``n`` standardised observations.
        center: What is 0 there, in units of the observations.
        scale: What is 1 there, likewise.
    """

    values: Tensor
    center: float
    scale: float

    @classmethod
    def of(cls, Y: Tensor, device: torch.device) -> Outcomes:
        """``n`` observations standardised.

        With quartiles q1, q2, q3 a value y below l = q2 - 2 (q3 - q1) is first replaced by
        l - 0.3 log(1 + l - y), in standard deviations: how low a failure was says little about
        where the best is. High values stay as they are.

        Args:
            Y: ``n``, in float64, on the CPU.
            device: Of the standardised ones.
        """
        if not len(Y):
            return cls(Y.to(device), 0.0, 1.0)
        # Differences to the first value: those of large and nearly equal values are exact.
        first = float(Y[0])
        y = Y - first
        center, scale = _moments(y)
        y = (y - center) / scale
        quartiles = torch.quantile(y, y.new_tensor([0.25, 0.5, 0.75]))
        lowest = quartiles[1] - _REACH * (quartiles[2] - quartiles[0])
        excess = (lowest - y).clamp_min(0)
        y = torch.where(excess > 0, lowest - _FACTOR * excess.log1p(), y)
        again, spread = _moments(y)
        y = (y - again) / spread
        return cls(y.to(device), first + center + scale * again, scale * spread)

    def untransformed(self, mean: Tensor) -> Tensor:
        """Means in units of the observations."""
        return self.center + self.scale * mean


def _moments(y: Tensor) -> tuple[float, float]:
    """Mean and standard deviation; 1 where all values are equal."""
    spread = float(y.std(correction=0))
    # Values as large as 1e308 have differences that are none.
    return float(y.mean()), spread if spread > 0 else 1.0
