"""PeriodicKernel: frozen periodic kernels."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback, columns, onto_columns
from botorch_ext.kernels.frozen.stationary import StationaryKernel


class PeriodicKernel(KernelFunction):
    """The frozen periodic kernel exp(-2 sum_i sin^2(pi (x_i - x'_i) / p_i) / l_i).

    The lengthscale l is not squared, as in GPyTorch. The kernel is the RBF kernel with lengthscales
    sqrt(l_i) between the points (cos a_i, sin a_i) with a_i = 2 pi x_i / p_i, since the squared
    distance of two such points is 4 sin^2(half their angle).

    Args:
        period: The period p, ``*batch x 1 x (1 or d)``; infinite in columns that do not count.
        lengthscale: The lengthscale l, ``*batch x 1 x (1 or d)``.
        active_dims: The columns that the kernel sees; None for all.
    """

    frequency: Tensor
    lengthscale: Tensor
    active_dims: Tensor | None
    has_closed_form_gradient = True

    def __init__(self, period: Tensor, lengthscale: Tensor, active_dims: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("frequency", 2 * math.pi / period)
        self.register_buffer("lengthscale", lengthscale)
        self.register_buffer("active_dims", active_dims)
        root = lengthscale.sqrt()
        if root.shape[-1] > 1:
            root = torch.cat([root, root], dim=-1)
        self.rbf = StationaryKernel(math.inf, root, None, None)
        self.batch_shape = torch.broadcast_shapes(period.shape[:-2], lengthscale.shape[:-2])

    def _on_circles(self, X: Tensor) -> Tensor:
        angle = columns(X, self.active_dims) * self.frequency
        return torch.cat([angle.cos(), angle.sin()], dim=-1)

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.rbf(self._on_circles(X1), self._on_circles(X2))

    def diagonal(self, X: Tensor) -> Tensor:
        return torch.ones_like(X[..., 0])

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        Z2 = self._on_circles(X2)
        K, pull = self.rbf.value_and_pullback(self._on_circles(X1), Z2)
        cos, sin = Z2.chunk(2, dim=-1)

        def pullback(W: Tensor) -> Tensor:
            along_cos, along_sin = pull(W).chunk(2, dim=-1)
            gradient = (along_sin * cos - along_cos * sin) * self.frequency
            return onto_columns(gradient, self.active_dims, X2.shape[-1])

        return K, pullback

    def restricted(self, masks: Tensor) -> PeriodicKernel:
        masks = columns(masks, self.active_dims).unsqueeze(-2)
        period = 2 * math.pi / (self.frequency.unsqueeze(-3) * masks)
        return PeriodicKernel(period, self.lengthscale.unsqueeze(-3), self.active_dims)
