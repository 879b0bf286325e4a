"""Shard: the part of the candidates of a finite set whose posterior one process keeps."""

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

    What exchanges numbers is called by all processes of the group, in the same order.

    Args:
        start: The first row.
        stop: One more than the last row.
        group: The processes; None for all.
    """

    start: int
    stop: int
    group: dist.ProcessGroup | None

    @classmethod
    def of(cls, num_points: int, group: dist.ProcessGroup | None) -> Shard:
        """The shard of this process, as large as the others or larger by one."""
        rank, size = dist.get_rank(group), dist.get_world_size(group)
        return cls(rank * num_points // size, (rank + 1) * num_points // size, group)

    def place(self, rows: Any) -> Any:
        """Where rows of the whole set, one or a tensor, stand here; any place if they do not."""
        if isinstance(rows, Tensor):
            return rows.clamp(self.start, self.stop - 1) - self.start
        return min(max(rows, self.start), self.stop - 1) - self.start

    def columns(self, values: Tensor, rows: int | Tensor) -> Tensor:
        """Columns by their rows in the whole set.

        Args:
            values: ``... x N'``, those of this process.
            rows: One row of the whole set, or ``k``, the same in all processes.

        Returns:
            ``...``, or ``... x k``, the same in all processes.
        """
        return self.from_owners(values[..., self.place(rows)], rows)

    def from_owners(self, columns: Tensor, rows: int | Tensor) -> Tensor:
        """As `columns`, of columns of which those of other processes' rows are any numbers."""
        own = (rows >= self.start) & (rows < self.stop)
        if isinstance(own, Tensor):
            shared = torch.where(own, columns, 0)
        else:
            shared = columns.clone() if own else torch.zeros_like(columns)
        shared = shared.contiguous()
        dist.all_reduce(shared, group=self.group)  # sums, of which one term is not 0
        return shared

    def gathered(self, numbers: Tensor) -> Tensor:
        """The ``k`` numbers of each of P processes, ``P x k``."""
        all_numbers = [torch.empty_like(numbers) for _ in range(dist.get_world_size(self.group))]
        dist.all_gather(all_numbers, numbers, group=self.group)
        return torch.stack(all_numbers)
