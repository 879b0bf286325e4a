"""Improvement: the logarithm of expected improvement, of one normal variable and over models."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_ext.models.cholesky import GrowingCholesky
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


class AverageMean:
    """The posterior mean averaged over m models, with its gradient in closed form.

    Args:
        model: A `KernelGP` with one batch dimension of m models, of features.
        inputs: From points to features, `botorch_ext.hyperparameters.inputs.Inputs`.
        context: ``d_z``, or None.
    """

    def __init__(self, model: Any, inputs: Any, context: Tensor | None = None) -> None:
        self._model, self._inputs, self._context = model, inputs, context

    def value(self, X: Tensor) -> Tensor:
        """``n x d`` to ``n``."""
        return self._model.mean_at(self._inputs.at(X, self._context)).mean(dim=0)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``n x d`` to ``n`` values and ``n x d`` gradients."""
        F = self._inputs.at(X, self._context)
        mean, _, gradient, _ = self._model.mean_std_and_gradients(F)
        return mean.mean(dim=0), self._inputs.pullback(X, gradient.mean(dim=0))


class IntegratedImprovement:
    """log of noisy expected improvement, averaged over m models, with gradients in closed form.

    The largest value so far is not known where observations are noisy. So values at all rows are
    drawn from the posterior of each model, several times; of each draw this is the expected
    improvement on the largest of its values, given those values. Rows without observations are
    drawn along, and nothing is to be gained at a row.

    Source: Letham et al. 2019 (noisy expected improvement), Snoek et al. 2012 (its average over
    hyperparameters), Wilson et al. 2020 (how draws are made: Matheron's rule).

    Args:
        model: A `KernelGP` with one batch dimension of m models, of features, with zero mean; its
            rows have observations.
        pending: ``k x p`` features of rows without observations.
        places: ``n x p`` features of what is to be improved on; of those that are no rows each
            draw's mean counts, and of no places 0.
        normals: ``m x 2 x r x s`` standard normal numbers, r the number of rows, that s draws of
            each model are made of.
        inputs: From ``n x d`` points to features, `botorch_ext.hyperparameters.inputs.Inputs`.
        context: ``d_z``, or None.
    """

    # Logarithms fall without end near rows. A search takes the spread of what it sees for its unit.
    span = 20.0

    def __init__(
        self,
        model: KernelGP,
        pending: Tensor,
        places: Tensor,
        normals: Tensor,
        inputs: Any,
        context: Tensor | None = None,
    ) -> None:
        self._inputs, self._context = inputs, context
        self._kernel, n = model.kernel_function, model.num_observations
        self._rows = torch.cat([model.train_inputs[0], pending]) if n else pending
        self._is_recordable = model.is_recordable
        own, noise = normals[:, 0], normals[:, 1, :n]
        nugget = own.new_full(own.shape[:1], max(_NUGGET, 100 * torch.finfo(own.dtype).eps))
        self._factor = GrowingCholesky(nugget)
        self._weights = own
        if len(self._rows):
            K = self._kernel(self._rows, self._rows)
            self._factor.append(K[:, :0], K, K.new_zeros(()))
            self._weights = self._factor.solve_transposed(own)
        if n:
            drawn = self._factor.L[:, :n] @ own
            drawn += (model.noise_variance - nugget).sqrt()[:, None, None] * noise
            residuals = model.factor.y[:, :n].unsqueeze(-1) - drawn
            self._weights[:, :n] += model.factor.solve_transposed(model.factor.solve(residuals))
        self._incumbents = own.new_zeros(len(own), own.shape[-1], 1)
        if len(places):
            self._incumbents = self.means_of_draws(places).amax(dim=-1, keepdim=True)

    @property
    def entries(self) -> int:
        """Of the largest temporary tensor for each point."""
        return len(self._weights) * max(self._weights.shape[1:])

    @property
    def is_recordable(self) -> bool:
        """Whether it can be a part of a CUDA graph."""
        return self._is_recordable and self._inputs.is_recordable

    def means_of_draws(self, F: Tensor) -> Tensor:
        """Means given the values of each draw at the rows: ``n x p`` features to ``m x s x n``."""
        return self._weights.mT @ self._kernel(self._rows, F)

    def value(self, X: Tensor) -> Tensor:
        """``n x d`` to ``n``."""
        F = self._inputs.at(X, self._context)
        k = self._kernel(self._rows, F)
        mean, std, _ = self._moments(F, k)
        of_draws = std.log() + log_improvement((mean - self._incumbents) / std)[0]
        return of_draws.flatten(0, 1).logsumexp(dim=0) - math.log(self._incumbents.numel())

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
        by_kernel -= self._factor.solve_transposed(V) * by_variance
        value = of_draws.logsumexp(dim=0) - math.log(self._incumbents.numel())
        return value, self._inputs.pullback(X, pullback(by_kernel).sum(dim=0))

    def _moments(self, F: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Means of all draws, ``m x s x n``, standard deviations, ``m x 1 x n``, and the cross
        factor, from the kernel between the rows and ``n x p`` features."""
        V = self._factor.solve(k)
        variance = self._kernel.diagonal(F) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(F.dtype).eps ** 2).sqrt().unsqueeze(-2)
        return self._weights.mT @ k, std, V
