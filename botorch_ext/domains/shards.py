"""Shard: the part of a finite set whose posterior one process keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from botorch_ext.state import Immutable


@dataclass(frozen=True)
class Shard(Immutable):
    """The candidates of one process: rows ``start`` to ``stop`` of the set.

    All processes of the group must call the methods that exchange numbers (`columns`,
    `from_owners`, `gathered`) in the same order.

    Args:
        start: The first row.
        stop: One more than the last row.
        group: The process group; None for all processes.
    """

    start: int
    stop: int
    group: dist.ProcessGroup | None

    @classmethod
    def of(cls, num_points: int, group: dist.ProcessGroup | None) -> Shard:
        """The shard of this process; the sizes of the shards differ by at most one.

        Args:
            num_points: The number of points of the whole set.
            group: The process group; None for all processes.

        Returns:
            A `Shard`.
        """
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        return cls(rank * num_points // size, (rank + 1) * num_points // size, group)

    def place(self, rows: Any) -> Any:
        """The positions of rows within this shard.

        Args:
            rows: One row of the whole set, or a tensor of rows.

        Returns:
            The position of each row here; for a row of another process, any valid position.
        """
        if isinstance(rows, Tensor):
            return rows.clamp(self.start, self.stop - 1) - self.start
        return min(max(rows, self.start), self.stop - 1) - self.start

    def columns(self, values: Tensor, rows: int | Tensor) -> Tensor:
        """Columns of values that the processes hold together, selected by rows of the whole set.

        Args:
            values: The values of this process, ``... x N'``.
            rows: One row of the whole set, or ``k`` rows; the same in all processes.

        Returns:
            The columns, ``...`` for one row or ``... x k``; the same in all processes.
        """
        return self.from_owners(values[..., self.place(rows)], rows)

    def from_owners(self, columns: Tensor, rows: int | Tensor) -> Tensor:
        """Columns that are the same in all processes, each from the process that owns its row.

        Args:
            columns: The columns here, ``...`` or ``... x k``; those whose rows other processes own
                may have any values.
            rows: One row of the whole set, or ``k`` rows; the same in all processes.

        Returns:
            The columns, ``...`` or ``... x k``; the same in all processes.
        """
        own = (rows >= self.start) & (rows < self.stop)
        if isinstance(own, Tensor):
            shared = torch.where(own, columns, 0)
        else:
            shared = columns.clone() if own else torch.zeros_like(columns)
        shared = shared.contiguous()
        dist.all_reduce(shared, group=self.group)  # sums with one term that is not 0
        return shared

    def gathered(self, numbers: Tensor) -> Tensor:
        """The numbers of all processes.

        Args:
            numbers: The numbers of this process, ``k``.

        Returns:
            The numbers of each of P processes, ``P x k``.
        """
        all_numbers = [torch.empty_like(numbers) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(all_numbers, numbers, group=self.group)
        return torch.stack(all_numbers)
