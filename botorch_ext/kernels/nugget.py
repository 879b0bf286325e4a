"""Nugget: a kernel of what is different at every point."""

from __future__ import annotations

import math
from functools import reduce
from operator import and_
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import one_number


class NuggetKernel(Kernel):
    """variance 1{x = x'}: what a function adds at each point whatever it adds elsewhere. Unlike
    noise it is the same in every observation of a point.

    Points are the same where all their columns are equal to the last digit. It has nothing to
    learn.

    Args:
        variance: s^2, in squared units of f.
        active_dims: The columns it looks at; None for all.

    Raises:
        ValueError: A variance that is not positive and finite.
    """

    variance: Tensor

    def __init__(self, variance: float, active_dims: tuple[int, ...] | None = None) -> None:
        value = one_number(variance, "variance")
        if not 0 < value < math.inf:
            raise ValueError(f"variance must be positive and finite, got {value}")
        super().__init__(active_dims=active_dims)
        self.register_buffer("variance", torch.tensor(value, dtype=torch.float64))

    @property
    def dtype(self) -> torch.dtype:
        return self.variance.dtype

    @property
    def device(self) -> torch.device:
        return self.variance.device

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        if last_dim_is_batch:
            raise RuntimeError("NuggetKernel does not take last_dim_is_batch")
        if diag:
            return self.variance.unsqueeze(-1) * (x1 == x2).all(dim=-1)
        return nugget_values(self.variance, x1, x2)


def nugget_values(variance: Tensor, X1: Tensor, X2: Tensor) -> Tensor:
    """``*batch`` variances where rows of ``... x n x d`` and ``... x m x d`` are equal and 0
    elsewhere: ``... x n x m``."""
    columns = zip(X1.unsqueeze(-2).unbind(-1), X2.unsqueeze(-3).unbind(-1), strict=True)
    return variance[..., None, None] * reduce(and_, (a == b for a, b in columns))
