"""The prior of hyperparameters: truncated independent normals of their logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.state import Immutable


@dataclass(frozen=True)
class Prior(Immutable):
    """The prior of lengthscales, noise variance and smoothness of a GP.

    Lengthscales are in sides of the unit cube, and the noise variance in variances of the
    observations. The smoothness is the share of an RBF kernel in the kernel, whose rest is a Matern
    5/2 kernel.

    The prior of the noise variance is wide, since early in a study the data hardly distinguish a
    lucky observation from a narrow peak. The prior of lengthscales is BoTorch's density without the
    Jacobian of the logarithm, so that the mode of BoTorch's is the median of this one (Hvarfner et
    al. 2024).

    Args:
        location: The median of log lengthscales is ``location + log(d) / 2`` in d dimensions.
        spread: The standard deviation of log lengthscales.
        noise_location: The median of the log noise variance.
        noise_spread: The standard deviation of the log noise variance.
        smoothness_location: The median of the log odds of smoothness.
        smoothness_spread: The standard deviation of the log odds of smoothness.
        lengthscales: The range to which lengthscales are truncated.
        noise: The range to which the noise variance is truncated.
        smoothness: The range to which smoothness is truncated, inside (0, 1).

    A range whose ends are equal fixes its hyperparameter.

    Raises:
        ValueError: If a spread is not positive, or if a range is impossible.

    Example:
        >>> from botorch_ext import Particles
        >>> from botorch_ext.hyperparameters.prior import Prior
        >>> Particles(prior=Prior(noise_location=-6.0, noise_spread=0.5)).prior.noise_location
        -6.0
    """

    location: float = math.sqrt(2) - 3
    spread: float = math.sqrt(3)
    noise_location: float = -4.0
    noise_spread: float = 2.0
    smoothness_location: float = -2.0
    smoothness_spread: float = 3.0
    lengthscales: tuple[float, float] = (0.025, 1000.0)
    noise: tuple[float, float] = (1e-4, 4.0)
    smoothness: tuple[float, float] = (1e-4, 1 - 1e-4)

    def __post_init__(self) -> None:
        for name in ("location", "noise_location", "smoothness_location"):
            one_number(getattr(self, name), name)
        for name in ("spread", "noise_spread", "smoothness_spread"):
            if not one_number(getattr(self, name), name) > 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        for name, most in (("lengthscales", math.inf), ("noise", math.inf), ("smoothness", 1.0)):
            ends = getattr(self, name)
            if not (isinstance(ends, tuple) and len(ends) == 2 and 0 < ends[0] <= ends[1] < most):
                raise ValueError(
                    f"{name} must be a pair, the lower end above 0 and at most the upper one, "
                    f"that below {most:g}, got {ends!r}"
                )

    def moments(self, dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """The means and standard deviations of d log lengthscales, the log noise variance and the
        log odds of smoothness, ``d + 2`` each, before truncation."""
        mean = _row(
            dim,
            self.location + math.log(dim) / 2,
            self.noise_location,
            self.smoothness_location,
            like,
        )
        spread = _row(dim, self.spread, self.noise_spread, self.smoothness_spread, like)
        return mean, spread

    def limits(self, dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and the upper limits of the same parameters, ``d + 2`` each."""
        lower, upper = (
            _row(dim, math.log(length), math.log(noise), math.log(share / (1 - share)), like)
            for length, noise, share in zip(
                self.lengthscales, self.noise, self.smoothness, strict=True
            )
        )
        return lower, upper


def _row(dim: int, of_lengthscale: float, of_noise: float, of_odds: float, like: Tensor) -> Tensor:
    # Filled on the device, which avoids a copy.
    sizes = (dim, of_lengthscale), (1, of_noise), (1, of_odds)
    return torch.cat([like.new_full((size,), value) for size, value in sizes])
