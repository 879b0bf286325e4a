"""GroupAdditiveKernel: the mean of a kernel over groups of columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
from botorch_ext.kernels.checks import refuse_columns_as_batch, require_kernel


class GroupAdditiveKernel(Kernel):
    """The mean of a base kernel over G groups of columns:

        k(x, x') = 1/G sum_g base(x restricted to group g, x' restricted to group g).

    The division by G keeps k(x, x) equal to that of the base. Restriction to a group sets all other
    columns to zero. For a stationary base, which sees only x - x', this is the same as removing the
    other columns.

    Groups are stored as a fixed number of 0/1 masks, and unused masks are zero. So kernels with
    different decompositions of the same columns differ only in numbers and can run as one batch.
    Leading dimensions of ``masks`` and of the base are batch dimensions.

    Source: Ziomek, Adachi and Osborne 2024, section 7; the division is our own.

    Example:
        >>> from gpytorch.kernels import RBFKernel
        >>> from botorch_ext.kernels import AdditiveKernel
        >>> AdditiveKernel(RBFKernel(), [[0, 1], [2]], dim=3).groups
        ((0, 1), (2,))

    Args:
        base_kernel: A stationary GPyTorch kernel on all ``dim`` columns: RBF, Matern, periodic, or
            such kernels scaled, added or multiplied. It is not copied.
        groups: Lists of columns. They may overlap and need not cover all columns.
        dim: d, the number of columns of the inputs.

    Raises:
        ValueError: If there is no group, a group is empty or comes twice, a column comes twice in a
            group or does not exist, or the base is not stationary or does not take ``dim`` columns.
    """

    masks: Tensor

    def __init__(self, base_kernel: Kernel, groups: Iterable[Iterable[int]], dim: int) -> None:
        require_kernel(base_kernel, "base_kernel")
        dim = whole_number(dim, "dim", least=1)
        checked = _checked_groups(groups, dim)
        _require_stationary(base_kernel, dim)
        batch = base_kernel.batch_shape
        super().__init__(batch_shape=batch)
        self.base_kernel = base_kernel
        # Partitions of the columns and spanning forests have at most dim groups.
        masks = host.zeros(max(dim, len(checked)), dim)
        for row, group in zip(masks, checked, strict=False):
            row[list(group)] = 1
        masks = masks.to(dtype=base_kernel.dtype, device=base_kernel.device)
        # One set of masks for each kernel of the batch, so that indexing the batch indexes them.
        self.register_buffer("masks", masks.expand(*batch, *masks.shape).clone())

    @property
    def is_stationary(self) -> bool:
        return True

    @property
    def groups(self) -> Any:
        """The groups as tuples of columns; for a batch, one such tuple for each kernel."""
        return _groups_of(self.masks.tolist(), self.masks.ndim - 2)

    @property
    def weights(self) -> Tensor:
        """The weights of the groups, ``*batch x groups``: 1/G, and 0 for unused masks."""
        used = self.masks.amax(dim=-1)
        return used / used.sum(dim=-1, keepdim=True)

    def named_sub_kernels(self) -> Iterable[tuple[str, Kernel]]:
        # GPyTorch's method also names the kernels inside the base, and assigns to those names.
        yield "base_kernel", self.base_kernel

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any
    ) -> Tensor:
        refuse_columns_as_batch(self, params)
        weights = self.weights
        num_groups = int((weights > 0).sum(dim=-1).max())
        num_batch = max(x1.ndim, x2.ndim) - 2
        # Groups come before all batch dimensions, those of the inputs too: groups x *batch x 1 x d.
        masks = _to_front(self.masks, num_batch)[:num_groups].unsqueeze(-2)
        values = self.base_kernel(x1 * masks, x2 * masks, diag=diag, **params)
        values = values if diag else values.to_dense()
        weights = _to_front(weights.unsqueeze(-1), num_batch)[:num_groups]
        return (values * (weights if diag else weights.unsqueeze(-1))).sum(dim=0)


def _to_front(A: Tensor, num_batch: int) -> Tensor:
    """``*batch x groups x m`` to ``groups x 1 ... 1 x *batch x m``, with at least ``num_batch``
    dimensions between."""
    A = A.movedim(-2, 0)
    missing = max(num_batch - (A.ndim - 2), 0)
    return A[(slice(None),) + (None,) * missing]


def _groups_of(masks: list, num_batch: int) -> tuple:
    if num_batch:
        return tuple(_groups_of(each, num_batch - 1) for each in masks)
    groups = (tuple(j for j, member in enumerate(mask) if member) for mask in masks)
    return tuple(group for group in groups if group)


def _checked_groups(groups: Iterable[Iterable[int]], dim: int) -> list[tuple[int, ...]]:
    checked: list[tuple[int, ...]] = []
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Iterable):
            raise ValueError(f"groups must be lists of columns, got {group!r}")
        columns = tuple(sorted(whole_number(column, "column of a group") for column in group))
        if not columns:
            raise ValueError("groups must not be empty, got a group without columns")
        if columns[0] < 0 or columns[-1] >= dim:
            raise ValueError(f"groups must have columns from 0 to {dim - 1}, got {columns}")
        if len(set(columns)) < len(columns):
            raise ValueError(f"groups must have each column at most once, got {columns}")
        if columns in checked:
            raise ValueError(f"groups must be different from each other, got {columns} twice")
        checked.append(columns)
    if not checked:
        raise ValueError("groups must have at least one group, got none")
    return checked


@torch.no_grad()
def _require_stationary(kernel: Kernel, dim: int) -> None:
    """Raise a ValueError unless the kernel says that it is stationary and is so at a few points."""
    generator = torch.Generator().manual_seed(0)
    X, steps, shift = (host.rand(8, dim, generator=generator) for _ in range(3))
    like = {"dtype": kernel.dtype, "device": kernel.device}
    X1, X2 = X.to(**like), (X + steps * host.logspace(-3, 1, 8).unsqueeze(-1)).to(**like)
    move = shift[0].to(**like)
    try:
        here, there = (kernel(X1 + c, X2 + c).to_dense() for c in (0, move))
    except Exception as error:
        raise ValueError(
            f"base_kernel must take points of dimension {dim}, got {error!r}"
        ) from error
    scale = here.abs().max().clamp_min(torch.finfo(here.dtype).tiny)
    # GPyTorch's distances are accurate to half of the digits.
    unmoved = ((here - there).abs() / scale).max() < torch.finfo(here.dtype).eps ** 0.25
    if not (kernel.is_stationary and bool(unmoved)):
        raise ValueError(
            "base_kernel must be stationary, so that a column of zeros does not count, got a "
            f"{type(kernel).__name__} that is not"
        )
