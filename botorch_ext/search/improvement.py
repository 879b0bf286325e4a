"""Improvement: the logarithm of expected improvement, of one normal variable and over models."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_ext.chunks import points_at_once
from botorch_ext.distances import distances
from botorch_ext.models.kernel_gp import KernelGP

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
# From here down 1 + z R(z), with Mills' ratio R, is a series in 1 / z^2: rounding would leave it
# fewer digits.
_SERIES_FROM = -30.0
# From here up h is of the size of its terms.
_DIRECT_FROM = -1.0
# Added to the variance of values that are drawn, which else would have no Cholesky factor.
_NUGGET = 1e-8
# Of temporary tensors on the CPU, whose caches hold as many.
_MOST_ENTRIES = 2**19
# Features that are no further apart are of one point: rounding, also of distances in many columns.
_ONE_POINT = 1e-6
# How far below the best mean that of another place is where there is none, in standard deviations
# of the observations.
_FAR_BELOW = 1e9
_COEFFICIENTS = (-3.0, 15.0, -105.0, 945.0, -10395.0)


def log_improvement(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log h(z) with h(z) = phi(z) + z Phi(z), the expected improvement max(x, 0) of a normal x of
    mean z and variance 1; to some 1e-12, for z from -1e150 on.

    Args:
        z: Any shape.

    Returns:
        log h(z), its derivative Phi(z) / h(z), and phi(z) / h(z).
    """
    low = z.clamp_max(_DIRECT_FROM)
    mills = torch.special.erfcx(low * -math.sqrt(0.5)) * _SQRT_HALF_PI  # Phi / phi
    # h / phi = 1 + z R.
    inverse_square = low.clamp_max(_SERIES_FROM).square().reciprocal()
    series = torch.full_like(low, _COEFFICIENTS[-1])
    for coefficient in (*_COEFFICIENTS[-2::-1], 1.0):
        series = series * inverse_square + coefficient
    far = low < _SERIES_FROM
    ratio = torch.where(far, inverse_square * series, 1 + low * mills)
    log_density = -0.5 * low.square() - _LOG_SQRT_2PI
    high = z.clamp_min(_DIRECT_FROM)
    density = (-0.5 * high.square() - _LOG_SQRT_2PI).exp()
    probability = torch.special.ndtr(high)
    h = density + high * probability
    is_high = z > _DIRECT_FROM
    value = torch.where(is_high, h.log(), log_density + ratio.log())
    by_mean = torch.where(is_high, probability / h, mills / ratio)
    by_std = torch.where(is_high, density / h, 1 / ratio)
    return value, by_mean, by_std


class IntegratedImprovement:
    """log of noisy expected improvement, averaged over m models, with gradients in closed form.

    The largest value so far is not known where observations are noisy. So values at all rows are
    drawn from the posterior of each model, several times; of each draw this is the expected
    improvement on the largest of its values, given those values. Rows without observations are
    drawn along, and nothing is to be gained at a row.

    Source: Letham et al. 2019 (noisy expected improvement), Snoek et al. 2012 (its average over
    hyperparameters), Wilson et al. 2020 (how draws are made: Matheron's rule).

    Args:
        model: A `KernelGP` with one batch dimension of m models, of features, with zero mean and a
            stationary kernel that has gradients in closed form; its rows have observations.
        pending: ``k x p`` features of rows without observations.
        places: ``n x p`` features of what is to be improved on; of those that are no rows each
            draw's mean counts, and of no places 0. All rows if None.
        normals: ``m x 2 x r x s`` standard normal numbers, r the number of rows, that s draws of
            each model are made of.
        inputs: From ``n x d`` points to features, `botorch_ext.hyperparameters.inputs.Inputs`.
        context: ``d_z``, or None.
    """

    # Logarithms fall without end near rows.
    span = 20.0

    def __init__(
        self,
        model: KernelGP,
        pending: Tensor,
        places: Tensor | None,
        normals: Tensor,
        inputs: Any,
        context: Tensor | None = None,
    ) -> None:
        self._inputs, self._context = inputs, context
        self._kernel, n = model.kernel_function, model.num_observations
        self._rows = torch.cat([model.train_inputs[0], pending]) if n else pending
        own, noise = normals[:, 0], normals[:, 1, :n]
        K = self._kernel(self._rows, self._rows)
        K.diagonal(dim1=-2, dim2=-1).add_(_NUGGET)
        self._L = torch.linalg.cholesky_ex(K)[0]
        self._weights = torch.linalg.solve_triangular(self._L.mT, own, upper=True)
        if n:
            drawn = self._L[:, :n] @ own
            drawn += (model.noise_variance - _NUGGET).clamp_min(0).sqrt()[:, None, None] * noise
            residuals = model.factor.y[:, :n].unsqueeze(-1) - drawn
            self._weights[:, :n] += model.factor.solve_transposed(model.factor.solve(residuals))
        self._incumbents = own.new_zeros(len(own), own.shape[-1], 1)
        if places is None:
            means = K @ self._weights - _NUGGET * self._weights
            self._incumbents = means.mT.amax(dim=-1, keepdim=True)
        elif len(places):
            means = [self.means_of_draws(chunk) for chunk in self._chunks(places)]
            largest = [chunk.amax(dim=-1, keepdim=True) for chunk in means]
            self._incumbents = torch.cat(largest, dim=-1).amax(dim=-1, keepdim=True)

    def means_of_draws(self, F: Tensor) -> Tensor:
        """Means given the values of each draw at the rows: ``n x p`` features to ``m x s x n``."""
        return self._weights.mT @ self._kernel(self._rows, F)

    def value(self, X: Tensor) -> Tensor:
        """``n x d`` to ``n``."""
        return torch.cat([self._value(chunk) for chunk in self._chunks(X)])

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``n x d`` to ``n`` values and ``n x d`` gradients."""
        F = self._inputs.at(X, self._context)
        k, pullback = self._kernel.value_and_pullback(self._rows, F)
        mean, std, V = self._moments(F, k)
        value, by_mean, by_std = log_improvement((mean - self._incumbents) / std)
        of_draws = (std.log() + value).flatten(0, 1)
        share = of_draws.softmax(dim=0).view_as(value) / std
        by_variance = (share * by_std).sum(dim=1, keepdim=True) / std
        by_kernel = self._weights @ (share * by_mean)
        by_kernel -= torch.linalg.solve_triangular(self._L.mT, V, upper=True) * by_variance
        value = of_draws.logsumexp(dim=0) - math.log(self._incumbents.numel())
        return value, self._inputs.pullback(X, pullback(by_kernel).sum(dim=0))

    def _value(self, X: Tensor) -> Tensor:
        F = self._inputs.at(X, self._context)
        mean, std, _ = self._moments(F, self._kernel(self._rows, F))
        of_draws = std.log() + log_improvement((mean - self._incumbents) / std)[0]
        return of_draws.flatten(0, 1).logsumexp(dim=0) - math.log(self._incumbents.numel())

    def _moments(self, F: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means of all draws, ``m x s x n``, standard deviations, ``m x 1 x n``, and the cross
        factor, from the kernel between the rows and ``n x p`` features."""
        V = torch.linalg.solve_triangular(self._L, k, upper=False)
        variance = self._kernel.diagonal(F) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(F.dtype).eps ** 2).sqrt().unsqueeze(-2)
        return self._weights.mT @ k, std, V

    def _chunks(self, X: Tensor) -> tuple[Tensor, ...]:
        entries = max(len(self._weights) * max(self._weights.shape[1:]), 1)
        return X.split(points_at_once(X, _MOST_ENTRIES // entries, entries))


class ImprovementOnSet:
    """Improvement where the same points can be asked again: the larger of another one and of what
    one more observation of the point teaches.

    That is log of the mean over models of E max(u, b) - max(m, b): m is the mean at the point, u
    what it will be, and b the largest mean of the other places, of all of them where the point is
    none.

    Source: Frazier et al. 2008 (knowledge gradient, of independent beliefs).

    Args:
        other: Where there is nothing to be gained at rows.
        model: A batch of models of features, with pending rows.
        places: ``n x p`` features of the points to choose from when all is done.
        inputs: From ``n x d`` points to features, `botorch_ext.hyperparameters.inputs.Inputs`.
        context: ``d_z``, or None.
    """

    def __init__(
        self,
        other: IntegratedImprovement,
        model: KernelGP,
        places: Tensor,
        inputs: Any,
        context: Tensor | None = None,
    ) -> None:
        self._other, self._model, self._inputs, self._context = other, model, inputs, context
        self._best = self._second = model.noise_variance.new_zeros(len(model.noise_variance), 1)
        self._tops = places  # of each model, where its mean is largest
        if len(places):
            means = model.mean_at(places)
            self._best, top = means.max(dim=-1, keepdim=True)
            self._tops = places[top.squeeze(-1)]
            others = torch.where(self._are_tops(places), self._best - _FAR_BELOW, means)
            self._second = others.amax(dim=-1, keepdim=True)

    def value(self, X: Tensor) -> Tensor:
        """``n x d`` to ``n``."""
        F = self._inputs.at(X, self._context)
        mean, std = self._model.mean_and_std(F)
        scale = std.square() / (std.square() + self._model.noise_variance.unsqueeze(-1)).sqrt()
        elsewhere = self._best
        if len(self._tops):
            elsewhere = torch.where(self._are_tops(F), self._second, self._best)
        z = -(mean - elsewhere).abs() / scale
        learnt = (scale.log() + log_improvement(z)[0]).logsumexp(dim=0) - math.log(len(mean))
        return torch.maximum(self._other.value(X), learnt)

    def _are_tops(self, F: Tensor) -> Tensor:
        """Whether ``n x p`` features are of the best place of each model, ``m x n``."""
        return distances(self._tops, F) < _ONE_POINT
