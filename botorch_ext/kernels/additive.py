"""Additive kernels: sums of one over groups of columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.kernels.checks import require_kernel


class GroupAdditiveKernel(Kernel):
    """A sum over groups of columns, divided by their number G, so that k(x, x) is that of its base:

        k(x, x') = 1/G sum_g base(x restricted to group g, x' restricted to group g).

    Restricted to a group means zero in all other columns. To a stationary base, which sees only
    x - x', that is the same as not having them.

    Groups are kept as 0/1 masks of a fixed number, unused ones zero: kernels with different
    decompositions of the same columns differ in numbers only and can run as one batch. Leading
    dimensions of ``masks`` and of the base are batch dimensions.

    Source: Ziomek, Adachi and Osborne 2024, section 7; the division is ours.

    Args:
        base_kernel: A stationary GPyTorch kernel on all ``dim`` columns: RBF, Matern, periodic, or
            such kernels scaled, added or multiplied. It is not copied.
        groups: Lists of columns. They may overlap, and need not cover all columns.
        dim: d, how many columns the inputs have.

    Raises:
        ValueError: No group, an empty group, the same group twice, a column twice in a group, a
            column that does not exist, or a base that is not stationary or does not take ``dim``
            columns.
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
        # Partitions of the columns and spanning forests of them have at most dim groups.
        masks = torch.zeros(max(dim, len(checked)), dim)
        for row, group in zip(masks, checked, strict=False):
            row[list(group)] = 1
        masks = masks.to(dtype=base_kernel.dtype, device=base_kernel.device)
        # One for each kernel of the batch, so that indexing the batch indexes them.
        self.register_buffer("masks", masks.expand(*batch, *masks.shape).clone())

    @property
    def is_stationary(self) -> bool:
        return True

    @property
    def groups(self) -> Any:
        """Tuples of columns; of a batch, such a tuple for each kernel."""
        return _groups_of(self.masks.tolist(), self.masks.ndim - 2)

    @property
    def weights(self) -> Tensor:
        """``*batch x groups``: 1/G for each group, 0 where there is none."""
        used = self.masks.amax(dim=-1)
        return used / used.sum(dim=-1, keepdim=True)

    def named_sub_kernels(self) -> Iterable[tuple[str, Kernel]]:
        # GPyTorch's also names the kernels inside the base, and assigns to those names.
        yield "base_kernel", self.base_kernel

    def forward(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        if last_dim_is_batch:
            raise RuntimeError("GroupAdditiveKernel does not take last_dim_is_batch")
        weights = self.weights
        num_groups = int((weights > 0).sum(dim=-1).max())
        num_batch = max(x1.ndim, x2.ndim) - 2
        # Groups in front of all batch dimensions, of the inputs too: groups x *batch x 1 x d.
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
            raise ValueError("groups must not be empty, got one without columns")
        if columns[0] < 0 or columns[-1] >= dim:
            raise ValueError(f"groups must hold columns from 0 to {dim - 1}, got {columns}")
        if len(set(columns)) < len(columns):
            raise ValueError(f"groups must hold each column at most once, got {columns}")
        if columns in checked:
            raise ValueError(f"groups must differ, got {columns} twice")
        checked.append(columns)
    if not checked:
        raise ValueError("groups must hold at least one group, got none")
    return checked


@torch.no_grad()
def _require_stationary(kernel: Kernel, dim: int) -> None:
    """By what the kernel says of itself, and by what it does at a few points."""
    generator = torch.Generator().manual_seed(0)
    X, steps, shift = (torch.rand(8, dim, generator=generator) for _ in range(3))
    like = {"dtype": kernel.dtype, "device": kernel.device}
    X1, X2 = X.to(**like), (X + steps * torch.logspace(-3, 1, 8).unsqueeze(-1)).to(**like)
    move = shift[0].to(**like)
    try:
        here, there = (kernel(X1 + c, X2 + c).to_dense() for c in (0, move))
    except Exception as error:
        raise ValueError(
            f"base_kernel must take points of dimension {dim}, got {error!r}"
        ) from error
    scale = here.abs().max().clamp_min(torch.finfo(here.dtype).tiny)
    # GPyTorch's distances are good to half of the digits.
    unmoved = ((here - there).abs() / scale).max() < torch.finfo(here.dtype).eps ** 0.25
    if not (kernel.is_stationary and bool(unmoved)):
        raise ValueError(
            "base_kernel must be stationary, so that a column of zeros is none, got a "
            f"{type(kernel).__name__} that is not"
        )
