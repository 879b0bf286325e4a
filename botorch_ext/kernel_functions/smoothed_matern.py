"""Smoothed Matern: a share of an RBF kernel and the rest of a Matern 5/2 kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernel_functions.base import KernelFunction, Pullback
from botorch_ext.kernel_functions.stationary import differences_pulled, weighted_squares


def profiles(squares: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Of squared distances r^2 in lengthscales, any shape: the Matern 5/2 and the RBF kernel, and
    what their slopes are made of, s = sqrt(5) r and exp(-s)."""
    smooth = (-0.5 * squares).exp_()
    s = (5 * squares).sqrt_()
    decay = torch.neg(s).exp_()
    rough = torch.addcmul(s, s, s, value=1 / 3).add_(1).mul_(decay)
    return rough, smooth, s, decay


def slopes(smooth: Tensor, s: Tensor, decay: Tensor, share: Tensor) -> Tensor:
    """-2 dk / d(r^2) of the kernel with a share of the RBF kernel; ``s`` and ``decay`` are used
    up."""
    return torch.lerp(s.add_(1).mul_(decay).mul_(5 / 3), smooth, share)


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
        rough, smooth, _, _ = profiles(weighted_squares(X1, X2, self.inverse_lengthscale))
        return torch.lerp(rough, smooth, self.share[:, None, None])

    def diagonal(self, X: Tensor) -> Tensor:
        return X.new_ones(X.shape[:-1])

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        rough, smooth, s, decay = profiles(weighted_squares(X1, X2, self.inverse_lengthscale))
        share = self.share[:, None, None]
        K = torch.lerp(rough, smooth, share)
        # dk / dx2 is this times the difference over the squared lengthscale.
        slope, scale = slopes(smooth, s, decay, share), self.inverse_lengthscale.square()
        return K, lambda W: differences_pulled(W * slope, X1, X2) * scale
