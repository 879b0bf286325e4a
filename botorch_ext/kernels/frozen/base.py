"""The base class of frozen kernels, and the frozen kernel that calls GPyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

Pullback = Callable[[Tensor], Tensor]


class KernelFunction(nn.Module):
    """Base class of frozen kernels.

    ``*batch`` is the batch shape of the kernel, for several kernels at once. Inputs are
    ``... x n x d`` and broadcast against it.
    """

    batch_shape: torch.Size
    has_closed_form_gradient = False

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        """The kernel matrix.

        Args:
            X1: Points, ``... x n1 x d``.
            X2: Points, ``... x n2 x d``.

        Returns:
            The values, ``... x n1 x n2``, differentiable in both inputs.
        """
        raise NotImplementedError

    def diagonal(self, X: Tensor) -> Tensor:
        """The variances k(x, x).

        Args:
            X: Points, ``... x n x d``.

        Returns:
            A tensor that broadcasts to ``... x n``.
        """
        raise NotImplementedError

    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        """The kernel matrix and its pullback to the second inputs, in closed form without autograd.

        Args:
            X1: Points, ``... x n1 x d``.
            X2: Points, ``... x n2 x d``.

        Returns:
            K, ``... x n1 x n2``, which must not be changed in place, since the pullback may use it;
            and the pullback, which maps weights W that broadcast against K to
            sum_i W_ij dk(x1_i, x2_j)/dx2_j, ``... x n2 x d``.
        """
        raise NotImplementedError

    def restricted(self, masks: Tensor) -> KernelFunction:
        """This kernel on groups of columns: all other columns of both inputs are set to zero.

        Args:
            masks: Masks of zeros and ones, ``*batch x groups x d``.

        Returns:
            A kernel of batch shape ``*batch x groups``.
        """
        return RestrictedKernel(self, masks)


class GenericKernel(KernelFunction):
    """A frozen kernel of any kind, evaluated by GPyTorch."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__()
        self.kernel = kernel
        self.batch_shape = kernel.batch_shape

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.kernel(X1, X2).to_dense()

    def diagonal(self, X: Tensor) -> Tensor:
        return self.kernel(X, diag=True)


class RestrictedKernel(KernelFunction):
    """A frozen kernel on groups of columns, by setting all other columns to zero.

    Args:
        base: The frozen kernel.
        masks: Masks of zeros and ones, ``*batch x groups x d``.
    """

    masks: Tensor

    def __init__(self, base: KernelFunction, masks: Tensor) -> None:
        super().__init__()
        self.base = base
        self.register_buffer("masks", masks)
        batch = torch.broadcast_shapes(base.batch_shape, masks.shape[:-2])
        self.batch_shape = torch.Size((*batch, masks.shape[-2]))

    def _to_front(self, *inputs: Tensor) -> list[Tensor]:
        """The masked inputs with the groups before all dimensions that the base knows."""
        masked = [X * self.masks.unsqueeze(-2) for X in inputs]
        num_dims = max(len(self.batch_shape) + 2, *(Z.ndim for Z in masked))
        return [Z[(None,) * (num_dims - Z.ndim)].movedim(-3, 0) for Z in masked]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self.base(*self._to_front(X1, X2)).movedim(0, -3)

    def diagonal(self, X: Tensor) -> Tensor:
        return self.base.diagonal(*self._to_front(X)).movedim(0, -2)


def flat(K: Tensor, X2: Tensor) -> Pullback:
    """The pullback of a kernel whose gradient is zero.

    Args:
        K: The values, ``... x n1 x n2``.
        X2: The second inputs, ``... x n2 x d``.
    """

    def pullback(W: Tensor) -> Tensor:
        batch = torch.broadcast_shapes(W.shape[:-2], K.shape[:-2], X2.shape[:-2])
        return X2.new_zeros(*batch, *X2.shape[-2:])

    return pullback


def columns(X: Tensor, active_dims: Tensor | None) -> Tensor:
    """The columns of points that a kernel sees.

    Args:
        X: Points, ``... x d``.
        active_dims: The columns; None for all.

    Returns:
        ``... x k``.
    """
    return X if active_dims is None else X[..., active_dims]


def onto_columns(gradient: Tensor, active_dims: Tensor | None, dim: int) -> Tensor:
    """The gradient with respect to all columns, from that with respect to the selected columns.

    Args:
        gradient: The gradient with respect to the columns that the kernel sees, ``... x k``.
        active_dims: These columns; None for all.
        dim: d, the number of all columns.

    Returns:
        ``... x d``, zero in the other columns.
    """
    if active_dims is None:
        return gradient
    full = gradient.new_zeros(*gradient.shape[:-1], dim)
    return full.index_add(-1, active_dims, gradient)  # a column may count twice
