"""NuggetKernel: a kernel of independent values at all points."""

from __future__ import annotations

import math
from functools import reduce
from operator import and_
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import host
from botorch_ext.kernels.checks import refuse_columns_as_batch


class NuggetKernel(Kernel):
    """A kernel of independent values at all points: k(x, x') = variance 1{x = x'}.

    It models a part of the function that differs from point to point without any structure. Unlike
    noise, this part is the same in every observation of a point. Two points are the same if all
    their columns are exactly equal. The kernel has nothing to learn.

    Example:
        >>> import torch
        >>> from botorch_ext.kernels import NuggetKernel
        >>> X = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        >>> NuggetKernel(0.25)(X).to_dense()
        tensor([[0.2500, 0.0000],
                [0.0000, 0.2500]], dtype=torch.float64)

    Args:
        variance: s^2, in squared units of f.
        active_dims: The columns that the kernel compares; None for all columns.

    Raises:
        ValueError: If the variance is not positive and finite.
    """

    variance: Tensor

    def __init__(self, variance: float, active_dims: tuple[int, ...] | None = None) -> None:
        value = one_number(variance, "variance")
        if not 0 < value < math.inf:
            raise ValueError(f"variance must be positive and finite, got {value}")
        super().__init__(active_dims=active_dims)
        self.register_buffer("variance", host.tensor(value, dtype=torch.float64))

    @property
    def dtype(self) -> torch.dtype:
        return self.variance.dtype

    @property
    def device(self) -> torch.device:
        return self.variance.device

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        refuse_columns_as_batch(self, params)
        if diag:
            return self.variance.unsqueeze(-1) * (x1 == x2).all(dim=-1)
        return nugget_values(self.variance, x1, x2)


def nugget_values(variance: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
    """The kernel matrix of a nugget.

    Args:
        variance: Variances, ``*batch``.
        X1: Points, ``... x n x d``.
        X2: Points, ``... x m x d``.

    Returns:
        The variance where two points are equal and 0 elsewhere, ``... x n x m``.
    """
    columns = zip(X1.unsqueeze(-2).unbind(-1), X2.unsqueeze(-3).unbind(-1), strict=True)
    return variance[..., None, None] * reduce(and_, (a == b for a, b in columns))
