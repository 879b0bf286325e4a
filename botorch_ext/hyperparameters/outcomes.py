"""Outcomes: observations standardised, of which those far too low are squeezed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

# The share of the observations, the best of them, whose distance from the best is the unit; how
# many units below the best an observation is squeezed, and by which factor.
_SHARE, _REACH, _FACTOR = 2 / 3, 4.0, 0.3


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
        """``n`` observations standardised, those far too low first squeezed.

        The better two thirds say what is far: with u the root mean square of their distances from
        the best one, a value y below l = max - 4 u becomes l - 0.3 u log(1 + (l - y) / u). How low
        a failure was says little about where the best is. High values stay as they are.

        Args:
            Y: ``n``, in float64, on the CPU.
            device: Of the standardised ones.
        """
        if not len(Y):
            return cls(Y.to(device), 0.0, 1.0)
        # Halved until squares are numbers, which is exact, as are differences to the first value
        # of those that are large and nearly equal.
        power = 2.0 ** -max(math.frexp(float(Y.abs().max()))[1], -1000)
        first = float(Y[0]) * power
        y = _squeezed(Y * power - first)
        center, scale = float(y.mean()), float(y.std(correction=0))
        if not scale > 0:
            return cls((y - center).to(device), (first + center) / power, 1.0)
        return cls(((y - center) / scale).to(device), (first + center) / power, scale / power)

    def untransformed(self, mean: Tensor) -> Tensor:
        """Means in units of the observations."""
        return self.center + self.scale * mean


def _squeezed(y: Tensor) -> Tensor:
    best = y.topk(math.ceil(_SHARE * len(y))).values
    unit = (y.max() - best).square().mean().sqrt()
    if not bool(unit > 0):
        return y
    lowest = y.max() - _REACH * unit
    excess = (lowest - y).clamp_min(0) / unit
    return torch.where(excess > 0, lowest - _FACTOR * unit * excess.log1p(), y)
