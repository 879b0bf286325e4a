"""Smoothed Matern: a share of an RBF kernel and the rest of a Matern 5/2 kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernel_functions.base import KernelFunction, Pullback
from botorch_ext.kernel_functions.stationary import differences_pulled, weighted_squares


class SmoothedMatern(KernelFunction):
    """share * RBF + (1 - share) * Matern 5/2, for a batch of m.

    Args:
        lengthscale: ``m x 1 x d``.
        share: ``m``, of the RBF kernel, in [0, 1].
    """

    inverse_lengthscale: Tensor
    share: Tensor
    has_closed_form_gradient = True

    def __init__(self, lengthscale: Tensor, share: Tensor) -> None:
        super().__init__()
        self.register_buffer("inverse_lengthscale", 1 / lengthscale)
        self.register_buffer("share", share)
        self.batch_shape = share.shape

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self._parts(X1, X2)[0]

    def diagonal(self, X: Tensor) -> Tensor:
        return X.new_ones(X.shape[:-1])

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        K, smooth, s, decay = self._parts(X1, X2)
        # dk / dx2 is this times the difference over the squared lengthscale.
        rough = (s + 1).mul_(decay).mul_(5 / 3)
        slope = torch.lerp(rough, smooth, self.share[:, None, None])
        scale = self.inverse_lengthscale.square()
        return K, lambda W: differences_pulled(W * slope, X1, X2) * scale

    def _parts(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """k, its smooth part, sqrt(5) r and exp of minus that."""
        squares = weighted_squares(X1, X2, self.inverse_lengthscale)
        smooth = (-0.5 * squares).exp_()
        s = (5 * squares).sqrt_()
        decay = torch.neg(s).exp_()
        rough = torch.addcmul(s, s, s, value=1 / 3).add_(1).mul_(decay)
        return torch.lerp(rough, smooth, self.share[:, None, None]), smooth, s, decay
