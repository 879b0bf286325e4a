"""Frozen, fast evaluation of GPyTorch kernels, with closed-form input gradients where they exist.

A GPyTorch kernel call costs hundreds of microseconds of bookkeeping, more than the kernel row it
computes. `freeze` snapshots a kernel into a small module that evaluates RBF and Matern kernels
(scaled, added, multiplied) directly; any other kernel is evaluated through GPyTorch itself.
"""

from __future__ import annotations

import math
from copy import deepcopy

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from torch import Tensor, nn


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

    def value_and_slope(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Tensor]:
        """k and g in dk(x1, x2)/dx2 = g (x1 - x2) / lengthscale^2, both ``... x n1 x n2``."""
        raise NotImplementedError

    def contract_gradient(self, weighted_slope: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
        """sum_i weighted_slope_ij (x1_i - x2_j) / lengthscale^2 as ``... x n2 x d``."""
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


class CombinedKernel(KernelFunction):
    """A sum or a product of frozen kernels, times an optional output scale."""

    outputscale: Tensor | None

    def __init__(
        self, parts: list[KernelFunction], product: bool, outputscale: Tensor | None
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.product = product
        self.register_buffer("outputscale", outputscale)
        shapes = [part.batch_shape for part in parts]
        if outputscale is not None:
            shapes.append(outputscale.shape)
        self.batch_shape = torch.broadcast_shapes(*shapes)

    def _combine(self, values: list[Tensor], num_data_dims: int) -> Tensor:
        total = values[0]
        for value in values[1:]:
            total = total * value if self.product else total + value
        if self.outputscale is None:
            return total
        return total * self.outputscale[(...,) + (None,) * num_data_dims]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        return self._combine([part(X1, X2) for part in self.parts], 2)

    def diagonal(self, X: Tensor) -> Tensor:
        return self._combine([part.diagonal(X) for part in self.parts], 1)  # pyright: ignore[reportCallIssue]


class StationaryKernel(KernelFunction):
    """outputscale * profile(|x1 - x2| / lengthscale): RBF (nu = inf) or Matern (nu = 1/2, 3/2,
    5/2).

    Args:
        nu: Smoothness; ``math.inf`` is the RBF kernel.
        lengthscale: ``*batch x 1 x (1 or d)``.
        outputscale: ``*batch``, or None for 1.
        active_dims: The columns the kernel looks at, or None for all.
    """

    inverse_lengthscale: Tensor
    outputscale: Tensor | None
    active_dims: Tensor | None
    has_closed_form_gradient = True

    def __init__(
        self, nu: float, lengthscale: Tensor, outputscale: Tensor | None, active_dims: Tensor | None
    ) -> None:
        super().__init__()
        self.nu = nu
        self.register_buffer("inverse_lengthscale", 1 / lengthscale)
        self.register_buffer("outputscale", outputscale)
        self.register_buffer("active_dims", active_dims)
        scale_shape = torch.Size() if outputscale is None else outputscale.shape
        self.batch_shape = torch.broadcast_shapes(lengthscale.shape[:-2], scale_shape)

    def _scaled(self, X: Tensor) -> Tensor:
        if self.active_dims is not None:
            X = X[..., self.active_dims]
        return X * self.inverse_lengthscale

    def _distance(self, X1: Tensor, X2: Tensor) -> Tensor:
        # The matrix-multiplication form of cdist loses half the digits at small distances.
        return torch.cdist(
            self._scaled(X1), self._scaled(X2), compute_mode="donot_use_mm_for_euclid_dist"
        )

    def _rescale(self, K: Tensor) -> Tensor:
        return K if self.outputscale is None else K * self.outputscale[..., None, None]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        r = self._distance(X1, X2)
        if self.nu == math.inf:
            return self._rescale((-0.5 * r.square()).exp())
        r = math.sqrt(2 * self.nu) * r
        decay = (-r).exp()
        if self.nu == 1.5:
            decay = (1 + r) * decay
        elif self.nu == 2.5:
            decay = (1 + r + r.square() / 3) * decay
        return self._rescale(decay)

    def diagonal(self, X: Tensor) -> Tensor:
        one = torch.ones_like(X[..., 0])
        return one if self.outputscale is None else one * self.outputscale[..., None]

    def value_and_slope(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Tensor]:
        r = self._distance(X1, X2)
        if self.nu == math.inf:
            K = self._rescale((-0.5 * r.square()).exp())
            return K, K
        s = math.sqrt(2 * self.nu) * r
        decay = self._rescale((-s).exp())
        if self.nu == 0.5:
            # Not differentiable at r = 0, where 0 is the symmetric choice.
            return decay, torch.where(r > 0, decay / r, 0)
        if self.nu == 1.5:
            return (1 + s) * decay, 3 * decay
        return (1 + s + s.square() / 3) * decay, (5 / 3) * (1 + s) * decay

    def contract_gradient(self, weighted_slope: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
        Z1, Z2 = self._scaled(X1), self._scaled(X2)
        gradient = weighted_slope.mT @ Z1 - weighted_slope.sum(dim=-2).unsqueeze(-1) * Z2
        gradient = gradient * self.inverse_lengthscale
        if self.active_dims is None:
            return gradient
        full = gradient.new_zeros(*gradient.shape[:-1], X2.shape[-1])
        return full.index_copy(-1, self.active_dims, gradient)


def _compose(kernel: Kernel) -> KernelFunction:
    # Exact types only: a subclass may override forward.
    if type(kernel) is ScaleKernel and kernel.active_dims is None:
        base, outputscale = _compose(kernel.base_kernel), kernel.outputscale.detach().clone()
        if isinstance(base, StationaryKernel) and base.outputscale is None:
            lengthscale = 1 / base.inverse_lengthscale
            return StationaryKernel(base.nu, lengthscale, outputscale, base.active_dims)
        return CombinedKernel([base], product=False, outputscale=outputscale)
    if type(kernel) in (AdditiveKernel, ProductKernel) and kernel.active_dims is None:
        parts = [_compose(part) for part in kernel.kernels]
        return CombinedKernel(parts, product=type(kernel) is ProductKernel, outputscale=None)
    if type(kernel) in (RBFKernel, MaternKernel):
        nu = math.inf if type(kernel) is RBFKernel else float(kernel.nu)
        return StationaryKernel(nu, kernel.lengthscale.detach().clone(), None, kernel.active_dims)
    return GenericKernel(kernel)


def require_unbatched(kernel: Kernel) -> None:
    """Raises a ValueError if the kernel is a batch of kernels."""
    if len(kernel.batch_shape) > 0:
        raise ValueError(
            f"kernel must have no batch dimensions, got batch_shape {tuple(kernel.batch_shape)}"
        )


def freeze(kernel: Kernel, dtype: torch.dtype, device: torch.device) -> KernelFunction:
    """A frozen copy of a GPyTorch kernel; later changes of the kernel do not reach it.

    Args:
        kernel: Any GPyTorch kernel; its batch shape means many kernels at once.
        dtype: The dtype of the copy.
        device: The device of the copy.

    Returns:
        A `KernelFunction` with the values of ``kernel``.
    """
    copy = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
    return _compose(copy.eval())
