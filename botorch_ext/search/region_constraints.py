"""Constraints of a region: an upper confidence bound that must reach a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.domains.chunks import in_chunks
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound


@dataclass(frozen=True, eq=False)
class Constraint:
    """The constraint mean + width std + offset >= threshold on an upper confidence bound.

    Args:
        model: The model of one round, without batch dimensions.
        width: The multiplier of the standard deviation, at least 0.
        offset: The number that the upper bound adds besides.
        threshold: The number that the upper bound must reach: the largest lower bound of the round.

    Raises:
        ValueError: If a number is not finite, the width is negative, or the model is a batch.
    """

    model: KernelGP
    width: float
    offset: float
    threshold: float

    def __post_init__(self) -> None:
        for name in ("width", "offset", "threshold"):
            object.__setattr__(self, name, amount(getattr(self, name), name, "finite"))
        if self.width < 0:
            raise ValueError(f"width must be non-negative, got {self.width}")
        if not isinstance(self.model, KernelGP):
            raise ValueError(f"model must be a KernelGP, got {short(self.model)}")
        if self.model.batch_shape:
            raise ValueError(
                f"model must have no batch dimensions, got {tuple(self.model.batch_shape)}"
            )

    def slack(self, X: Tensor, level: Tensor | float = -math.inf) -> Tensor:
        """How far the upper bound is above the threshold.

        Args:
            X: ``m x d`` points.
            level: If the slack of a point is below this number, any number below it may be
                returned.

        Returns:
            ``m`` numbers, differentiable in ``X``.
        """
        return torch.cat([self._slack(chunk, level) for chunk in self._chunks(X)])

    def slack_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The slack and its gradient, in closed form if the model has it.

        Args:
            X: ``m x d`` points.

        Returns:
            ``m`` slacks and their ``m x d`` gradients.
        """
        model, n = self.model, self.model.num_observations
        if self._has_no_shortcut or model.mean is not None or not model.has_closed_form_gradient:
            value, gradient = ConfidenceBound(model, self.width).value_and_gradient(X)
            return value + (self.offset - self.threshold), gradient
        kernel, weights = model.kernel_function, model.factor.mean_weights[:n]
        k, pullback = kernel.value_and_pullback(model.train_inputs[0], X)
        v = k.mT.contiguous() @ self._inverse.mT  # m x n
        variance = kernel.diagonal(X) - v.square().sum(dim=-1)
        std = variance.clamp_min(torch.finfo(k.dtype).eps ** 2).sqrt()
        slack = weights @ k + self.width * std + (self.offset - self.threshold)
        share = (v @ self._inverse).mT * (self.width / std)
        return slack, pullback(weights.unsqueeze(-1) - share)

    def is_met(self, X: Tensor) -> Tensor:
        """Which points have a slack of at least 0.

        On the CPU bounds on the standard deviation decide most points. On a GPU none are decided
        that way, and nothing waits for the host.

        Args:
            X: ``m x d`` points.

        Returns:
            ``m`` booleans.
        """
        return torch.cat([self._is_met(chunk) for chunk in self._chunks(X)])

    @cached_property
    def rounding(self) -> float:
        """About the most that rounding can change a slack: ten times what it does in practice."""
        model, n = self.model, self.model.num_observations
        if not n:
            return 0.0
        L, eps = model.factor.L[:n, :n], torch.finfo(model.dtype).eps
        prior = model.kernel_function.diagonal(model.train_inputs[0]).max()
        condition = prior / L.diagonal().min().square()
        # L^-1 k is wrong by about `error`, relative to its length of at most sqrt(prior). So is the
        # variance, relative to the prior's; its root is known better where it is not tiny, and it
        # is seldom smaller than the root of the least pivot.
        error = eps * condition.sqrt()
        std = torch.minimum(error.sqrt(), eps * condition)
        return float(prior.sqrt() * (error * model.factor.z[:n].norm() + self.width * std))

    @cached_property
    def _inverse(self) -> Tensor:
        return inverse_factor(self.model)

    @cached_property
    def _factor(self) -> Tensor:
        n = self.model.num_observations  # without the room to grow, which a solve would go through
        return self.model.factor.L[:n, :n].clone()

    def _chunks(self, X: Tensor) -> tuple[Tensor, ...]:
        return in_chunks(X, self.model.num_observations)

    def _slack(self, X: Tensor, level: Tensor | float) -> Tensor:
        if self._has_no_shortcut or (isinstance(level, float) and level == -math.inf):
            mean, std = self.model.mean_and_std(X)
            return mean + self.width * std + (self.offset - self.threshold)
        k, prior, least = self._without_std(X)
        if X.is_cuda:
            return least + self._spread(k, prior)
        slack = least + self.width * prior.sqrt()
        (rows,) = (slack >= level).nonzero(as_tuple=True)
        return slack.index_put((rows,), least[rows] + self._spread(k[:, rows], prior[rows]))

    def _is_met(self, X: Tensor) -> Tensor:
        if self._has_no_shortcut:
            return self._slack(X, -math.inf) >= 0
        k, prior, least = self._without_std(X)
        if X.is_cuda:
            return least + self._spread(k, prior) >= 0
        met = least >= 0
        (rows,) = (~met & (least + self.width * prior.sqrt() >= 0)).nonzero(as_tuple=True)
        if len(rows):
            met[rows] = least[rows] + self._spread(k[:, rows], prior[rows]) >= 0
        return met

    @property
    def _has_no_shortcut(self) -> bool:
        return self.model.has_transforms or not self.model.num_observations

    def _without_std(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """K(data, X), k(x, x), and the slack as if the standard deviation were 0."""
        model, n = self.model, self.model.num_observations
        k = model.kernel_function(model.train_inputs[0], X)
        mean = model.factor.mean_weights[:n] @ k
        if model.mean is not None:
            mean = mean + model.mean(X)
        return k, model.kernel_function.diagonal(X), mean + (self.offset - self.threshold)

    def _spread(self, k: Tensor, prior: Tensor) -> Tensor:
        """Width times standard deviation, from K(data, X) and k(x, x)."""
        if k.is_cuda:
            v = self._inverse @ k
        else:  # a third of the time of a product with the inverse
            v = torch.linalg.solve_triangular(self._factor, k, upper=False)
        variance = prior - v.square().sum(dim=0)
        return self.width * variance.clamp_min(torch.finfo(k.dtype).eps ** 2).sqrt()


def inverse_factor(model: KernelGP) -> Tensor:
    """The inverse of the Cholesky factor, ``n x n``.

    On a GPU its products are faster than triangular solves.
    """
    n = model.num_observations
    eye = torch.eye(n, dtype=model.dtype, device=model.noise_variance.device)
    return torch.linalg.solve_triangular(model.factor.L[:n, :n], eye, upper=False)
