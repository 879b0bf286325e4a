"""ShardedSet: a finite set whose posterior is divided among processes, each with a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from botorch_ext.domains.finite_set import FiniteSet
from botorch_ext.domains.shards import Shard


class ShardedSet(FiniteSet):
    """A `FiniteSet` for candidates whose posterior is too large, or too slow, for one GPU.

    Each process of a group keeps the posterior of a part of the candidates, so N candidates and n
    observations take ``N n / P`` numbers on each of P. All processes run the same program: they
    make the same strategy, ask, tell and read it in the same order, and all are given the same
    trials, those that one process alone would be given.

    For methods of `BoundsStrategy` that choose the highest bound (GP-UCB, GP-BUCB, EC-GP-UCB,
    HE-GP-UCB, ...), without contexts and changing action sets, for random search, and for `plan`.

    Args:
        points: ``N x d``, the whole set in every process.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device of this process.
        group: The processes, after ``torch.distributed.init_process_group``; None for all.

    Raises:
        ValueError: As for `FiniteSet`, fewer points than processes, or no process group that
            holds this process.
    """

    group: dist.ProcessGroup | None

    def __init__(
        self,
        points: Tensor | Sequence[Sequence[float]],
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__(points, dtype, device)
        if not dist.is_available() or not dist.is_initialized():
            raise ValueError("group must be one of torch.distributed, which is not initialised")
        size = dist.get_world_size(group)
        if size < 0:
            raise ValueError("group must hold this process")
        if self.num_points < size:
            raise ValueError(
                f"points must be at least one for each process, got {self.num_points} for {size}"
            )
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "shard", Shard.of(self.num_points, group))

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> ShardedSet:
        """The same points in another dtype or on another device."""
        return ShardedSet(self.points, dtype, device, self.group)
