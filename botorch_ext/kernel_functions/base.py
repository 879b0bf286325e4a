"""Base of all frozen kernels, and the one that asks GPyTorch."""

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

    def restricted(self, masks: Tensor) -> KernelFunction:
        """This kernel on groups of columns: the other columns of both inputs are zero.

        Args:
            masks: ``*batch x groups x d`` of zeros and ones.

        Returns:
            A kernel of batch shape ``*batch x groups``.
        """
        return RestrictedKernel(self, masks)


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


class RestrictedKernel(KernelFunction):
    """Any frozen kernel on groups of columns, by setting the others to zero.

    Args:
        base: The kernel.
        masks: ``*batch x groups x d``.
    """

    masks: Tensor

    def __init__(self, base: KernelFunction, masks: Tensor) -> None:
        super().__init__()
        self.base = base
        self.register_buffer("masks", masks)
        batch = torch.broadcast_shapes(base.batch_shape, masks.shape[:-2])
        self.batch_shape = torch.Size((*batch, masks.shape[-2]))

    def _to_front(self, *inputs: Tensor) -> list[Tensor]:
        """Groups before all other dimensions, which are those the base knows of."""
        masked = [X * self.masks.unsqueeze(-2) for X in inputs]
        num_dims = max(len(self.batch_shape) + 2, *(Z.ndim for Z in masked))
        return [Z[(None,) * (num_dims - Z.ndim)].movedim(-3, 0) for Z in masked]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.base(*self._to_front(X1, X2)).movedim(0, -3)

    def diagonal(self, X: Tensor) -> Tensor:
        return self.base.diagonal(*self._to_front(X)).movedim(0, -2)


def flat(K: Tensor, X2: Tensor) -> Pullback:
    """The pullback of a kernel that is constant between points: to zeros. The arguments are its
    values and the second inputs."""

    def pullback(W: Tensor) -> Tensor:
        batch = torch.broadcast_shapes(W.shape[:-2], K.shape[:-2], X2.shape[:-2])
        return X2.new_zeros(*batch, *X2.shape[-2:])

    return pullback


def columns(X: Tensor, active_dims: Tensor | None) -> Tensor:
    """The columns a kernel looks at."""
    return X if active_dims is None else X[..., active_dims]


def onto_columns(gradient: Tensor, active_dims: Tensor | None, dim: int) -> Tensor:
    """What `columns` does to a gradient: all ``dim`` columns, zero where the kernel does not
    look."""
    if active_dims is None:
        return gradient
    full = gradient.new_zeros(*gradient.shape[:-1], dim)
    return full.index_add(-1, active_dims, gradient)  # a column may count twice
