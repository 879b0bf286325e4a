"""JointDraw: one function drawn from a posterior, evaluated at more and more points."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP

# The least jitter, relative to the largest prior variance. It adds independent noise of 3e-5
# standard deviations of the prior to a draw.
_JITTER = {torch.float64: 1e-9, torch.float32: 1e-5}


class JointDraw:
    """One function drawn from the posterior of a model, evaluated at more and more points.

    Values at new points are drawn given the values drawn before (sequential conditioning). So all
    values together are one exact draw from the joint posterior, however the points were chosen. No
    features and no approximate prior are involved. A draw at m points takes O(m^3).

    Args:
        model: A `KernelGP` or a `FinitePosterior`, not batched. A draw from a model with transforms
            is a draw of the transformed outcome.
        generator: The random generator, on the CPU.
        width: The factor of the deviation from the posterior mean; 1 for a draw from the posterior.
        context: The context, ``d_z``, that is joined to all points; None for none.
    """

    def __init__(
        self,
        model: KernelGP | FinitePosterior,
        generator: torch.Generator,
        width: float | Tensor = 1.0,
        context: Tensor | None = None,
    ) -> None:
        self.model, self.width, self._generator, self._context = model, width, generator, context
        like = model.noise_variance
        # The points of the draw as the kernel sees them, L^-1 k(data, points), the factor of their
        # posterior covariance, and the standard normal numbers of the draw.
        self._points: Tensor | None = None
        self._cross = like.new_zeros(model.num_observations, 0)
        self._factor, self._normals = like.new_zeros(0, 0), like.new_zeros(0)
        # The drawn deviation from the mean is the kernel of the points times the first, less the
        # kernel of the data times the second.
        self._weights = self._data_weights = like.new_zeros(0)

    @torch.no_grad()
    def at(self, X: Tensor) -> Tensor:
        """Draw the values at points, given all values drawn before.

        Args:
            X: Points, ``m x d``.

        Returns:
            The values, ``m``.
        """
        Z = self._seen(X)
        mean, _, V = self.model.moments(Z)
        covariance = self.model.kernel_function(Z, Z) - V.mT @ V
        A = self._solved(Z, V)
        covariance = covariance - A.mT @ A
        largest = self.model.kernel_function.diagonal(Z).max()
        L = jittered_factor(covariance, largest)
        normals = host.randn(len(X), generator=self._generator, dtype=torch.float64).to(mean)
        values = mean + self.width * (A.mT @ self._normals + L @ normals)
        top = torch.cat([self._factor, self._factor.new_zeros(len(A), len(X))], dim=1)
        self._factor = torch.cat([top, torch.cat([A.mT, L], dim=1)])
        self._normals = torch.cat([self._normals, normals])
        self._points = Z if self._points is None else torch.cat([self._points, Z])
        self._cross = torch.cat([self._cross, V], dim=-1)
        weights = torch.linalg.solve_triangular(
            self._factor.mT, self._normals.unsqueeze(-1), upper=True
        )
        self._weights = weights.squeeze(-1)
        if self.model.num_observations:
            inner = self._cross @ weights
            self._data_weights = self.model.factor.solve_transposed(inner).squeeze(-1)
        return values

    @torch.no_grad()
    def mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and standard deviation of the draw at points, given all values drawn before.

        Args:
            X: Points, ``m x d``.

        Returns:
            The means and the standard deviations, ``m`` each.
        """
        Z = self._seen(X)
        mean, variance, V = self.model.moments(Z)
        A = self._solved(Z, V)
        std = (variance - A.square().sum(dim=-2)).clamp_min(0).sqrt()
        return mean + self.width * (A.mT @ self._normals), self.width * std

    def mean(self, X: Tensor) -> Tensor:
        """The mean of the draw at points, given all values drawn before, O(m) per point for m of
        them.

        Args:
            X: Points, ``p x d``.

        Returns:
            The means, ``p``, differentiable in ``X``.
        """
        Z = self._seen(X)
        mean, data = self.model._prior_mean(Z), self.model.train_inputs[0]
        if self.model.num_observations:
            weights = self.model.factor.mean_weights
            if self._points is not None:
                weights = weights - self.width * self._data_weights
            mean = mean + weights @ self.model.kernel_function(data, Z)
        if self._points is not None:
            deviation = self._weights @ self.model.kernel_function(self._points, Z)
            mean = mean + self.width * deviation
        return mean.expand(len(X))

    def _seen(self, X: Tensor) -> Tensor:
        """Points as the kernel sees them."""
        X = with_context(X, self._context)
        return self.model.transform_inputs(X) if isinstance(self.model, KernelGP) else X

    def _solved(self, Z: Tensor, V: Tensor) -> Tensor:
        """The factor of the drawn points, solved for their posterior covariance with new points."""
        if self._points is None:
            return V.new_zeros(0, len(Z))
        covariance = self.model.kernel_function(self._points, Z) - self._cross.mT @ V
        return torch.linalg.solve_triangular(self._factor, covariance, upper=False)


def jittered_factor(covariance: Tensor, largest: Tensor) -> Tensor:
    """The Cholesky factors of posterior covariances, with the least jitter for which all exist.

    Args:
        covariance: The covariances, ``... x m x m``.
        largest: The largest prior variance, 0-dim.

    Returns:
        The factors, ``... x m x m``.
    """
    jitter = _JITTER[covariance.dtype] * largest
    while True:
        raised = covariance.clone()
        raised.diagonal(dim1=-2, dim2=-1).add_(jitter)
        factor, failed = torch.linalg.cholesky_ex(raised)
        if not bool(failed.any()) or not bool(jitter < largest):
            return factor
        jitter = 10 * jitter
