"""Pending columns of a Cholesky factor: what keeps their targets at the posterior mean."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.growing_rows import GrowingTriangle


@dataclass(frozen=True, eq=False)
class PendingColumns:
    """S, the columns of L^-1 that belong to pending rows, grown as L grows: O(n p) for a new row.

    With z = L^-1 y the weights L^-T z of the pending rows are S'z. They vanish, and the posterior
    mean is that of the known rows, where z is orthogonal to S.

    Args:
        start: S is zero before this row of L.
        rows: The p pending rows, ascending.
        columns: ``*batch x p x n'``: S', from row ``start``.
        gram: ``*batch x p x p``: S'S, the precision of the pending targets given the known ones.
    """

    start: int
    rows: list[int]
    columns: Tensor
    gram: Tensor

    @classmethod
    def empty(cls, start: int, like: Tensor, batch: torch.Size) -> PendingColumns:
        """No columns yet, of a factor with ``start`` rows."""
        return cls(start, [], *(like.new_zeros(*batch, 0, 0) for _ in range(2)))

    @property
    def stop(self) -> int:
        """How many rows of L the columns reach down to."""
        return self.start + self.columns.shape[-1]

    def reaching_down(self, triangle: GrowingTriangle, pending: list[int]) -> PendingColumns:
        """The columns of all pending rows of L, down to its last row."""
        start, stop, end = self.start, self.stop, triangle.num_rows
        if stop == end:
            return self
        new = slice(stop, end)
        left, corner = triangle.block(new, slice(start, stop)), triangle.block(new, new)
        return self.grown(left, corner, [row for row in pending if row >= stop])

    def grown(self, left: Tensor, corner: Tensor, pending: list[int]) -> PendingColumns:
        """The columns of a factor with m more rows.

        Args:
            left: ``*batch x m x n'``: the new rows of L from column ``start``.
            corner: ``*batch x m x m``: their lower triangular end.
            pending: Which of the new rows pend.

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
        """The columns of some pending rows, added up by ``*batch x m`` weights: from row ``start``,
        ``*batch x n'``."""
        chosen = self.columns[..., [self.rows.index(row) for row in rows], :]
        return (weights.unsqueeze(-2) @ chosen).squeeze(-2)

    def without(self, rows: list[int]) -> PendingColumns | None:
        """The columns of the other pending rows; None where there are none."""
        kept = [i for i, row in enumerate(self.rows) if row not in rows]
        if not kept:
            return None
        left = [self.rows[i] for i in kept]
        gram = self.gram[..., kept, :][..., kept]
        columns = self.columns[..., kept, left[0] - self.start :]
        return PendingColumns(left[0], left, columns, gram)

    def select(self, index: int | list[int]) -> PendingColumns:
        """A copy of one member, or of several, of a batch with one dimension."""
        columns, gram = (members_of(a, index).clone() for a in (self.columns, self.gram))
        return PendingColumns(self.start, self.rows, columns, gram)

    def truncated(self, stop: int) -> PendingColumns:
        """The columns of the factor without its rows from ``stop`` on."""
        rows = [row for row in self.rows if row < stop]
        columns = self.columns[..., : len(rows), : stop - self.start]
        return PendingColumns(self.start, rows, columns, columns @ columns.mT)

    def correction(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """What takes z off the pending columns.

        Args:
            z: ``*batch' x n'``, from row ``start``; its batch may have more dimensions.

        Returns:
            The change of the pending targets, ``*batch' x p``, and the change of z.
        """
        weights = self.columns @ z.unsqueeze(-1)
        shift = -torch.cholesky_solve(weights, torch.linalg.cholesky(self.gram))
        return shift.squeeze(-1), (shift.mT @ self.columns).squeeze(-2)
