"""Tasks, finitely many by number, and kernels on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import IndexKernel, Kernel
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.domains import checked_tensor
from botorch_ext.domains.points import require_finite


class TaskKernel(Kernel):
    """A given covariance between T tasks: k(i, j) = covariance[i, j] for task numbers i and j.

    Its inputs have one column of whole numbers from 0 to T - 1. It has nothing to learn; GPyTorch's
    `IndexKernel` has.

    Args:
        covariance: ``T x T``, symmetric and positive semi-definite; leading dimensions are batch
            dimensions. float64 unless it is a floating-point tensor. It is copied.
        active_dims: The column of the task, where the inputs have others: a sequence of one.

    Raises:
        ValueError: A covariance that is not square, symmetric, positive semi-definite (up to
            rounding) or finite.
    """

    covariance: Tensor

    def __init__(
        self,
        covariance: Tensor | Sequence[Sequence[float]],
        active_dims: tuple[int, ...] | None = None,
    ) -> None:
        checked = _checked_covariance(covariance)
        super().__init__(batch_shape=checked.shape[:-2], active_dims=active_dims)
        self.register_buffer("covariance", checked)

    @property
    def num_tasks(self) -> int:
        """T."""
        return self.covariance.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        return self.covariance.dtype

    @property
    def device(self) -> torch.device:
        return self.covariance.device

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        if last_dim_is_batch:
            raise RuntimeError("TaskKernel does not take last_dim_is_batch")
        return task_values(self.covariance, x1, x2, diag)


def task_covariance(kernel: Kernel) -> Tensor | None:
    """``*batch x T x T`` of a `TaskKernel` or of GPyTorch's `IndexKernel`; None of any other."""
    if type(kernel) is TaskKernel:
        return kernel.covariance
    if isinstance(kernel, IndexKernel) and type(kernel).forward is IndexKernel.forward:
        return kernel._eval_covar_matrix()
    return None


def task_values(
    covariance: Tensor, X1: Tensor, X2: Tensor, diag: bool = False, check: bool = True
) -> Tensor:
    """Entries of ``*batch x T x T`` at ``... x n x 1`` and ``... x m x 1`` task numbers.

    Args:
        covariance: ``*batch x T x T``.
        X1: ``... x n x 1``.
        X2: ``... x m x 1``.
        diag: Whether only the variances of the first are wanted.
        check: Whether what is no task number is an error, for which the host must look at the
            numbers; without it, its entries are NaN.

    Returns:
        ``... x n x m``, or ``... x n`` for ``diag``.

    Raises:
        ValueError: What is no task number, or several columns.
    """
    if not check:
        covariance = pad(covariance, (0, 1, 0, 1), value=math.nan)  # the task of all that is none
    rows = _task_numbers(X1, covariance.shape[-1], check)
    if diag:
        batch = torch.broadcast_shapes(covariance.shape[:-2], rows.shape[:-1])
        variances = covariance.diagonal(dim1=-2, dim2=-1)
        return variances.expand(*batch, -1).gather(-1, rows.expand(*batch, -1))
    columns = _task_numbers(X2, covariance.shape[-1], check)
    if rows.ndim == columns.ndim == 1:
        # Columns first: then whole rows are copied at once.
        return covariance.index_select(-1, columns).index_select(-2, rows)
    num_tasks = covariance.shape[-1]
    places = num_tasks * rows.unsqueeze(-1) + columns.unsqueeze(-2)
    batch = torch.broadcast_shapes(covariance.shape[:-2], places.shape[:-2])
    entries = covariance.flatten(-2).expand(*batch, num_tasks**2)
    places = places.expand(*batch, *places.shape[-2:])
    return entries.gather(-1, places.flatten(-2)).unflatten(-1, places.shape[-2:])


def _task_numbers(X: Tensor, num_tasks: int, check: bool) -> Tensor:
    """``... x n x 1`` as ``... x n`` integers. What is no task number (-1 would index the last one)
    is an error, or without ``check`` the last task."""
    if X.shape[-1] != 1:
        raise ValueError(f"tasks must be one column of numbers, got shape {tuple(X.shape)}")
    given = X.detach()[..., 0]
    tasks = given.long()
    known = (tasks == given) & (tasks >= 0) & (tasks < num_tasks)
    if not check:
        return tasks.where(known, num_tasks - 1)
    if not bool(known.all()):
        wrong = given[~known][0].item()
        raise ValueError(f"tasks must be whole numbers from 0 to {num_tasks - 1}, got {wrong:g}")
    return tasks


@torch.no_grad()
def _checked_covariance(covariance: Any) -> Tensor:
    floating = isinstance(covariance, Tensor) and covariance.is_floating_point()
    dtype = covariance.dtype if floating else torch.float64
    device = covariance.device if isinstance(covariance, Tensor) else None
    C = checked_tensor(covariance, dtype, device, "covariance").detach().clone()
    if C.ndim < 2 or C.shape[-1] != C.shape[-2] or 0 in C.shape:
        raise ValueError(f"covariance must be square, T x T with T >= 1, got {tuple(C.shape)}")
    require_finite({"covariance": C})
    # What rounding does to a product of T columns.
    rounding = 100 * C.shape[-1] * torch.finfo(C.dtype).eps * float(C.abs().max())
    asymmetry = float((C - C.mT).abs().max())
    if asymmetry > rounding:
        raise ValueError(
            f"covariance must be symmetric, got entries that differ by {asymmetry:.3g}"
        )
    C = (C + C.mT) / 2
    least = float(torch.linalg.eigvalsh(C).min())
    if least < -rounding:
        raise ValueError(
            f"covariance must be positive semi-definite, got an eigenvalue of {least:.3g}"
        )
    return C
