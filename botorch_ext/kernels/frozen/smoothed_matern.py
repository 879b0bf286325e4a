"""SmoothedMatern: a weighted mean of an RBF kernel and a Matern 5/2 kernel."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback
from botorch_ext.kernels.frozen.stationary import differences_pulled, weighted_squares


def profiles(squares: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The Matern 5/2 and the RBF kernel as functions of the squared distance.

    Args:
        squares: Squared distances r^2 in lengthscales, of any shape.

    Returns:
        The Matern 5/2 kernel, the RBF kernel, s = sqrt(5) r and exp(-s), each in this shape;
        `slopes` uses the last two.
    """
    smooth = (-0.5 * squares).exp_()
    s = (5 * squares).sqrt_()
    decay = torch.neg(s).exp_()
    rough = torch.addcmul(s, s, s, value=1 / 3).add_(1).mul_(decay)
    return rough, smooth, s, decay


def slopes(smooth: Tensor, s: Tensor, decay: Tensor, share: Tensor) -> Tensor:
    """The slope -2 dk / d(r^2) of the weighted mean of the kernels.

    Args:
        smooth: The RBF kernel.
        s: sqrt(5) r; it is overwritten.
        decay: exp(-s).
        share: The share of the RBF kernel, in [0, 1].

    Returns:
        The slope, in the same shape.
    """
    return torch.lerp(s.add_(1).mul_(decay).mul_(5 / 3), smooth, share)


class SmoothedMatern(KernelFunction):
    """The frozen kernel share * RBF + (1 - share) * Matern 5/2, for a batch of m kernels.

    Args:
        lengthscale: The lengthscales, ``m x 1 x d``.
        share: The share of the RBF kernel, in [0, 1], ``m``.
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
