"""Conditional variance: that of a posterior given points that were added since."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.models.cholesky import least_pivot
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions.constraints import inverse_factor
from botorch_ext.search.objectives import FunctionObjective


class ConditionalVariance:
    """The posterior variance given the data of a model and the points added since, with gradients
    in closed form where the kernel has them.

    Keeps the inverse of the Cholesky factor, which grows by a row without being solved against.

    Args:
        model: Without batch dimensions.
        box: Where the points lie.
        capacity: How many points can be added.
    """

    def __init__(self, model: KernelGP, box: Box, capacity: int) -> None:
        self.model, self.box = model, box
        n = self.num_points = model.num_observations
        like = box.like
        self.Z = model.transform_inputs(like[:1]).repeat(n + capacity, 1)
        self.inverse = like.new_zeros(n + capacity, n + capacity)
        if n:
            self.Z[:n] = model.train_inputs[0]
            self.inverse[:n, :n] = inverse_factor(model)
        self._through_autograd = FunctionObjective(lambda X: self.value_and_columns(X)[0])

    def value(self, X: Tensor) -> Tensor:
        return self.value_and_columns(X)[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``m x d`` to ``m`` variances and ``m x d`` gradients."""
        kernel, n = self.model.kernel_function, self.num_points
        if not kernel.has_closed_form_gradient or hasattr(self.model, "input_transform"):
            return self._through_autograd.value_and_gradient(X)
        Z, inverse = self.Z[:n], self.inverse[:n, :n]
        k, pullback = kernel.value_and_pullback(Z, X)
        # With the few points as rows in memory, products take a third of the time.
        v = k.mT.contiguous() @ inverse.mT  # m x n
        gradient = -2 * pullback((v @ inverse).mT)
        return kernel.diagonal(X) - v.square().sum(dim=-1), gradient

    def value_and_columns(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``m x d`` to ``m`` variances and L^-1 K(points, X)."""
        kernel, n = self.model.kernel_function, self.num_points
        Z = self.model.transform_inputs(X)
        columns = self.inverse[:n, :n] @ kernel(self.Z[:n], Z)
        return kernel.diagonal(Z) - columns.square().sum(dim=0), columns

    def add(self, x: Tensor) -> Tensor:
        """Conditions on one more point ``1 x d``; returns its new row of the Cholesky factor."""
        kernel, n = self.model.kernel_function, self.num_points
        z = self.model.transform_inputs(x)
        inverse = self.inverse[:n, :n]
        v = (inverse @ kernel(self.Z[:n], z))[:, 0]
        prior = kernel.diagonal(z)[0]
        variance = (prior - v.square().sum()).clamp_min(0)
        pivot = torch.maximum(variance + self.model.noise_variance, least_pivot(prior)).sqrt()
        self.inverse[n, :n] = -(v @ inverse) / pivot
        self.inverse[n, n] = 1 / pivot
        self.Z[n] = z[0]
        self.num_points += 1
        return torch.cat([v, pivot[None]])
