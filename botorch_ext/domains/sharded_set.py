"""ShardedSet: a finite set whose posterior is divided among processes, each with a GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from botorch_ext.domains.finite_set import FiniteSet
from botorch_ext.domains.shards import Shard


class ShardedSet(FiniteSet):
    """A `FiniteSet` whose posterior is divided among processes, for candidates whose posterior is
    too large, or too slow, for one GPU.

    Each process of a group keeps the posterior of a part of the candidates, so N candidates and n
    observations take ``N n / P`` numbers on each of P processes. All processes run the same
    program: they make the same strategy and call its methods (ask, tell, ...) in the same order.
    All of them receive the same trials, which are those that a single process would receive.

    Three kinds of methods take it: methods of `BoundsStrategy` that choose the highest bound
    (GP-UCB, GP-BUCB, EC-GP-UCB, HE-GP-UCB, ...) without contexts and without changing action sets;
    random search; and `plan`.

    Example:
        In a script that ``torchrun --nproc-per-node 4 script.py`` starts once for each GPU::

            torch.distributed.init_process_group("nccl")
            device = f"cuda:{torch.distributed.get_rank()}"
            candidates = bx.ShardedSet(points, device=device)

    Args:
        points: The whole set, ``N x d``, the same in every process.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device of this process.
        group: The process group, after ``torch.distributed.init_process_group``; None for all
            processes.

    Raises:
        ValueError: As for `FiniteSet`; or if there are fewer points than processes, or no process
            group that holds this process.
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
            raise ValueError(
                "group must be a process group, but torch.distributed is not initialised: call "
                "torch.distributed.init_process_group first"
            )
        size = dist.get_world_size(group)
        if size < 0:
            raise ValueError("group must contain this process, got one that does not")
        if self.num_points < size:
            raise ValueError(
                "points must have at least one point for each process, got "
                f"{self.num_points} points for {size} processes"
            )
        object.__setattr__(self, "group", group)
        object.__setattr__(self, "shard", Shard.of(self.num_points, group))

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> ShardedSet:
        """The same points in another dtype or on another device.

        Args:
            dtype: The dtype of the result; None keeps it.
            device: The device of the result; None keeps it.

        Returns:
            A new `ShardedSet` of the same group.
        """
        return ShardedSet(self.points, dtype, device, self.group)
