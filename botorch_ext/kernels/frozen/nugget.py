"""NuggetKernel: the frozen kernel of independent values at all points."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback, columns, flat
from botorch_ext.kernels.nugget import nugget_values


class NuggetKernel(KernelFunction):
    """The frozen kernel variance 1{x = x'}, whose gradient is zero wherever it exists.

    Args:
        variance: The variance, ``*batch``.
        active_dims: The columns that the kernel sees; None for all.
    """

    variance: Tensor
    active_dims: Tensor | None
    has_closed_form_gradient = True

    def __init__(self, variance: Tensor, active_dims: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("variance", variance)
        self.register_buffer("active_dims", active_dims)
        self.batch_shape = variance.shape

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        X1, X2 = columns(X1, self.active_dims), columns(X2, self.active_dims)
        return nugget_values(self.variance, X1, X2)

    def diagonal(self, X: Tensor) -> Tensor:
        return self.variance.unsqueeze(-1)

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        K = self.forward(X1, X2)
        return K, flat(K, X2)
