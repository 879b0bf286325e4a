"""Level of a tree of cells, the record of what was asked there, and how it is refined."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.cells import CellTree
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.replicates import RepeatedDesign, mean_from_counts


@dataclass(frozen=True, eq=False)
class Refinement:
    """How a level ended.

    Args:
        step: t, the step before which it was refined.
        width: The multiplier of the standard deviation.
        offset: What the bounds add besides.
        threshold: The largest lower bound, which the upper bounds of kept cells reach.
        kept: ``n`` bools, whether the children of each cell live on.
    """

    step: int
    width: float
    offset: float
    threshold: float
    kept: Tensor


@dataclass(eq=False)
class Level:
    """The cells that were active at one level, and what was seen of them.

    Args:
        tree: Where the cells are.
        model: The prior.
        depth: h, 0 for the whole box.
        codes: ``n`` ascending codes of the cells in the tree.
        slack: V_h, by how much f can move from the center of a cell to its points.
        first: The id of the first trial of the level; of a level that was refined at once, of the
            first trial after it.
        counts: ``n``, how often the center of each cell was evaluated and told.
        sums: ``n``, the sums of those observations.
        refinement: How it ended; None while it is the current one.
        next_look: How many evaluations it must have to be refined: 0, or more where it could have
            been but for too many cells.
    """

    tree: CellTree
    model: KernelGP
    depth: int
    codes: Tensor
    slack: float
    first: int
    counts: Tensor = field(init=False)
    sums: Tensor = field(init=False)
    refinement: Refinement | None = None
    next_look: int = 0

    def __post_init__(self) -> None:
        self.counts = torch.zeros_like(self.codes)
        self.sums = self.tree.box.like.new_zeros(len(self.codes))

    @property
    def num_cells(self) -> int:
        """n, the active cells."""
        return len(self.codes)

    @property
    def num_evaluations(self) -> int:
        """How many evaluations of the level were told."""
        return int(self.counts.sum())

    @property
    def half_diagonal(self) -> float:
        """r_h, in lengthscales."""
        return self.tree.half_diagonal(self.depth)

    @property
    def centers(self) -> Tensor:
        """The ``n x d`` centers of the cells, where f is evaluated."""
        return self.tree.centers(self.depth, self.codes)

    @property
    def lower(self) -> Tensor:
        """The ``n x d`` lower corners of the cells."""
        return self.tree.lower(self.depth, self.codes)

    @property
    def upper(self) -> Tensor:
        """The ``n x d`` upper corners of the cells."""
        return self.tree.upper(self.depth, self.codes)

    @property
    def mean(self) -> Tensor:
        """The posterior mean at the ``n`` centers given the observations of the level alone."""
        return mean_from_counts(self.model, self.centers, self.counts, self.sums)

    @property
    def std(self) -> Tensor:
        """The posterior standard deviation at the ``n`` centers given those observations."""
        return RepeatedDesign.from_counts(self.model, self.centers, self.counts).std

    @property
    def kept(self) -> Tensor | None:
        """``n`` bools, which cells' children live on; None while the level is the current one."""
        return None if self.refinement is None else self.refinement.kept

    @property
    def threshold(self) -> float | None:
        """The largest lower bound at the end; None while the level is the current one."""
        return None if self.refinement is None else self.refinement.threshold

    @property
    def width(self) -> float | None:
        """The width at the end; None while the level is the current one."""
        return None if self.refinement is None else self.refinement.width

    def summary(self) -> dict[str, Any]:
        """The level as plain numbers."""
        summary: dict[str, Any] = {
            "level": self.depth,
            "num_cells": self.num_cells,
            "volume": self.num_cells / 2**self.depth,
            "half_diagonal": self.half_diagonal,
            "slack": self.slack,
            "num_evaluations": self.num_evaluations,
            "refined": self.refinement is not None,
        }
        if self.refinement is not None:
            summary |= {
                "num_kept": int(self.refinement.kept.sum()),
                "step": self.refinement.step,
                "current_width": self.refinement.width,
                "offset": self.refinement.offset,
                "threshold": self.refinement.threshold,
            }
        return summary

    def observe(self, row: int, value: float) -> None:
        """Learns an observation at the center of a cell."""
        self.counts, self.sums = self.counts.clone(), self.sums.clone()
        self.counts[row] += 1
        self.sums[row] += value

    def put_off(self, num_evaluations: int) -> None:
        """Refines the level no sooner than when it has twice as many evaluations as now."""
        self.next_look = max(2 * num_evaluations, 1)

    def row_of(self, code: int) -> int | None:
        """The place of a code among those of the level; None where the cell is not active."""
        if not 0 <= code < 2**self.depth:
            return None
        row = int(torch.searchsorted(self.codes, code))
        return row if row < len(self.codes) and int(self.codes[row]) == code else None

    def join(self, code: int) -> int:
        """Makes a cell active that is not, and gives its place."""
        row = int(torch.searchsorted(self.codes, code))
        for name, value in (("codes", code), ("counts", 0), ("sums", 0.0)):
            old = getattr(self, name)
            setattr(self, name, torch.cat([old[:row], old.new_tensor([value]), old[row:]]))
        return row

    def children_of(self, kept: Tensor) -> Tensor:
        """The ascending codes of both children of each kept cell."""
        codes = 2 * self.codes[kept]
        return torch.stack([codes, codes + 1], dim=-1).flatten()
