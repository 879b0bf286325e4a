"""Particles: hyperparameter samples of the posterior, updated as data come."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
from botorch_ext.domains.ranks import highest_first
from botorch_ext.hyperparameters.density import Density, RowNoise
from botorch_ext.hyperparameters.moves import swept
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.state import Immutable

# The number of draws from the prior from which the first particles are resampled.
_NUM_DRAWS = 256
# The number of observations in the first stage of a start, and the number of halves that move then.
_FIRST_STAGE, _FIRST_HALVES = 16, 24
# Before the last stage there are at most this many particles, or twice the final number.
_FEW = 16
# The number of halves that move in an update, as pairs (least number of observations, halves).
_HALVES = ((0, 4), (201, 2))
# Particles of n observations are kept for the next (n - _BEYOND) // _STAY ones, since their density
# hardly changes.
_STAY, _BEYOND = 25, 75
# The largest number of observations in the density; of more, half are the nearest to the best one.
_MOST_ROWS = 256
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
# Beyond each of these numbers of observations the number of particles halves, as the density is
# narrow.
_FEWER_FROM = (200, 400, 800)


@dataclass(frozen=True)
class Particles(Immutable):
    """The settings of sequential Monte Carlo over the hyperparameters of a GP.

    A strategy keeps this many hyperparameter samples (particles) of the posterior, and updates them
    after new results: after each one at first, less often later.

    Args:
        num_particles: The number of particles, an even number of at least 4. It halves beyond 200,
            400 and 800 observations.
        prior: The prior of lengthscales, noise variance and smoothness.

    Raises:
        ValueError: If the number of particles is odd or less than 4.

    Example:
        >>> import botorch_ext as bx
        >>> box, particles = bx.Box([[0.0], [1.0]]), bx.Particles(num_particles=8)
        >>> strategy = bx.algorithms.integrated_ei(box, particles, num_initial=3)
        >>> for _ in range(4):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, trial.x.item())
        >>> len(trial.info["particles"]["values"])
        8
    """

    num_particles: int = 32
    prior: Prior = field(default_factory=Prior)

    def __post_init__(self) -> None:
        if whole_number(self.num_particles, "num_particles", least=4) % 2:
            raise ValueError(f"num_particles must be even, got {self.num_particles}")
        if not isinstance(self.prior, Prior):
            raise ValueError(f"prior must be a Prior, got {self.prior!r}")

    def number(self, num_observations: int) -> int:
        """The number of particles for a number of observations."""
        num = self.num_particles
        for most in _FEWER_FROM:
            if num_observations > most:
                num = max(num // 4 * 2, 4)
        return num

    def are_due(self, num_before: int, num_observations: int) -> bool:
        """Whether particles given ``num_before`` observations are updated for
        ``num_observations``."""
        stay = max((num_before - _BEYOND) // _STAY, 1)
        return not num_before <= num_observations < num_before + stay

    @torch.no_grad()
    def started(
        self,
        X: Tensor,
        y: Tensor,
        groups: Tensor | None,
        seed: int,
        noise: RowNoise | None = None,
    ) -> Cloud:
        """The first particles: draws from the prior, moved through stages with more and more data.

        Args:
            X: The ``n x p`` features in the unit cube.
            y: The ``n`` standardised observations.
            groups: As for `Density`.
            seed: The seed of the draws.
            noise: As for `Density`.
        """
        generator = torch.Generator().manual_seed(seed)
        last, rows = self.number(len(X)), telling(X, y)
        X, y, told = X[rows], y[rows], None if noise is None else noise.of(rows)

        def density_of(chosen: Tensor) -> Density:
            own = None if told is None else told.of(chosen)
            return Density(X[chosen], y[chosen], self.prior, groups, own)

        n, order = len(X), host.randperm(len(X), generator=generator).to(X.device)
        size = min(_FIRST_STAGE, n)
        density = density_of(order[:size])
        draws = density.prior_draws(_NUM_DRAWS, generator)
        values = density.value(draws)
        rows = resampled(values - density.log_prior(draws), self.num_particles, generator)
        parameters, values = swept(density, draws[rows], values[rows], _FIRST_HALVES, generator)
        while size < n:
            size = min(2 * size, n)
            density = density_of(order[:size])
            num = min(self.number(size), max(2 * last, _FEW)) if size < n else last
            cloud = Cloud(parameters, values)
            parameters, values = cloud.onto(density, num, 2 * _halves(size), generator)
        return Cloud(parameters, values)

    @torch.no_grad()
    def moved(
        self,
        cloud: Cloud,
        X: Tensor,
        y: Tensor,
        groups: Tensor | None,
        seed: int,
        noise: RowNoise | None = None,
    ) -> Cloud:
        """The particles updated for more data; arguments are those of `started`."""
        generator = torch.Generator().manual_seed(seed)
        rows = telling(X, y)
        own = None if noise is None else noise.of(rows)
        density = Density(X[rows], y[rows], self.prior, groups, own)
        return Cloud(*cloud.onto(density, self.number(len(X)), _halves(len(X)), generator))


@dataclass(frozen=True, eq=False)
class Cloud(Immutable):
    """Particles of equal weight.

    Args:
        parameters: The parameters ``m x p``, see `botorch_ext.hyperparameters.density.split`.
        values: The log posterior density of the particles, ``m``.
        bend: The strength of the transform of the observations, see `Outcomes`.
    """

    parameters: Tensor
    values: Tensor
    bend: float = 0.0

    def onto(
        self, density: Density, num: int, num_halves: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """``num`` particles, resampled and moved for another density, and its log density there."""
        values = density.value(self.parameters)
        rows = resampled(values - self.values, num, generator)
        return swept(density, self.parameters[rows], values[rows], num_halves, generator)


def telling(X: Tensor, y: Tensor, most: int = _MOST_ROWS) -> Tensor:
    """The rows of the most informative observations, at most ``most`` of them: half are the nearest
    to the best one, where a search goes on, and the others are spread over time.

    A few more observations change the choice little.

    Args:
        X: The ``n x p`` features.
        y: The ``n`` observations.
        most: The largest number of rows. The default is that for hyperparameters.
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


def resampled(log_weights: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """Resample by systematic resampling: a sample of weight w comes ``num`` w times, rounded up or
    down.

    Args:
        log_weights: The logarithms of the weights, ``m``, up to a constant.
        num: The number of samples to draw.
        generator: The random generator, on the CPU.

    Returns:
        The positions of the samples, ``num``.
    """
    weights = log_weights.softmax(dim=0)
    # A matrix product, since cumulative sums on CUDA are not deterministic.
    ends = weights.new_ones(len(weights), len(weights)).tril() @ weights
    first = host.rand((), generator=generator, dtype=torch.float64)
    places = torch.arange(num, dtype=ends.dtype, device=ends.device).add(float(first)).div(num)
    return (ends[:-1].unsqueeze(-1) < places).sum(dim=0)
