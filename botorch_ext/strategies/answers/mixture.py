"""GPMixture: a weighted mixture of Gaussian processes, in the units of the observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.domains.chunks import in_chunks
from botorch_ext.models.joint_draws import jittered_factor
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.state import Immutable

# How many joint draws there are of all models together, and at least of each model.
_NUM_DRAWS, _FEWEST_DRAWS = 8192, 64
# Each bisection halves the bracket; 60 bring it below the rounding error of its first width.
_NUM_BISECTIONS = 60


def unchanged(rows: Tensor) -> Tensor:
    """The rows themselves, for models that take joint rows as they are."""
    return rows


def in_same_units(values: Tensor) -> tuple[Tensor, Tensor]:
    """The values themselves and slopes of 1, for models in the units of the observations."""
    return values, torch.ones_like(values)


@dataclass(frozen=True, eq=False)
class GPMixture(Immutable):
    """The model of f of a strategy: f is an increasing transform of one of m GPs, each with a
    probability.

    Args:
        models: Posteriors given the told data. Each has one GP, or a batch of GPs with one batch
            dimension; together they have m GPs.
        weights: ``m`` probabilities of the GPs, which sum to 1.
        constants: ``m`` constants that are added to the means of the GPs.
        noise_variance: ``m`` noise variances of one observation, in squared units of the GPs.
        features: A function from ``n x (d + d_z)`` joint rows to the inputs of the models.
        restored: A function from values of a GP, of any shape, to values of f and the slopes there.
    """

    models: tuple[GrowingPosterior, ...]
    weights: Tensor
    constants: Tensor
    noise_variance: Tensor
    features: Callable[[Tensor], Tensor] = unchanged
    restored: Callable[[Tensor], tuple[Tensor, Tensor]] = in_same_units

    @classmethod
    def of(
        cls,
        models: Sequence[GrowingPosterior],
        weights: Tensor | None = None,
        constants: Tensor | None = None,
        **options: Any,
    ) -> GPMixture:
        """Makes a mixture of models that have their own noise.

        Args:
            models: The posteriors, as for the class.
            weights: ``m`` probabilities; equal ones if None.
            constants: ``m`` constants; zeros if None.
            options: ``features`` and ``restored``, as for the class.

        Returns:
            The mixture.
        """
        noise = torch.cat([model.noise_variance.reshape(-1) for model in models])
        if weights is None:
            weights = torch.full_like(noise, 1 / len(noise))
        if constants is None:
            constants = torch.zeros_like(noise)
        return cls(tuple(models), weights, constants, noise, **options)

    # --- single points ----------------------------------------------------------------------------

    @torch.no_grad()
    def moments(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of all GPs at ``n x (d + d_z)`` rows, ``m x n`` each."""
        parts = []
        for chunk in self._chunks(rows):
            own = [model.moments(inputs)[:2] for model, inputs in self._inputs(chunk)]
            parts.append([self._stacked([pair[i] for pair in own], 1) for i in range(2)])
        means, variances = (torch.cat(part, dim=-1) for part in zip(*parts, strict=True))
        return means + self.constants[:, None], variances.clamp_min(0).sqrt()

    def mean_and_std(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` means and the ``n`` standard deviations of f under the mixture at
        ``n x (d + d_z)`` rows. If f is a nonlinear transform of the GPs, the mean of the GPs is
        transformed, and the standard deviation is of first order around it."""
        means, stds = self.moments(rows)
        weights = self.weights[:, None]
        mean = (weights * means).sum(dim=0)
        variance = (weights * (stds.square() + (means - mean).square())).sum(dim=0)
        value, slope = self.restored(mean)
        return value, variance.sqrt() * slope

    def mean(self, rows: Tensor) -> Tensor:
        """The ``n`` means of `mean_and_std`, at O(k) for each row and GP with k observations."""
        with torch.no_grad():
            own = [model.plain_means(inputs) for model, inputs in self._inputs(rows)]
        means = self._stacked(own, 1) + self.constants[:, None]
        return self.restored((self.weights[:, None] * means).sum(dim=0))[0]

    def quantiles(self, rows: Tensor, levels: Sequence[float], noisy: bool = False) -> Tensor:
        """Exact quantiles of f, or of an observation, at ``n x (d + d_z)`` rows.

        Args:
            rows: The joint rows.
            levels: k probabilities between 0 and 1.
            noisy: Whether the noise of an observation is added.

        Returns:
            ``n x k`` quantiles.
        """
        means, stds = self.moments(rows)
        if noisy:
            stds = (stds.square() + self.noise_variance[:, None]).sqrt()
        return self.restored(mixture_quantiles(self.weights, means, stds, levels))[0].mT

    # --- joint draws ------------------------------------------------------------------------------

    @torch.no_grad()
    def joint(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The ``m x q`` means and ``m x q x q`` covariances of all GPs at ``q x (d + d_z)``
        rows."""
        means, covariances = [], []
        for model, inputs in self._inputs(rows):
            mean, _, V = model.moments(inputs)
            means.append(mean)
            covariances.append(model.kernel_function(inputs, inputs) - V.mT @ V)
        return self._stacked(means, 1) + self.constants[:, None], self._stacked(covariances, 2)

    @torch.no_grad()
    def draws(self, rows: Tensor, seed: int, num: int = _NUM_DRAWS) -> Tensor:
        """Joint draws of f at ``q x (d + d_z)`` rows, equally many from each GP and about ``num``
        in all. Half of the draws mirror the other half at the mean. The jitter adds noise of 3e-5
        prior standard deviations to each value.

        Returns:
            ``m x s x q`` draws. `average` averages a statistic of them.
        """
        means, covariance = self.joint(rows)
        largest = covariance.diagonal(dim1=-2, dim2=-1).max().clamp_min(0)
        prior = [
            model.kernel_function.diagonal(inputs).max() for model, inputs in self._inputs(rows)
        ]
        L = jittered_factor(covariance, torch.stack([largest, *prior]).max())
        m, q = means.shape
        half = max(num // m, _FEWEST_DRAWS) // 2
        generator = torch.Generator().manual_seed(seed)
        normals = host.randn(m, half, q, generator=generator, dtype=torch.float64).to(means)
        deviations = normals @ L.mT
        values = means[:, None] + torch.cat([deviations, -deviations], dim=1)
        return self.restored(values)[0]

    def average(self, statistic: Tensor) -> float:
        """The expectation of a ``m x s`` statistic of `draws`."""
        return float((self.weights * statistic.mean(dim=-1)).sum())

    # --- parts ------------------------------------------------------------------------------------

    def _inputs(self, rows: Tensor) -> Iterator[tuple[GrowingPosterior, Tensor]]:
        """The models, each with the rows as its inputs."""
        features = self.features(rows)
        for model in self.models:
            is_plain = not isinstance(model, KernelGP)
            yield model, features if is_plain else model.transform_inputs(features)

    def _stacked(self, values: list[Tensor], num_dims: int) -> Tensor:
        """Values of the models, ``*batch x ...`` with ``num_dims`` last dimensions, as one
        ``m x ...``-dim tensor."""
        return torch.cat([own.reshape(-1, *own.shape[own.ndim - num_dims :]) for own in values])

    def _chunks(self, rows: Tensor) -> tuple[Tensor, ...]:
        return in_chunks(rows, len(self.weights) * self.models[0].num_observations)


def mixture_quantiles(
    weights: Tensor, means: Tensor, stds: Tensor, levels: Sequence[float]
) -> Tensor:
    """Quantiles of mixtures of m normal distributions, by bisection of the mixture's cumulative
    distribution function between the least and the largest quantile of its parts.

    Args:
        weights: ``m``, which sum to 1.
        means: ``m x n``.
        stds: ``m x n``; a normal distribution with a standard deviation of 0 is a point.
        levels: k probabilities between 0 and 1.

    Returns:
        ``k x n``.
    """
    p = means.new_tensor(list(levels))[:, None]  # k x 1
    of_parts = means + torch.special.ndtri(p).unsqueeze(-1) * stds  # k x m x n
    low, high = of_parts.amin(dim=1), of_parts.amax(dim=1)
    scales = stds.clamp_min(torch.finfo(stds.dtype).tiny)
    for _ in range(_NUM_BISECTIONS if len(weights) > 1 else 0):
        middle = low + (high - low) / 2
        parts = torch.special.ndtr((middle[:, None] - means) / scales)
        below = (weights[:, None] * parts).sum(dim=1) < p
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return low + (high - low) / 2
