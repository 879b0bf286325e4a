"""ActionContextKernel: a kernel of the action and a kernel of the context, combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.kernels.checks import refuse_columns_as_batch, require_kernel
from botorch_ext.kernels.columns import Selection, checked_columns, require_columns, selection
from botorch_ext.kernels.tasks import task_covariance, task_values

Combination = Literal["product", "sum"]


class ActionContextKernel(Kernel):
    """A kernel on joint inputs: a kernel of the action combined with a kernel of the context:

        product: k((s, z), (s', z')) = k_S(s, s') k_Z(z, z')
        sum:     k((s, z), (s', z')) = (k_S(s, s') + k_Z(z, z')) / 2

    The halved sum keeps k(x, x) <= 1 if both kernels do. A product models that similar actions have
    similar values in similar contexts; a sum models that the context shifts the values of all
    actions by the same amount. With a `TaskKernel` or GPyTorch's `IndexKernel` the contexts are
    tasks.

    Source: Krause and Ong 2011, section 5; the halving is our own.

    Example:
        >>> import torch
        >>> from gpytorch.kernels import MaternKernel
        >>> from botorch_ext.kernels import ActionContextKernel
        >>> kernel = ActionContextKernel(MaternKernel(), MaternKernel(), action_columns=2)
        >>> kernel(torch.rand(5, 3)).shape
        torch.Size([5, 5])

    Args:
        action_kernel: Any GPyTorch kernel; it is not copied. It sees only the action columns,
            numbered from 0; its own ``active_dims`` refer to these numbers.
        context_kernel: Any GPyTorch kernel, which sees only the context columns in the same way.
        action_columns: The columns of the action in the joint inputs, or a number n for the first
            n columns.
        context_columns: The columns of the context; a number n for the n columns after the action;
            or None for all columns after the action. A number or None needs the action columns to
            be the first ones.
        combination: "product" or "sum".

    Raises:
        ValueError: If columns overlap, repeat or are negative, or the combination is unknown.
    """

    def __init__(
        self,
        action_kernel: Kernel,
        context_kernel: Kernel,
        action_columns: int | Sequence[int],
        context_columns: int | Sequence[int] | None = None,
        combination: Combination = "product",
    ) -> None:
        if combination not in ("product", "sum"):
            raise ValueError(f'combination must be "product" or "sum", got {combination!r}')
        for name, kernel in (("action_kernel", action_kernel), ("context_kernel", context_kernel)):
            require_kernel(kernel, name)
        actions = _action_columns(action_columns)
        contexts = _context_columns(context_columns, actions)
        super().__init__()
        self.action_kernel = action_kernel
        self.context_kernel = context_kernel
        self.action_columns = actions
        self.context_columns = contexts
        self.combination = combination

    @property
    def selections(self) -> tuple[Selection, Selection]:
        """The selections of the action columns and of the context columns, for
        ``X[..., selection]``."""
        if self.context_columns is None:
            return selection(self.action_columns), slice(len(self.action_columns), None)
        return selection(self.action_columns), selection(self.context_columns)

    @property
    def least_columns(self) -> int:
        """The least number of columns of joint inputs."""
        if self.context_columns is None:
            return len(self.action_columns) + 1
        return max(*self.action_columns, *self.context_columns) + 1

    @property
    def is_stationary(self) -> bool:
        return self.action_kernel.is_stationary and self.context_kernel.is_stationary

    @property
    def dtype(self) -> torch.dtype:
        return self._typed_part.dtype

    @property
    def device(self) -> torch.device | None:
        return self._typed_part.device

    @property
    def _typed_part(self) -> Kernel:
        # A kernel without parameters, such as a `TaskKernel`, may not know its dtype.
        has_parameters = any(True for _ in self.action_kernel.parameters())
        return self.action_kernel if has_parameters else self.context_kernel

    def named_sub_kernels(self) -> Iterable[tuple[str, Kernel]]:
        # GPyTorch's method also names the kernels inside the parts, and assigns to those names.
        yield "action_kernel", self.action_kernel
        yield "context_kernel", self.context_kernel

    def __getitem__(self, index: Any) -> Kernel:
        new = super().__getitem__(index)
        if new is not self:
            new.batch_shape = torch.Size()  # and that of the parts
        return new

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        refuse_columns_as_batch(self, params)
        require_columns(x1, self.least_columns)
        if diag:
            # A batched IndexKernel computes no diagonal at points without a batch dimension.
            batch = torch.broadcast_shapes(x1.shape[:-2], self.batch_shape)
            x1, x2 = (x.expand(*batch, *x.shape[-2:]) for x in (x1, x2))
        parts = zip((self.action_kernel, self.context_kernel), self.selections, strict=True)
        action, context = (
            _values(kernel, x1[..., of], x2[..., of], diag, params) for kernel, of in parts
        )
        return action * context if self.combination == "product" else (action + context) / 2


def _values(kernel: Kernel, x1: Tensor, x2: Tensor, diag: bool, params: dict[str, Any]) -> Tensor:
    covariance = task_covariance(kernel)
    if covariance is not None:
        # GPyTorch's IndexKernel accepts any number as a task, and looks it up by a sparse matrix.
        x1, x2 = (x if kernel.active_dims is None else x[..., kernel.active_dims] for x in (x1, x2))
        return task_values(covariance, x1, x2, diag)
    values = kernel(x1, x2, diag=diag, **params)
    return values if diag else values.to_dense()


def _action_columns(columns: Any) -> tuple[int, ...]:
    if isinstance(columns, Iterable):
        return checked_columns(columns, "action_columns")
    return tuple(range(whole_number(columns, "action_columns", least=1)))


def _context_columns(columns: Any, actions: tuple[int, ...]) -> tuple[int, ...] | None:
    if isinstance(columns, Iterable):
        contexts = checked_columns(columns, "context_columns")
        both = sorted(set(actions) & set(contexts))
        if both:
            raise ValueError(f"context_columns must not overlap action_columns, got {both} in both")
        return contexts
    num = None if columns is None else whole_number(columns, "context_columns", least=1)
    first = len(actions)
    if sorted(actions) != list(range(first)):
        raise ValueError(
            "context_columns must be a list of columns if action_columns are not the first ones, "
            f"got {columns} with action_columns {actions}"
        )
    return None if num is None else tuple(range(first, first + num))
