"""Many runs of phased elimination, moved forward together."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.domains.ranks import reach
from botorch_ext.models.cholesky import least_pivot
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.replicated import PriorCovariances, ReplicatedPosterior, bytes_kept
from botorch_ext.search.intersected import HalfWidths, narrowest
from botorch_ext.search.planning import highest_by_rank
from botorch_ext.strategies.base import seed_of_step
from botorch_ext.strategies.replicas import Replicas, Results, Runs, widths_of
from botorch_ext.widths import Width
from botorch_ext.widths.composed import fixed_design_ridges


class RoundReplicas(Replicas):
    """Runs of `PhasedElimination` on a finite set, whose rounds have the same lengths.

    Args:
        runs: The runs.
        models: The model on the set, without data.
        width: The width of the observations of a round.
        lengths: The lengths of the rounds.
    """

    def __init__(
        self, runs: Runs, models: FiniteCandidates, width: Width, lengths: list[int]
    ) -> None:
        super().__init__(runs)
        self.width, ridges = width, fixed_design_ridges(width) or (1.0,)
        self._models, self._prior = models, PriorCovariances(models)
        self._at_ridges, self._num_ridges = models.at_ridges(ridges), len(ridges)
        # Whether the planned rows are those of all results.
        self._is_told_planner = not runs.has_delays and len(ridges) == 1
        ends = np.cumsum(lengths).tolist()
        self._lengths = dict(zip([0, *ends], lengths, strict=False))
        self._pivots = least_pivot(models.variance)
        #: A mask of the points that are not eliminated, ``R x N``.
        self.survivors = torch.ones_like(models.variance, dtype=torch.bool)
        self.survivors = self.survivors.repeat(runs.num_runs, 1)

    @property
    def num_bytes(self) -> int:
        variance = self._models.variance.expand(self.survivors.shape)
        num = 1 if self._is_told_planner else 1 + self._num_ridges
        return num * bytes_kept(variance, max(self._lengths.values()))

    def _decide(self, step: int) -> Tensor:
        if step in self._lengths:
            self._open(step)
        variance = self._planner.variance.masked_fill(~self.survivors, -torch.inf)
        return highest_by_rank(variance, self._ranks, self._errors)

    def tell(self, results: Results) -> None:
        if results.at_once and self._is_told_planner:
            self._told.add(results.index, results.values)
            self.newest = None
            return
        # Results of earlier rounds do not count in this one.
        results = results.since(self._first)
        self._told.add(results.index, results.values, results.added)

    def _open(self, step: int) -> None:
        """Starts a round, with the points that the last one leaves. The host waits once."""
        if step:
            self._close()
        self._first, length, R = step, self._lengths[step], self.runs.num_runs
        left = self.survivors.cpu()
        ranks = host.full(left.shape, -1)
        for r, seed in enumerate(self.runs.seeds):
            generator = torch.Generator().manual_seed(seed_of_step(seed, step))
            order = host.randperm(int(left[r].sum()), generator=generator)
            ranks[r, left[r]] = order
        self._ranks = ranks.to(self.survivors.device)
        self._errors = torch.where(self.survivors, self._pivots, 0).amax(dim=1, keepdim=True)
        self._planner = ReplicatedPosterior(self._models, self._prior, R, length)
        self._told = self._planner
        if not self._is_told_planner:
            self._told = ReplicatedPosterior(self._at_ridges, self._prior, R, length)

    def _close(self) -> None:
        """Drops every point whose upper bound is below the largest lower bound."""
        told, R = self._told, self.runs.num_runs
        widths, offsets = widths_of(told, self.width)
        half = HalfWidths(widths, offsets).of(told.std)
        mean, half = (values.view(R, self._num_ridges, -1) for values in (told.mean, half))
        mean, half = narrowest(mean, half, dim=1)
        lower = (mean - half).masked_fill(~self.survivors, -torch.inf)
        upper = (mean + half).masked_fill(~self.survivors, -torch.inf)
        kept = self.survivors & reach(upper, lower.amax(dim=1, keepdim=True))
        has_results = (told.counts_on_device > 0)[:, None]
        self.survivors = torch.where(has_results, kept, self.survivors)

    def _catch_up(self) -> None:
        if self.newest is not None:
            self._planner.add(self.newest)
        super()._catch_up()
