"""Improvement: the logarithm of expected improvement, of one normal variable and over models."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
# From here down 1 + z R(z), with Mills' ratio R, is a series in 1 / z^2: rounding would leave it
# fewer digits.
_SERIES_FROM = -30.0
# From here up h is of the size of its terms.
_DIRECT_FROM = -1.0
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
    """log of the mean over m models of their expected improvement on incumbents of their own, with
    gradients in closed form.

    Args:
        model: A `KernelGP` with one batch dimension of m models, of features.
        incumbents: ``m``: what each model improves on.
        inputs: From ``n x d`` points to features, `botorch_ext.hyperparameters.inputs.Inputs`.
        context: ``d_z``, or None.
    """

    def __init__(
        self, model: Any, incumbents: Tensor, inputs: Any, context: Tensor | None = None
    ) -> None:
        self._model, self._incumbents = model, incumbents.unsqueeze(-1)
        self._inputs, self._context = inputs, context

    @property
    def entries(self) -> int:
        """Of the largest temporary tensor for each point."""
        return self._model.noise_variance.numel() * self._model.num_observations

    @property
    def is_recordable(self) -> bool:
        """Whether it can be a part of a CUDA graph."""
        return self._model.is_recordable and self._inputs.is_recordable

    def value(self, X: Tensor) -> Tensor:
        """``n x d`` to ``n``."""
        mean, std = self._model.mean_and_std(self._inputs.at(X, self._context))
        z = (mean - self._incumbents) / std
        return (std.log() + log_improvement(z)[0]).logsumexp(dim=0) - math.log(len(mean))

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``n x d`` to ``n`` values and ``n x d`` gradients."""
        F = self._inputs.at(X, self._context)
        mean, std, mean_gradient, std_gradient = self._model.mean_std_and_gradients(F)
        value, by_mean, by_std = log_improvement((mean - self._incumbents) / std)
        of_models = std.log() + value
        share = of_models.softmax(dim=0) / std
        gradient = (share * by_mean).unsqueeze(-1) * mean_gradient
        gradient = gradient.addcmul((share * by_std).unsqueeze(-1), std_gradient).sum(dim=0)
        value = of_models.logsumexp(dim=0) - math.log(len(mean))
        return value, self._inputs.pullback(X, gradient)
