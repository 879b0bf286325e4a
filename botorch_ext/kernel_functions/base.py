"""What a frozen kernel is, and the one that asks GPyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

Pullback = Callable[[Tensor], Tensor]


class KernelFunction(nn.Module):
    """A frozen kernel.

    Shapes: ``*batch`` is the batch shape of the kernel (many kernels at once); inputs are
    ``... x n x d`` and broadcast against it.
    """

    batch_shape: torch.Size
    has_closed_form_gradient = False

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        """``... x n1 x d`` and ``... x n2 x d`` to ``... x n1 x n2``, differentiable in both."""
        raise NotImplementedError

    def diagonal(self, X: Tensor) -> Tensor:
        """k(x, x): ``... x n x d`` to what broadcasts to ``... x n``."""
        raise NotImplementedError

    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        """K and what takes weights back to the second inputs, in closed form, without autograd.

        Args:
            X1: ``... x n1 x d``.
            X2: ``... x n2 x d``.

        Returns:
            K, ``... x n1 x n2``, which the pullback may need: not to be changed in place. And the
            pullback: of W, which broadcasts against K, it is sum_i W_ij dk(x1_i, x2_j)/dx2_j as
            ``... x n2 x d``.
        """
        raise NotImplementedError


class GenericKernel(KernelFunction):
    """Any kernel, evaluated through GPyTorch."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel
        self.batch_shape = kernel.batch_shape

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.kernel(X1, X2).to_dense()

    def diagonal(self, X: Tensor) -> Tensor:
        return self.kernel(X, diag=True)
