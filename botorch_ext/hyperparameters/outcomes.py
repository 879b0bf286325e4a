"""Outcomes: observations standardised, the low ones first squeezed or bent."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.hyperparameters.density import Density

# The share of the observations, the best of them, whose distance from the best is the unit; how
# many units below the best an observation is squeezed, and by which factor.
_SHARE, _REACH, _FACTOR = 2 / 3, 4.0, 0.3
# How much outcomes may be bent, and by how much the log likelihood of an outcome that is bent must
# exceed that of one that is not. Fewer observations are not bent.
_BENDS, _ADVANTAGE, _FEWEST = (0.3, 1.0, 3.0, 10.0), 2.0, 6
# Means that are further below the best, in logarithms of bent distances, count as that far.
_FARTHEST = 50.0


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Observations as a GP with zero mean and unit variance sees them.

    Args:
        values: ``n`` standardised observations.
        center: What is 0 there, in units of the observations.
        scale: What is 1 there, at the best observation, likewise.
        bend: How much they were bent; 0 where they were squeezed.
        top: The best observation.
        rate: The bend per unit of the observations.
        unit: u in units of the observations, where low ones were squeezed; else 0.
        log_slopes: The sum of the logarithms of the slopes of what was done to them, by which the
            densities of observations and of values differ.
    """

    values: Tensor
    center: float
    scale: float
    bend: float = 0.0
    top: float = 0.0
    rate: float = 0.0
    unit: float = 0.0
    log_slopes: float = 0.0

    @classmethod
    def of(cls, Y: Tensor, device: torch.device, bend: float = 0.0) -> Outcomes:
        """``n`` observations standardised, the low ones first squeezed or bent.

        The better two thirds say what is far: u is the root mean square of their distances from
        the best one. With a bend a > 0 a value y becomes max - u log(1 + a (max - y) / u) / a:
        differences near the best stay as they are, and far from it ratios count. Without one a
        value below l = max - 4 u becomes l - 0.3 u log(1 + (l - y) / u). How low a failure was
        says little about where the best is.

        Args:
            Y: ``n``, in float64, on the CPU.
            device: Of the standardised ones.
            bend: a.
        """
        if not len(Y):
            return cls(Y.to(device), 0.0, 1.0)
        # Halved until squares are numbers, which is exact, as are differences to the first value
        # of those that are large and nearly equal.
        power = 2.0 ** -max(math.frexp(float(Y.abs().max()))[1], -1000)
        first = float(Y[0]) * power
        y = Y * power - first
        top = float(y.max())
        unit = float((top - y.topk(math.ceil(_SHARE * len(y))).values).square().mean().sqrt())
        slopes = torch.ones_like(y)
        if unit > 0:
            y, slopes = (_bent if bend else _squeezed)(y, top, unit, bend)
        center, scale = float(y.mean()), float(y.std(correction=0))
        if not scale > 0:
            return cls((y - center).to(device), (first + center) / power, 1.0)
        return cls(
            ((y - center) / scale).to(device),
            (first + center) / power,
            scale / power,
            bend,
            (first + top) / power,
            bend * power / unit if unit > 0 else 0.0,
            0.0 if bend else unit / power,
            float(slopes.log().sum()) - len(y) * math.log(scale / power),
        )

    @classmethod
    def likeliest(cls, Y: Tensor, density: Density, parameters: Tensor) -> Outcomes:
        """Those whose bend is likeliest, averaged over ``m x dim`` parameters of a density."""
        device = density.y.device
        plain = cls.of(Y, Y.device)
        if len(Y) < _FEWEST or not plain.log_slopes:
            return cls.of(Y, device)
        found = [plain, *(cls.of(Y, Y.device, bend) for bend in _BENDS)]
        values = torch.stack([outcomes.values for outcomes in found]).to(device)
        likelihoods = density.log_likelihoods(parameters, values).to(Y.device)
        likelihoods += likelihoods.new_tensor([outcomes.log_slopes for outcomes in found])
        likelihoods[0] += _ADVANTAGE
        return cls.of(Y, device, found[int(likelihoods.argmax())].bend)

    def untransformed(self, mean: Tensor) -> Tensor:
        """Means in units of the observations; of bent ones that is the median of what is normal
        here."""
        y = self.center + self.scale * mean
        if not self.rate:
            return y
        far = (self.rate * (self.top - y)).clamp(0.0, _FARTHEST)
        return torch.where(far > 0, self.top - far.expm1() / self.rate, y).nan_to_num()

    def slope(self, mean: Tensor) -> Tensor:
        """How fast `untransformed` rises."""
        far = self.rate * (self.top - self.center - self.scale * mean)
        return (self.scale * far.clamp(0.0, _FARTHEST).exp()).nan_to_num()

    def restored(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Standardised values in units of the observations, low ones unsqueezed or unbent: the
        inverse of what was done to the observations; and its slopes there. Quantiles of what is
        normal here become quantiles of observations."""
        y, slope = self.untransformed(values), self.slope(values)
        if not self.unit:
            return y, slope
        lowest = self.top - _REACH * self.unit
        excess = ((lowest - y) / (_FACTOR * self.unit)).clamp(0.0, _FARTHEST)
        low = excess > 0
        y = torch.where(low, lowest - self.unit * excess.expm1(), y).nan_to_num()
        return y, torch.where(low, slope / _FACTOR * excess.exp(), slope).nan_to_num()


def _squeezed(y: Tensor, top: float, unit: float, _: float) -> tuple[Tensor, Tensor]:
    """Squeezed observations, and the slopes there."""
    lowest = top - _REACH * unit
    excess = (lowest - y).clamp_min(0) / unit
    low = excess > 0
    slopes = torch.where(low, _FACTOR / (1 + excess), 1.0)
    return torch.where(low, lowest - _FACTOR * unit * excess.log1p(), y), slopes


def _bent(y: Tensor, top: float, unit: float, bend: float) -> tuple[Tensor, Tensor]:
    """Bent observations, and the slopes there."""
    far = bend * (top - y) / unit
    return top - unit / bend * far.log1p(), 1 / (1 + far)
