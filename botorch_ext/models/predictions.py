"""Predictions of a model, point by point: means, standard deviations and their gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import GPyTorchPosterior, Posterior
from gpytorch.distributions import MultivariateNormal
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from botorch_ext.domains import require_same_kind
from botorch_ext.domains.points import PointsLike, checked_like, require_finite
from botorch_ext.models.checks import PriorMean, transformed
from botorch_ext.models.downdate import moments_without
from botorch_ext.models.posterior import GrowingPosterior

# Entries of kernel matrices that are made at once where a mean alone is wanted.
_MAX_ENTRIES = 2**22
# Observations of a batch of models whose predictions are recorded as CUDA graphs.
MOST_IN_BATCH = 512


class Predictions(GrowingPosterior):
    """What a `KernelGP` says of single points."""

    mean: PriorMean | None
    posterior: Callable[..., Posterior]
    transform_inputs: Callable[[Tensor], Tensor]

    @property
    def has_transforms(self) -> bool:
        return hasattr(self, "input_transform") or hasattr(self, "outcome_transform")

    @torch.no_grad()
    def largest_variance(self, X: PointsLike) -> Tensor:
        """The largest prior variance k(x, x) at ``n x d`` points, ``*batch``.

        Raises:
            ValueError: Points that the kernel has no value at.
        """
        X = self._checked_batches(X)
        prior = self.kernel_function.diagonal(self.transform_inputs(X))
        largest = prior.expand(*self.batch_shape, len(X)).amax(dim=-1)
        require_finite({"kernel at X": largest})
        return largest

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """A ValueError unless this is a single model that takes points like these, ``n x d``, and
        has a finite prior mean at all of them."""
        require_same_kind(self.noise_variance, like, "model")
        if self.batch_shape:
            raise ValueError(
                f"model must not be batched, got batch shape {tuple(self.batch_shape)}"
            )
        dim = like.shape[-1]
        X = like[:1].repeat(2, 1)
        Z = transformed(X, self.transform_inputs)
        if self.num_observations and self.dim != Z.shape[-1]:
            raise ValueError(f"model must have data of dimension {Z.shape[-1]}, got {self.dim}")
        for name, function, shape in (
            ("kernel", lambda: self.kernel_function(Z, Z), (2, 2)),
            ("mean", lambda: Z.new_zeros(2) if self.mean is None else self.mean(Z), (2,)),
        ):
            try:
                values = function()
            except Exception as error:
                raise ValueError(
                    f"{name} must take points of dimension {dim}, got {error!r}"
                ) from error
            got = (
                tuple(values.shape) if isinstance(values, Tensor) else f"a {type(values).__name__}"
            )
            if got != shape:
                raise ValueError(f"{name} must return shape {shape} at 2 points, got {got}")
        if self.mean is not None:
            everywhere = transformed(like, self.transform_inputs)
            if not bool(torch.isfinite(self._prior_mean(everywhere)).all()):
                raise ValueError("mean must be finite on the domain, got NaN or infinite values")

    def _checked_batches(self, X: Any) -> Tensor:
        """Points ``... x n x d``, or a ValueError; their entries are not looked at."""
        X = checked_like(X, self.noise_variance, "X")
        d = X.shape[-1] if hasattr(self, "input_transform") else self.dim  # 0 before any data
        if X.ndim < 2 or (d and X.shape[-1] != d):
            raise ValueError(f"X must have shape (..., q, {d or 'd'}), got {tuple(X.shape)}")
        return X

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance at ``*b x p x d`` (each ``*batch x p``), and the cross factor."""
        prior = self.kernel_function.diagonal(X)
        if self.num_observations == 0:
            shape = (*torch.broadcast_shapes(self.batch_shape, X.shape[:-2]), X.shape[-2])
            mean = self._prior_mean(X).expand(shape)
            return mean, prior.expand(shape), self._cross(X)
        V = self._cross(X)
        mean = self._prior_mean(X) + self.factor.predicted(V)
        return mean, prior - V.square().sum(dim=-2), V

    def mean_and_std(self, X: PointsLike) -> tuple[Tensor, Tensor]:
        """Pointwise posterior mean and standard deviation of every model in the batch.

        Args:
            X: ``n x d``.

        Returns:
            Two ``*batch x n``-dim tensors, differentiable in ``X``.
        """
        X = self._checked_batches(X)
        if self.has_transforms:
            nb = len(self.batch_shape)
            posterior: Any = self.posterior(X.unsqueeze(-2)[(slice(None),) + (None,) * nb])
            mean, variance = (m[..., 0, 0] for m in (posterior.mean, posterior.variance))
            return mean.movedim(0, -1), variance.sqrt().movedim(0, -1)
        mean, variance, _ = self.moments(X)
        # Rounding can leave a known point a variance of -1e-17, whose root has no gradient.
        floor = torch.finfo(variance.dtype).eps ** 2
        return mean, variance.clamp_min(floor).sqrt()

    @torch.no_grad()
    def moments_without(self, rows: Sequence[int], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior at one point if some rows were not there, of a model that is not batched.

        Args:
            rows: The rows to leave out.
            x: ``1 x d``.

        Returns:
            Mean, standard deviation and the information gain of the other rows, all 0-dim.
        """
        mean, variance, cross = self.moments(self.transform_inputs(x))
        mean, std, gain = moments_without(self.factor, rows, cross[:, 0], mean[0], variance[0])
        outcome: OutcomeTransform | None = getattr(self, "outcome_transform", None)
        if outcome is not None:
            normal = MultivariateNormal(mean[None], DiagLinearOperator(std[None] ** 2))
            posterior: Any = outcome.untransform_posterior(GPyTorchPosterior(normal), X=x)
            mean, std = posterior.mean[0, 0], posterior.variance[0, 0].sqrt()
        return mean, std, gain

    @torch.no_grad()
    def mean_at(self, X: PointsLike) -> Tensor:
        """Posterior means alone, O(n) each: ``n x d`` points to ``*batch x n``."""
        X = self._checked_batches(X)
        outcome = getattr(self, "outcome_transform", None)
        if not isinstance(outcome, Standardize | None):  # the mean depends on the variance
            return self.mean_and_std(X)[0]
        Z, n = self.transform_inputs(X), self.num_observations
        mean = self._prior_mean(Z).expand(*self.batch_shape, len(X)).clone()
        if n:
            alpha = self.factor.mean_weights.unsqueeze(-2)
            rows = math.prod(self.batch_shape) * n
            start = 0
            for chunk in Z.split(max(_MAX_ENTRIES // rows, 1)):
                k = self.kernel_function(self.train_inputs[0], chunk)
                mean[..., start : start + len(chunk)] += (alpha @ k).squeeze(-2)
                start += len(chunk)
        if outcome is None:
            return mean
        return outcome.untransform(mean.unsqueeze(-1), X=X)[0].squeeze(-1)

    @property
    def has_closed_form_gradient(self) -> bool:
        """Whether `mean_std_and_gradients` works without autograd."""
        return self.kernel_function.has_closed_form_gradient and not self.has_transforms

    @property
    def is_recordable(self) -> bool:
        """Whether `mean_std_and_gradients` can be a part of a CUDA graph."""
        # Libraries may wait for the device while they solve with many large triangles at once.
        small = not self.batch_shape or self.num_observations <= MOST_IN_BATCH
        return self.has_closed_form_gradient and self.mean is None and small

    @torch.no_grad()
    def mean_std_and_gradients(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and standard deviation with their input gradients in closed form (for
        kernels that have them); of a prior mean the gradient is autograd's.

        Args:
            X: ``n x d``, or ``*batch x n x d``: each model of the batch at its own points.

        Returns:
            Two ``*batch x n``-dim and two ``*batch x n x d``-dim tensors.
        """
        n = self.num_observations
        data = self.train_inputs[0] if n else X.new_zeros(0, X.shape[-1])
        k, pullback = self.kernel_function.value_and_pullback(data, X)  # *batch x n x m
        V = self.factor.solve(k)
        weights = self.factor.solve_transposed(V)
        alpha = self.factor.mean_weights.unsqueeze(-1)
        mean, mean_gradient = (alpha * k).sum(dim=-2), pullback(alpha)
        variance = self.kernel_function.diagonal(X) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(X.dtype).eps ** 2).sqrt()
        std_gradient = -pullback(weights) / std.unsqueeze(-1)
        if self.mean is not None:
            prior, prior_gradient = self._prior_mean_and_gradient(X)
            mean, mean_gradient = mean + prior, mean_gradient + prior_gradient
        return mean, std, mean_gradient, std_gradient

    @torch.enable_grad()  # also where the caller has switched it off
    def _prior_mean_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # One copy of the points for each model: the gradient of a sum over the batch would mix
        # their means.
        batch = torch.broadcast_shapes(self.batch_shape, X.shape[:-2])
        X = X.detach().expand(*batch, *X.shape[-2:]).clone().requires_grad_()
        values = self._prior_mean(X)
        if not values.requires_grad:
            return values, torch.zeros_like(X)
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
        # At a cusp autograd may give NaN or infinity.
        return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)
