"""Frozen kernels that are constant between finitely many jumps, so that their gradient is zero
wherever it exists."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernels.frozen.base import KernelFunction, Pullback, columns, flat
from botorch_ext.kernels.nugget import nugget_values
from botorch_ext.kernels.tasks import task_values


class _ConstantKernel(KernelFunction):
    active_dims: Tensor | None
    has_closed_form_gradient = True

    @torch.no_grad()
    def value_and_pullback(self, X1: Tensor, X2: Tensor) -> tuple[Tensor, Pullback]:
        K = self.forward(X1, X2)
        return K, flat(K, X2)


class NuggetKernel(_ConstantKernel):
    """The frozen kernel variance 1{x = x'}.

    Args:
        variance: The variance, ``*batch``.
        active_dims: The columns that the kernel sees; None for all.
    """

    variance: Tensor

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


class TaskKernel(_ConstantKernel):
    """The frozen kernel covariance[i, j] of task numbers i and j in one column of the inputs.

    A number that is not a task is an error on the CPU. On other devices its values are NaN, since
    a check would synchronise the device at every evaluation.

    Args:
        covariance: The covariance between the tasks, ``*batch x T x T``.
        active_dims: The column that the kernel sees; None if there are no other columns.
    """

    covariance: Tensor

    def __init__(self, covariance: Tensor, active_dims: Tensor | None) -> None:
        super().__init__()
        self.register_buffer("covariance", covariance)
        self.register_buffer("active_dims", active_dims)
        self.batch_shape = covariance.shape[:-2]

    def forward(self, X1: Tensor, X2: Tensor) -> Tensor:
        X1, X2 = columns(X1, self.active_dims), columns(X2, self.active_dims)
        return task_values(self.covariance, X1, X2, check=X1.is_cpu)

    def diagonal(self, X: Tensor) -> Tensor:
        X = columns(X, self.active_dims)
        return task_values(self.covariance, X, X, diag=True, check=X.is_cpu)
