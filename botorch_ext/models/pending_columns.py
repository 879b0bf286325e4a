"""PendingColumns: the columns of L^-1 that keep targets of pending rows at the posterior mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.growing_rows import GrowingTriangle


@dataclass(frozen=True, eq=False)
class PendingColumns:
    """S, the columns of L^-1 of the pending rows, which grow with L in O(n p) for a new row.

    With z = L^-1 y the weights L^-T z of the pending rows are S'z. If z is orthogonal to S these
    weights vanish, and the posterior mean is that of the known rows.

    Args:
        start: The first row of L in which S is not zero.
        rows: The p pending rows, ascending.
        columns: S' from row ``start`` on, ``*batch x p x n'``.
        gram: S'S, ``*batch x p x p``, the precision of the pending targets given the known ones.
    """

    start: int
    rows: list[int]
    columns: Tensor
    gram: Tensor

    @classmethod
    def empty(cls, start: int, like: Tensor, batch: torch.Size) -> PendingColumns:
        """Make an empty set of columns."""
        return cls(start, [], *(like.new_zeros(*batch, 0, 0) for _ in range(2)))

    @property
    def stop(self) -> int:
        """The number of rows of L that the columns cover."""
        return self.start + self.columns.shape[-1]

    def reaching_down(self, triangle: GrowingTriangle, pending: list[int]) -> PendingColumns:
        """The columns of all pending rows of L, down to its last row.

        Returns:
            These columns, with those of further rows.
        """
        start, stop, end = self.start, self.stop, triangle.num_rows
        if stop == end:
            return self
        new = slice(stop, end)
        left, corner = triangle.block(new, slice(start, stop)), triangle.block(new, new)
        return self.grown(left, corner, [row for row in pending if row >= stop])

    def grown(self, left: Tensor, corner: Tensor, pending: list[int]) -> PendingColumns:
        """The columns of a factor with m more rows.

        Args:
            left: The new rows of L from column ``start`` on, without their last m columns,
                ``*batch x m x n'``.
            corner: Their last m columns, lower triangular, ``*batch x m x m``.
            pending: The new rows that are pending.

        Returns:
            The old columns, then those of ``pending``.
        """
        m, q = corner.shape[-1], len(pending)
        old = -(self.columns @ left.mT)  # *batch x p x m
        batch = torch.broadcast_shapes(old.shape[:-2], corner.shape[:-2])
        unit = corner.new_zeros(q, m)
        unit[range(q), [row - self.stop for row in pending]] = 1
        new = torch.cat([old.expand(*batch, -1, m), unit.expand(*batch, q, m)], dim=-2)
        if m == 1:
            new = new / corner
        else:
            new = torch.linalg.solve_triangular(corner.mT, new, upper=True, left=False)
        columns = pad(self.columns, (0, 0, 0, q)).expand(*batch, new.shape[-2], -1)
        gram = pad(self.gram, (0, q, 0, q)) + new @ new.mT
        rows = [*self.rows, *pending]
        return PendingColumns(self.start, rows, torch.cat([columns, new], dim=-1), gram)

    def combined(self, weights: Tensor, rows: list[int]) -> Tensor:
        """Weighted sums of the columns of some pending rows.

        Args:
            weights: The weights, ``*batch x m``.
            rows: The m pending rows.

        Returns:
            The sums from row ``start`` on, ``*batch x n'``.
        """
        chosen = self.columns[..., [self.rows.index(row) for row in rows], :]
        return (weights.unsqueeze(-2) @ chosen).squeeze(-2)

    def without(self, rows: list[int]) -> PendingColumns | None:
        """The columns of the other pending rows.

        Returns:
            The columns; None if no rows are left.
        """
        kept = [i for i, row in enumerate(self.rows) if row not in rows]
        if not kept:
            return None
        left = [self.rows[i] for i in kept]
        gram = self.gram[..., kept, :][..., kept]
        columns = self.columns[..., kept, left[0] - self.start :]
        return PendingColumns(left[0], left, columns, gram)

    def select(self, index: int | list[int]) -> PendingColumns:
        """A copy of some members of a batch with one dimension.

        Args:
            index: The position of one member, which loses the batch dimension, or positions.
        """
        columns, gram = (members_of(a, index).clone() for a in (self.columns, self.gram))
        return PendingColumns(self.start, self.rows, columns, gram)

    def truncated(self, stop: int) -> PendingColumns:
        """The columns of the factor without its rows from ``stop`` on."""
        rows = [row for row in self.rows if row < stop]
        columns = self.columns[..., : len(rows), : stop - self.start]
        return PendingColumns(self.start, rows, columns, columns @ columns.mT)

    def correction(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The correction that makes z orthogonal to the pending columns.

        Args:
            z: z from row ``start`` on, ``*batch' x n'``; it may have more batch dimensions.

        Returns:
            The change of the pending targets, ``*batch' x p``, and the change of z,
            ``*batch' x n'``.
        """
        weights = self.columns @ z.unsqueeze(-1)
        shift = -torch.cholesky_solve(weights, torch.linalg.cholesky(self.gram))
        return shift.squeeze(-1), (shift.mT @ self.columns).squeeze(-2)
