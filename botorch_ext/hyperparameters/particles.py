"""Particles: hyperparameters drawn from their posterior, moved along as data come."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.moves import swept
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.models.resampling import resampled
from botorch_ext.ranks import highest_first
from botorch_ext.state import Immutable

# Draws from the prior of which the first particles are chosen.
_NUM_DRAWS = 256
# Observations of the first stage of a start, and halves that move there.
_FIRST_STAGE, _FIRST_HALVES = 16, 24
# Before the last stage of many observations no more particles than this, or twice the last number.
_FEW = 16
# How many halves move at a time, from so many observations on.
_HALVES = ((0, 4), (201, 2))
# Particles stay while there are no more new observations than this share of those beyond so many:
# their density hardly changes.
_STAY, _BEYOND = 25, 75
# Observations that the density is of: of more than these, half are those nearest to the best one.
_MOST_ROWS = 256
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
# With more observations than each of these the particles halve: their density is narrow.
_FEWER_FROM = (200, 400, 800)


@dataclass(frozen=True)
class Particles(Immutable):
    """Sequential Monte Carlo over the hyperparameters of a GP.

    Args:
        num_particles: An even number.
        prior: Of lengthscales and noise.

    Raises:
        ValueError: A number of particles that is odd or less than 4.
    """

    num_particles: int = 32
    prior: Prior = field(default_factory=Prior)

    def __post_init__(self) -> None:
        if whole_number(self.num_particles, "num_particles", least=4) % 2:
            raise ValueError(f"num_particles must be even, got {self.num_particles}")
        if not isinstance(self.prior, Prior):
            raise ValueError(f"prior must be a Prior, got {self.prior!r}")

    def number(self, num_observations: int) -> int:
        """How many particles there are with so many observations."""
        num = self.num_particles
        for most in _FEWER_FROM:
            if num_observations > most:
                num = max(num // 4 * 2, 4)
        return num

    def are_due(self, num_before: int, num_observations: int) -> bool:
        """Whether particles of ``num_before`` observations move once there are so many."""
        stay = max((num_before - _BEYOND) // _STAY, 1)
        return not num_before <= num_observations < num_before + stay

    @torch.no_grad()
    def started(self, X: Tensor, y: Tensor, groups: Tensor | None, seed: int) -> Cloud:
        """Particles for data at once: from prior draws, through ever more of the data.

        Args:
            X: ``n x p`` features of the unit cube.
            y: ``n`` standardised observations.
            groups: As for `Density`.
            seed: The same seed gives the same particles.
        """
        generator = torch.Generator().manual_seed(seed)
        last, rows = self.number(len(X)), telling(X, y)
        X, y = X[rows], y[rows]
        n, order = len(X), torch.randperm(len(X), generator=generator).to(X.device)
        size = min(_FIRST_STAGE, n)
        density = Density(X[order[:size]], y[order[:size]], self.prior, groups)
        draws = density.prior_draws(_NUM_DRAWS, generator)
        values = density.value(draws)
        rows = resampled(values - density.log_prior(draws), self.num_particles, generator)
        parameters, values = swept(density, draws[rows], values[rows], _FIRST_HALVES, generator)
        while size < n:
            size = min(2 * size, n)
            density = Density(X[order[:size]], y[order[:size]], self.prior, groups)
            num = min(self.number(size), max(2 * last, _FEW)) if size < n else last
            cloud = Cloud(parameters, values)
            parameters, values = cloud.onto(density, num, 2 * _halves(size), generator)
        return Cloud(parameters, values)

    @torch.no_grad()
    def moved(self, cloud: Cloud, X: Tensor, y: Tensor, groups: Tensor | None, seed: int) -> Cloud:
        """Particles after more data; arguments as for `started`."""
        generator = torch.Generator().manual_seed(seed)
        rows = telling(X, y)
        density = Density(X[rows], y[rows], self.prior, groups)
        return Cloud(*cloud.onto(density, self.number(len(X)), _halves(len(X)), generator))


@dataclass(frozen=True, eq=False)
class Cloud(Immutable):
    """Particles of equal weight.

    Args:
        parameters: ``m x p``, as `botorch_ext.hyperparameters.density.split` tells them apart.
        values: ``m``, the log density there that they are of.
        bend: How much the outcomes are bent that they are of.
    """

    parameters: Tensor
    values: Tensor
    bend: float = 0.0

    def onto(
        self, density: Density, num: int, num_halves: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """``num`` particles of another density, and its logarithm there."""
        values = density.value(self.parameters)
        rows = resampled(values - self.values, num, generator)
        return swept(density, self.parameters[rows], values[rows], num_halves, generator)


def telling(X: Tensor, y: Tensor, most: int = _MOST_ROWS) -> Tensor:
    """The rows of the observations that tell the most: all of them, or of many the half that is
    nearest to the best one, where a search goes on, and others at random times.

    Which they are changes little when there are a few more.

    Args:
        X: ``n x p`` features.
        y: ``n`` observations.
        most: How many; the default is what hyperparameters are drawn from.
    """
    n = len(X)
    if n <= most:
        return torch.arange(n, device=X.device)
    order = (X - X[y.argmax()]).square().sum(dim=-1).argsort(stable=True)
    near, others = order.split([most // 2, n - most // 2])
    times = (others * _GOLDEN_RATIO).frac()
    some = others[highest_first(-times, most - len(near))]
    return torch.cat([near, some]).sort().values


def _halves(num_observations: int) -> int:
    return [halves for least, halves in _HALVES if num_observations >= least][-1]
