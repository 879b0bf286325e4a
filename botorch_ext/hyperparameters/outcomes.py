"""Observations with the low ones compressed, then standardised."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from botorch_ext.hyperparameters.density import Density, RowNoise

# The share of the best observations whose distance from the best one is the unit; the number of
# units below the best one from which observations are squeezed; and the factor.
_SHARE, _REACH, _FACTOR = 2 / 3, 4.0, 0.3
# The strengths of a bend that are tried; by how much the log likelihood must grow for a bend to be
# used; and the least number of observations.
_BENDS, _ADVANTAGE, _FEWEST = (0.3, 1.0, 3.0, 10.0), 2.0, 6
# The largest distance below the best, as a logarithm of bent distances, which avoids overflow.
_FARTHEST = 50.0


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Observations transformed for a GP with zero mean and unit variance: low ones are compressed
    (squeezed, or bent), then all are standardised.

    Args:
        values: The ``n`` transformed observations.
        center: The observation that becomes 0.
        scale: The change of an observation, near the best one, that becomes a change of 1.
        bend: The strength a of the bend; 0 if low observations are squeezed.
        top: The best observation.
        rate: The bend per unit of the observations.
        unit: u in units of the observations, if low ones are squeezed; else 0.
        log_slopes: The sum of the logarithms of the slopes of the transform at the observations, by
            which the log densities of observations and of values differ.
        noise: The noise of the values; None if all have that of one observation.
        is_constant: Whether margins, see `of_margins`, are all the same.
    """

    values: Tensor
    center: float
    scale: float
    bend: float = 0.0
    top: float = 0.0
    rate: float = 0.0
    unit: float = 0.0
    log_slopes: float = 0.0
    noise: RowNoise | None = None
    is_constant: bool = False

    @classmethod
    def of(
        cls, Y: Tensor, device: torch.device, bend: float = 0.0, noise: RowNoise | None = None
    ) -> Outcomes:
        """The outcomes of ``n`` observations: low ones squeezed or bent, then standardised.

        The unit u is the root mean square of the distances of the better two thirds from the best
        one. With a bend a > 0 a value y becomes max - u log(1 + a (max - y) / u) / a: differences
        near the best stay as they are, and far from it ratios count. Without a bend a value below
        l = max - 4 u becomes l - 0.3 u log(1 + (l - y) / u), since the size of a failure says
        little about where the best point is.

        Args:
            Y: The ``n`` observations, in float64, on the CPU.
            device: The device of the transformed observations.
            bend: The strength a of the bend; 0 squeezes low observations.
            noise: The noise of the observations, likewise on the CPU. Its variances
                are multiplied by the squared slopes of the transform at the observations.
        """
        if not len(Y):
            return cls(Y.to(device), 0.0, 1.0)

        def of_values(slopes: Tensor | float) -> RowNoise | None:
            return None if noise is None else noise.scaled(slopes, device)

        # Scaled by a power of 2, which is exact, so that squares are finite; differences to the
        # first value are exact for large and nearly equal values.
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
            values = (y - center).to(device)
            return cls(values, (first + center) / power, 1.0, noise=of_values(1.0))
        return cls(
            ((y - center) / scale).to(device),
            (first + center) / power,
            scale / power,
            bend,
            (first + top) / power,
            bend * power / unit if unit > 0 else 0.0,
            0.0 if bend else unit / power,
            float(slopes.log().sum()) - len(y) * math.log(scale / power),
            of_values(slopes * (power / scale)),
        )

    @classmethod
    def of_margins(cls, margins: Tensor, device: torch.device) -> Outcomes:
        """The outcomes of ``n`` margins, by which a quantity is within its limit: large ones of
        either sign compressed, then standardised. ``-center / scale`` is the value of the margin 0.

        A margin z becomes sign(z) log(1 + |z| / u), where u is the median of their sizes.

        Args:
            margins: The margins, in float64, on the CPU.
            device: The device of the transformed margins.

        Source: Eriksson and Poloczek 2021 (the transform of constraints).
        """
        largest = torch.finfo(margins.dtype).max  # of margins that overflow, and of their ratios
        sizes = margins.abs().clamp_max(largest)
        unit = float(sizes.median()) if len(margins) else 0.0
        z = margins.sign() * (sizes / (unit or 1.0)).clamp_max(largest).log1p()
        center, scale = (float(z.mean()), float(z.std(correction=0))) if len(z) else (0.0, 1.0)
        is_constant, scale = not scale > 0, scale if scale > 0 else 1.0
        values = ((z - center) / scale).to(device)
        return cls(values, center, scale, is_constant=is_constant)

    @classmethod
    def likeliest(
        cls, Y: Tensor, density: Density, parameters: Tensor, noise: RowNoise | None = None
    ) -> Outcomes:
        """The outcomes with the likeliest bend, averaged over ``m x dim`` parameters of a density;
        ``noise`` is as for `of`."""
        device = density.y.device
        plain = cls.of(Y, Y.device, noise=noise)
        if len(Y) < _FEWEST or not plain.log_slopes:
            return cls.of(Y, device, noise=noise)
        found = [plain, *(cls.of(Y, Y.device, bend, noise) for bend in _BENDS)]
        if noise is None:
            values = torch.stack([outcomes.values for outcomes in found]).to(device)
            likelihoods = density.log_likelihoods(parameters, values).to(Y.device)
        else:  # each bend has known variances of its own
            own = []
            for outcomes in found:
                there = cls.of(Y, device, outcomes.bend, noise)
                own.append(density.log_likelihoods(parameters, there.values[None], there.noise))
            likelihoods = torch.cat(own).to(Y.device)
        likelihoods += likelihoods.new_tensor([outcomes.log_slopes for outcomes in found])
        likelihoods[0] += _ADVANTAGE
        return cls.of(Y, device, found[int(likelihoods.argmax())].bend, noise)

    def some(self, rows: Tensor) -> Outcomes:
        """The outcomes of some rows, in the same units."""
        noise = None if self.noise is None else self.noise.of(rows)
        return replace(self, values=self.values[rows], noise=noise)

    def relative_noise(self, noise_variance: Tensor) -> Tensor | None:
        """The noise variances of the values in units of those of ``m`` GPs, ``m x n``; None for
        ones."""
        if self.noise is None:
            return None
        return self.noise.variances(noise_variance) / noise_variance.unsqueeze(-1)

    def untransformed(self, mean: Tensor) -> Tensor:
        """Means of the GP in units of the observations, with the bend undone; this gives medians of
        the observations."""
        y = self.center + self.scale * mean
        if not self.rate:
            return y
        far = (self.rate * (self.top - y)).clamp(0.0, _FARTHEST)
        return torch.where(far > 0, self.top - far.expm1() / self.rate, y).nan_to_num()

    def slope(self, mean: Tensor) -> Tensor:
        """The derivative of `untransformed`."""
        far = self.rate * (self.top - self.center - self.scale * mean)
        return (self.scale * far.clamp(0.0, _FARTHEST).exp()).nan_to_num()

    def restored(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The inverse of the transform at standardised values, and its derivatives there. Quantiles
        of a normal distribution of values become quantiles of observations."""
        y, slope = self.untransformed(values), self.slope(values)
        if not self.unit:
            return y, slope
        lowest = self.top - _REACH * self.unit
        excess = ((lowest - y) / (_FACTOR * self.unit)).clamp(0.0, _FARTHEST)
        low = excess > 0
        y = torch.where(low, lowest - self.unit * excess.expm1(), y).nan_to_num()
        return y, torch.where(low, slope / _FACTOR * excess.exp(), slope).nan_to_num()


def _squeezed(y: Tensor, top: float, unit: float, _: float) -> tuple[Tensor, Tensor]:
    """The squeezed observations, and the derivatives of the map there."""
    lowest = top - _REACH * unit
    excess = (lowest - y).clamp_min(0) / unit
    low = excess > 0
    slopes = torch.where(low, _FACTOR / (1 + excess), 1.0)
    return torch.where(low, lowest - _FACTOR * unit * excess.log1p(), y), slopes


def _bent(y: Tensor, top: float, unit: float, bend: float) -> tuple[Tensor, Tensor]:
    """The bent observations, and the derivatives of the map there."""
    far = bend * (top - y) / unit
    return top - unit / bend * far.log1p(), 1 / (1 + far)
