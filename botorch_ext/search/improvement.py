"""The logarithm of expected improvement, of one normal variable and averaged over models."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.distances import distances
from botorch_ext.models.kernel_gp import KernelGP

_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
_SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
# Below this z, 1 + z R(z) with Mills' ratio R is computed as a series in 1 / z^2, as rounding would
# lose digits.
_SERIES_FROM = -30.0
# Above this z, h is computed directly, as its terms do not cancel.
_DIRECT_FROM = -1.0
# The variance that is added to drawn values, so that their covariance has a Cholesky factor.
_NUGGET = 1e-8
# Features within this distance belong to one point, which allows for rounding in many columns.
_ONE_POINT = 1e-6
# The distance below the best mean that stands for the mean of another point if there is none, in
# standard deviations of the observations.
_FAR_BELOW = 1e9
# Lower than any log improvement, and far enough above the lowest number to compute with.
_LOWEST = -1e100
# By how much a point that is not likely enough ranks lower. In ascents the threshold is higher by
# the margin, and below it values fall by the slope times the difference of the log probabilities,
# so that ascents end just above the threshold.
_TOO_RISKY, _MARGIN, _SLOPE = 1e4, 0.01, 100.0
_COEFFICIENTS = (-3.0, 15.0, -105.0, 945.0, -10395.0)


def log_improvement(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """log h(z) with h(z) = phi(z) + z Phi(z), the expectation of max(x, 0) for a normal x with mean
    z and variance 1. It is accurate to about 1e-12, for z >= -1e150.

    Args:
        z: A tensor of any shape.

    Returns:
        log h(z), its derivative Phi(z) / h(z), and phi(z) / h(z).
    """
    parts = _Improvement.at(z)
    probability, density, h = parts.of_high
    mills, ratio = parts.of_low
    by_mean = torch.where(parts.is_high, probability / h, mills / ratio)
    by_std = torch.where(parts.is_high, density / h, 1 / ratio)
    return parts.log, by_mean, by_std


@dataclass(frozen=True)
class _Improvement:
    """log h(z), and what its derivatives are made of.

    Args:
        log: log h(z).
        is_high: Where h is computed directly.
        of_high: There Phi(z), phi(z) and h(z).
        of_low: Elsewhere Mills' ratio R = Phi(z) / phi(z), and h(z) / phi(z) = 1 + z R.
    """

    log: Tensor
    is_high: Tensor
    of_high: tuple[Tensor, Tensor, Tensor]
    of_low: tuple[Tensor, Tensor]

    @classmethod
    def at(cls, z: Tensor) -> Self:
        low, high = z.clamp_max(_DIRECT_FROM), z.clamp_min(_DIRECT_FROM)
        mills = torch.special.erfcx(low * -math.sqrt(0.5)) * _SQRT_HALF_PI
        ratio, far = 1 + low * mills, low < _SERIES_FROM
        if far.is_cuda or bool(far.any()):
            ratio = torch.where(far, _series(low), ratio)
        density = (-0.5 * high.square() - _LOG_SQRT_2PI).exp()
        probability = torch.special.ndtr(high)
        h = density + high * probability
        is_high = z > _DIRECT_FROM
        log_density = -0.5 * low.square() - _LOG_SQRT_2PI
        log = torch.where(is_high, h.log(), log_density + ratio.log())
        return cls(log, is_high, (probability, density, h), (mills, ratio))


def _series(z: Tensor) -> Tensor:
    """h(z) / phi(z) at very low z, as a series in 1 / z^2."""
    inverse_square = z.clamp_max(_SERIES_FROM).square().reciprocal()
    series = torch.full_like(z, _COEFFICIENTS[-1])
    for coefficient in (*_COEFFICIENTS[-2::-1], 1.0):
        series = series * inverse_square + coefficient
    return inverse_square * series


class IntegratedImprovement:
    """The logarithm of noisy expected improvement, averaged over m models, with gradients in closed
    form.

    If observations are noisy, the largest value so far is not known. So the values at all rows are
    drawn from the posterior of each model, several times. For each draw, the improvement is that on
    the largest of its values, given those values, so it is 0 at a row. Pending rows, without
    observations, are drawn too.

    Source: Letham et al. 2019 (noisy expected improvement), Snoek et al. 2012 (its average over
    hyperparameters), Wilson et al. 2020 (how draws are made: Matheron's rule).

    Args:
        model: A `KernelGP` of features with one batch dimension of m models, zero mean and a
            stationary kernel that has gradients in closed form. All its rows have observations.
        pending: The features of rows without observations, ``k x p``.
        baseline: The features of the points to improve on, ``n x p``. The mean of each draw counts
            at points that are not rows; without points it is 0. None: all rows.
        normals: The standard normal numbers of s draws for each model, ``m x 2 x r x s`` for r
            rows.
        features: The map from ``n x d`` points to features, such as an
            `botorch_ext.hyperparameters.inputs.ActionFeatures`.
    """

    # The logarithm falls without bound near rows.
    span = 20.0

    def __init__(
        self,
        model: KernelGP,
        pending: Tensor,
        baseline: Tensor | None,
        normals: Tensor,
        features: Any,
    ) -> None:
        self._features = features
        self._kernel, n = model.kernel_function, model.num_observations
        self._rows = torch.cat([model.train_inputs[0], pending]) if n else pending
        own, noise = normals[:, 0], normals[:, 1, :n]
        K = self._kernel(self._rows, self._rows)
        K.diagonal(dim1=-2, dim2=-1).add_(_NUGGET)
        self._L = torch.linalg.cholesky_ex(K)[0]
        self._weights = torch.linalg.solve_triangular(self._L.mT, own, upper=True)
        if n:
            drawn = self._L[:, :n] @ own
            drawn += (model.factor.noise - _NUGGET).clamp_min(0).sqrt().unsqueeze(-1) * noise
            residuals = model.factor.y[:, :n].unsqueeze(-1) - drawn
            self._weights[:, :n] += model.factor.solve_transposed(model.factor.solve(residuals))
        self._incumbents = own.new_zeros(len(own), own.shape[-1], 1)
        if baseline is None:
            means = K @ self._weights - _NUGGET * self._weights
            self._incumbents = means.mT.amax(dim=-1, keepdim=True)
        elif len(baseline):
            means = [self.means_of_draws(chunk) for chunk in self._chunks(baseline)]
            largest = [chunk.amax(dim=-1, keepdim=True) for chunk in means]
            self._incumbents = torch.cat(largest, dim=-1).amax(dim=-1, keepdim=True)

    def means_of_draws(self, F: Tensor) -> Tensor:
        """The means given the values of each draw at the rows, ``m x s x n``, at ``n x p``
        features."""
        return self._weights.mT @ self._kernel(self._rows, F)

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        return torch.cat([self._value(chunk) for chunk in self._chunks(X)])

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points."""
        F = self._features.at(X)
        k, pullback = self._kernel.value_and_pullback(self._rows, F)
        mean, std, V = self._moments(F, k)
        value, by_mean, by_std = log_improvement((mean - self._incumbents) / std)
        of_draws = (std.log() + value).flatten(0, 1)
        share = of_draws.softmax(dim=0).view_as(value) / std
        by_variance = (share * by_std).sum(dim=1, keepdim=True) / std
        by_kernel = self._weights @ (share * by_mean)
        by_kernel -= torch.linalg.solve_triangular(self._L.mT, V, upper=True) * by_variance
        value = of_draws.logsumexp(dim=0) - math.log(self._incumbents.numel())
        return value, self._features.pullback(X, pullback(by_kernel).sum(dim=0))

    def _value(self, X: Tensor) -> Tensor:
        F = self._features.at(X)
        mean, std, _ = self._moments(F, self._kernel(self._rows, F))
        of_draws = std.log() + _Improvement.at((mean - self._incumbents) / std).log
        return of_draws.flatten(0, 1).logsumexp(dim=0) - math.log(self._incumbents.numel())

    def _moments(self, F: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The means of all draws, ``m x s x n``, the standard deviations, ``m x 1 x n``, and the
        kernel ``k`` between the rows and ``n x p`` features, solved by the Cholesky factor."""
        V = torch.linalg.solve_triangular(self._L, k, upper=False)
        variance = self._kernel.diagonal(F) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(F.dtype).eps ** 2).sqrt().unsqueeze(-2)
        return self._weights.mT @ k, std, V

    def _chunks(self, X: Tensor) -> tuple[Tensor, ...]:
        return in_chunks(X, len(self._weights) * max(self._weights.shape[1:]))


class ImprovementOnSet:
    """Improvement for points that can be asked again: the larger of another improvement and of the
    gain from one more observation of the point.

    The gain is the logarithm of the mean over models of E max(u, b) - max(m, b), where m is the
    mean at the point, u the mean after one more observation, and b the largest mean of the other
    points.

    Source: Frazier et al. 2008 (knowledge gradient, of independent beliefs).

    Args:
        other: The other improvement, which is 0 at rows.
        model: A batch of models of features, with pending rows.
        points: The features of the points to choose from at the end, ``n x p``.
        features: As for `IntegratedImprovement`.
    """

    def __init__(
        self, other: IntegratedImprovement, model: KernelGP, points: Tensor, features: Any
    ) -> None:
        self._other, self._model, self._features = other, model, features
        self._best = self._second = model.noise_variance.new_zeros(len(model.noise_variance), 1)
        self._tops = points  # for each model, the point where its mean is largest
        if len(points):
            means = model.mean_at(points)
            self._best, top = means.max(dim=-1, keepdim=True)
            self._tops = points[top.squeeze(-1)]
            others = torch.where(self._are_tops(points), self._best - _FAR_BELOW, means)
            self._second = others.amax(dim=-1, keepdim=True)

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        F = self._features.at(X)
        mean, std = self._model.mean_and_std(F)
        scale = std.square() / (std.square() + self._model.noise_variance.unsqueeze(-1)).sqrt()
        elsewhere = self._best
        if len(self._tops):
            elsewhere = torch.where(self._are_tops(F), self._second, self._best)
        z = -(mean - elsewhere).abs() / scale
        learnt = (scale.log() + _Improvement.at(z).log).logsumexp(dim=0) - math.log(len(mean))
        return torch.maximum(self._other.value(X), learnt)

    def _are_tops(self, F: Tensor) -> Tensor:
        """Whether ``n x p`` features are those of the best point of each model, ``m x n``."""
        return distances(self._tops, F) < _ONE_POINT


class ImprovementElsewhere:
    """Improvement for points that are asked once: another improvement, and less than any at points
    that are taken.

    Args:
        other: The other improvement.
        are_taken: A function from ``n x d`` points to a mask of those that are taken.
    """

    span = IntegratedImprovement.span

    def __init__(self, other: Any, are_taken: Callable[[Tensor], Tensor]) -> None:
        self._other, self._are_taken = other, are_taken

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        return self._other.value(X).masked_fill(self._are_taken(X), _LOWEST)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points."""
        value, gradient = self._other.value_and_gradient(X)
        return value.masked_fill(self._are_taken(X), _LOWEST), gradient


class TimesProbability:
    """Another objective plus a multiple of a log probability.

    Args:
        other: The other objective; None for the multiple of the log probability alone.
        event: The log probability as a function of features, such as a
            `botorch_ext.hyperparameters.feasibility.Feasibility`.
        weight: The multiplier.
        features: As for `IntegratedImprovement`.
    """

    span = IntegratedImprovement.span

    def __init__(self, other: Any, event: Any, weight: float, features: Any) -> None:
        self._other, self._event = other, event
        self._weight, self._features = weight, features

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        return self._values(X)[1]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points."""
        return self._with_gradients(X)[1]

    def _values(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The log probabilities, and the values."""
        log = self._event.log_probability(self._features.at(X))
        value = self._weight * log
        return log, value if self._other is None else self._other.value(X) + value

    def _with_gradients(self, X: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The log probabilities and the values, both with their gradients."""
        F = self._features.at(X)
        log, by_features = self._event.log_probability_and_gradient(F)
        by_point = self._features.pullback(X, by_features)
        value, gradient = self._weight * log, self._weight * by_point
        if self._other is not None:
            other, by_other = self._other.value_and_gradient(X)
            value, gradient = other + value, by_other + gradient
        return (log, by_point), (value, gradient)


class WhereLikely(TimesProbability):
    """Another objective plus a multiple of a log probability. Points at which the probability is
    below a threshold rank below all others. Its other arguments are those of `TimesProbability`.

    Args:
        threshold: The threshold, a probability. Values of the objective are far below 1e4.
    """

    def __init__(
        self, other: Any, event: Any, weight: float, threshold: float, features: Any
    ) -> None:
        super().__init__(other, event, weight, features)
        self._least = math.log(threshold)

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points. Very low values at likely points are raised, and
        keep their order, so that they stay above those of risky points."""
        log, value = self._values(X)
        floor = -0.5 * _TOO_RISKY
        raised = floor - (floor - value).clamp_min(0).log1p()
        likely = torch.where((value < floor) & (value > 0.5 * _LOWEST), raised, value)
        return torch.where(log < self._least, value - _TOO_RISKY, likely)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points of the least of `cuts`,
        which is the objective itself where the probability is above the threshold by a margin."""
        values, gradients = self.cuts(X)
        least, which = values.min(dim=0)
        return least, gradients[which, torch.arange(len(X), device=X.device)]

    def cuts(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``2 x n`` values and the ``2 x n x d`` gradients at ``n x d`` points of two
        functions: one without a threshold, and one that is lower below it, so that ascents end just
        above it."""
        (log, by_point), (value, gradient) = self._with_gradients(X)
        excess = log - self._least - _MARGIN
        values = torch.stack([value, value + _SLOPE * excess])
        return values, torch.stack([gradient, gradient + _SLOPE * by_point])
