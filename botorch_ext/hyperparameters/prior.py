"""Prior of hyperparameters: independent normals of log lengthscales and log noise, truncated."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from botorch_ext.immutable import Immutable


@dataclass(frozen=True)
class Prior(Immutable):
    """The prior of lengthscales, in sides of the unit cube, and of the noise variance, in units of
    the variance of the observations.

    The lengthscales' is BoTorch's density without the Jacobian of the logarithm, so that its mode
    is this prior's median (Hvarfner et al. 2024).

    Args:
        location: Median of log lengthscales is ``location + log(d) / 2``.
        spread: Standard deviation of log lengthscales.
        noise_location: Median of the log noise variance.
        noise_spread: Standard deviation of the log noise variance.
        lengthscales: The range they are truncated to.
        noise: The range the noise variance is truncated to.
    """

    location: float = math.sqrt(2) - 3
    spread: float = math.sqrt(3)
    noise_location: float = -5.0
    noise_spread: float = 1.0
    lengthscales: tuple[float, float] = (0.025, 1000.0)
    noise: tuple[float, float] = (1e-4, 4.0)

    def moments(self, dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of d log lengthscales and of the log noise variance,
        ``d + 1`` each, before truncation."""
        mean = [self.location + math.log(dim) / 2] * dim + [self.noise_location]
        spread = [self.spread] * dim + [self.noise_spread]
        return like.new_tensor(mean), like.new_tensor(spread)

    def limits(self, dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """The lowest and the highest parameters there are, ``d + 1`` each."""
        lower, upper = (
            [math.log(length)] * dim + [math.log(noise)]
            for length, noise in zip(self.lengthscales, self.noise, strict=True)
        )
        return like.new_tensor(lower), like.new_tensor(upper)
