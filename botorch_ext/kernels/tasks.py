"""TaskKernel: a kernel on finitely many tasks, given by their numbers."""

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
from botorch_ext.kernels.checks import refuse_columns_as_batch


class TaskKernel(Kernel):
    """A kernel with a given covariance between T tasks: k(i, j) = covariance[i, j].

    Its inputs have one column with the task numbers, whole numbers from 0 to T - 1. It has nothing
    to learn; use GPyTorch's `IndexKernel` to learn the covariance.

    Example:
        >>> import torch
        >>> from botorch_ext.kernels import TaskKernel
        >>> kernel = TaskKernel([[1.0, 0.5], [0.5, 1.0]])
        >>> kernel(torch.tensor([[0.0], [1.0], [1.0]], dtype=torch.float64)).to_dense()
        tensor([[1.0000, 0.5000, 0.5000],
                [0.5000, 1.0000, 1.0000],
                [0.5000, 1.0000, 1.0000]], dtype=torch.float64)

    Args:
        covariance: The covariance matrix, ``T x T``, symmetric and positive semi-definite; leading
            dimensions are batch dimensions. It is copied, as float64 unless it is a floating-point
            tensor.
        active_dims: The column of the task as a sequence of one number, if the inputs have other
            columns as well.

    Raises:
        ValueError: If the covariance is not square, symmetric, positive semi-definite (up to
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
        """T, the number of tasks."""
        return self.covariance.shape[-1]

    @property
    def dtype(self) -> torch.dtype:
        return self.covariance.dtype

    @property
    def device(self) -> torch.device:
        return self.covariance.device

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        refuse_columns_as_batch(self, params)
        return task_values(self.covariance, x1, x2, diag)


def task_covariance(kernel: Kernel) -> Tensor | None:
    """The covariance between the tasks of a kernel.

    Returns:
        The covariance, ``*batch x T x T``, of a `TaskKernel` or of GPyTorch's `IndexKernel`; None
        for any other kernel.
    """
    if type(kernel) is TaskKernel:
        return kernel.covariance
    if isinstance(kernel, IndexKernel) and type(kernel).forward is IndexKernel.forward:
        return kernel._eval_covar_matrix()
    return None


def task_values(
    covariance: Tensor, X1: Tensor, X2: Tensor, diag: bool = False, check: bool = True
) -> Tensor:
    """The covariances between tasks given by their numbers.

    Args:
        covariance: The covariance between all tasks, ``*batch x T x T``.
        X1: Task numbers, ``... x n x 1``.
        X2: Task numbers, ``... x m x 1``.
        diag: Whether to return only the variances of the first tasks.
        check: Whether a number that is not a task is an error, which needs a synchronisation of the
            device. Without the check, entries of such numbers are NaN.

    Returns:
        The covariances, ``... x n x m``; for ``diag`` the variances, ``... x n``.

    Raises:
        ValueError: If a number is not a task, or there are several columns.
    """
    if not check:
        covariance = pad(
            covariance, (0, 1, 0, 1), value=math.nan
        )  # stands for numbers that are no task
    rows = _task_numbers(X1, covariance.shape[-1], check)
    if diag:
        batch = torch.broadcast_shapes(covariance.shape[:-2], rows.shape[:-1])
        variances = covariance.diagonal(dim1=-2, dim2=-1)
        return variances.expand(*batch, -1).gather(-1, rows.expand(*batch, -1))
    columns = _task_numbers(X2, covariance.shape[-1], check)
    if rows.ndim == columns.ndim == 1:
        # Columns first, so that whole rows are copied at once.
        return covariance.index_select(-1, columns).index_select(-2, rows)
    num_tasks = covariance.shape[-1]
    places = num_tasks * rows.unsqueeze(-1) + columns.unsqueeze(-2)
    batch = torch.broadcast_shapes(covariance.shape[:-2], places.shape[:-2])
    entries = covariance.flatten(-2).expand(*batch, num_tasks**2)
    places = places.expand(*batch, *places.shape[-2:])
    return entries.gather(-1, places.flatten(-2)).unflatten(-1, places.shape[-2:])


def _task_numbers(X: Tensor, num_tasks: int, check: bool) -> Tensor:
    """Task numbers as integers, ``... x n x 1`` to ``... x n``. A number that is not a task (-1
    would index the last task) is an error; without ``check`` it becomes the last task."""
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
    # The rounding error of a product with T columns.
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
