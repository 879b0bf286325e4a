"""GPMixture: a weighted mixture of Gaussian processes, in the units of the observations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.chunks import points_at_once
from botorch_ext.models.joint_draws import jittered_factor
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.predictions.quantiles import mixture_quantiles
from botorch_ext.state import Immutable

# Of temporary tensors on the CPU, whose caches hold as many.
_MOST_ENTRIES = 2**20
# Joint draws: of all models together, and of each at least.
_NUM_DRAWS, _FEWEST_DRAWS = 8192, 64


def unchanged(rows: Tensor) -> Tensor:
    """Rows as the models take them, where they take them as they are."""
    return rows


def in_same_units(values: Tensor) -> tuple[Tensor, Tensor]:
    """Values whose models are in the units of the observations, and the slopes, which are 1."""
    return values, torch.ones_like(values)


@dataclass(frozen=True, eq=False)
class GPMixture(Immutable):
    """What a strategy knows of f: f is an increasing transform of a GP, which GP is uncertain.

    Args:
        models: Posteriors of the told data alone, each of one GP or of a batch of them with one
            dimension; m GPs together.
        weights: ``m``, the probabilities of the GPs, which sum to 1.
        constants: ``m``, what to add to the means of the GPs.
        noise_variance: ``m``, of an observation, in squared units of the GPs.
        features: From ``n x (d + d_z)`` joint rows to the inputs of the models.
        restored: From values of a GP, of any shape, to values of f and the slopes there.
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
        """The mixture of models with their own noise.

        Args:
            models: As the argument of the class.
            weights: ``m``; equal ones if None.
            constants: ``m``; zeros if None.
            options: ``features`` and ``restored``.
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
        """Mean and standard deviation of f at ``n x (d + d_z)`` rows, ``n`` each: those of the
        mixture. Where f is a bent transform of the GPs, the mean is that of the GPs transformed,
        and the standard deviation is of first order around it."""
        means, stds = self.moments(rows)
        weights = self.weights[:, None]
        mean = (weights * means).sum(dim=0)
        variance = (weights * (stds.square() + (means - mean).square())).sum(dim=0)
        value, slope = self.restored(mean)
        return value, variance.sqrt() * slope

    def mean(self, rows: Tensor) -> Tensor:
        """The mean of `mean_and_std` alone, O(k) for each row and GP with k observations: ``n``."""
        with torch.no_grad():
            own = [model.plain_means(inputs) for model, inputs in self._inputs(rows)]
        means = self._stacked(own, 1) + self.constants[:, None]
        return self.restored((self.weights[:, None] * means).sum(dim=0))[0]

    def quantiles(self, rows: Tensor, levels: Sequence[float], noisy: bool = False) -> Tensor:
        """Exact quantiles of f, or of an observation, at ``n x (d + d_z)`` rows.

        Args:
            rows: Where.
            levels: k probabilities between 0 and 1.
            noisy: Whether the noise of an observation is added.

        Returns:
            ``n x k``.
        """
        means, stds = self.moments(rows)
        if noisy:
            stds = (stds.square() + self.noise_variance[:, None]).sqrt()
        return self.restored(mixture_quantiles(self.weights, means, stds, levels))[0].mT

    # --- joint draws ------------------------------------------------------------------------------

    @torch.no_grad()
    def joint(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Means, ``m x q``, and covariances, ``m x q x q``, of all GPs at ``q x (d + d_z)``
        rows."""
        means, covariances = [], []
        for model, inputs in self._inputs(rows):
            mean, _, V = model.moments(inputs)
            means.append(mean)
            covariances.append(model.kernel_function(inputs, inputs) - V.mT @ V)
        return self._stacked(means, 1) + self.constants[:, None], self._stacked(covariances, 2)

    @torch.no_grad()
    def draws(self, rows: Tensor, seed: int, num: int = _NUM_DRAWS) -> Tensor:
        """Joint draws of f at ``q x (d + d_z)`` rows, as many from each GP, some ``num`` in all.

        Half of them are the mirror images of the others. A rounding error of 3e-5 prior standard
        deviations is added to each value.

        Returns:
            ``m x s x q``; a statistic of them is averaged by `average`.
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
        normals = torch.randn(m, half, q, generator=generator, dtype=torch.float64).to(means)
        deviations = normals @ L.mT
        values = means[:, None] + torch.cat([deviations, -deviations], dim=1)
        return self.restored(values)[0]

    def average(self, statistic: Tensor) -> float:
        """The expectation of a statistic of `draws`, ``m x s``."""
        return float((self.weights * statistic.mean(dim=-1)).sum())

    # --- parts ------------------------------------------------------------------------------------

    def _inputs(self, rows: Tensor) -> Iterator[tuple[GrowingPosterior, Tensor]]:
        """The models, and rows as each takes them."""
        features = self.features(rows)
        for model in self.models:
            is_plain = not isinstance(model, KernelGP)
            yield model, features if is_plain else model.transform_inputs(features)

    def _stacked(self, values: list[Tensor], num_dims: int) -> Tensor:
        """What the models say, ``*batch x ...`` with so many dimensions behind, as ``m x ...``."""
        return torch.cat([own.reshape(-1, *own.shape[own.ndim - num_dims :]) for own in values])

    def _chunks(self, rows: Tensor) -> tuple[Tensor, ...]:
        entries = len(self.weights) * max(self.models[0].num_observations, 1)
        return rows.split(points_at_once(rows, _MOST_ENTRIES // entries, entries))
