"""A level of a tree of cells, the observations there, and its refinement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.cells import CellTree
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.repeated_points import RepeatedDesign, mean_from_counts


@dataclass(frozen=True, eq=False)
class Refinement:
    """The end of a level.

    Args:
        step: t, the step before which the level was refined.
        width: The multiplier of the standard deviation.
        offset: The part of the half-width that is added to ``width`` times the standard deviation.
        threshold: The largest lower bound, which the upper bounds of kept cells reach.
        kept: A mask of the ``n`` cells whose children are explored.
    """

    step: int
    width: float
    offset: float
    threshold: float
    kept: Tensor


@dataclass(eq=False)
class Level:
    """The active cells of one level, and the observations at their centers.

    Args:
        tree: The tree of cells of the box.
        model: The prior.
        depth: h, the number of the level, 0 for the whole box.
        codes: The ``n`` codes of the cells in the tree, ascending.
        slack: V_h, by how much f can move from the center of a cell to its points.
        first: The id of the first trial of the level, or of the first trial after a level that was
            refined at once.
        counts: The number of observations at the center of each cell, ``n``.
        sums: The sums of these observations, ``n``.
        refinement: The end of the level; None while it is the current one.
        next_look: The number of evaluations before the level may be refined: 0, or more if it was
            not refined since there were too many cells.
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
        """n, the number of active cells."""
        return len(self.codes)

    @property
    def num_evaluations(self) -> int:
        """The number of evaluations of the level that were told."""
        return int(self.counts.sum())

    @property
    def half_diagonal(self) -> float:
        """r_h, the half-diagonal of a cell, in lengthscales."""
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
        """The posterior standard deviation at the ``n`` centers given the level's observations."""
        return RepeatedDesign.from_counts(self.model, self.centers, self.counts).std

    @property
    def kept(self) -> Tensor | None:
        """A mask of the ``n`` cells whose children are explored; None while the level is
        current."""
        return None if self.refinement is None else self.refinement.kept

    @property
    def threshold(self) -> float | None:
        """The largest lower bound at the end of the level; None while it is the current one."""
        return None if self.refinement is None else self.refinement.threshold

    @property
    def width(self) -> float | None:
        """The width at the end of the level; None while it is the current one."""
        return None if self.refinement is None else self.refinement.width

    def summary(self) -> dict[str, Any]:
        """The level as plain numbers, for the report.

        Returns:
            A dict with the number of the level, ``level``; the number of its active cells,
            ``num_cells``, and their share of the box, ``volume``; the ``half_diagonal`` and the
            ``slack`` of a cell; ``num_evaluations``; and whether the level is ``refined``. A
            refined level also has the number of cells that were kept, ``num_kept``; the ``step``
            before which this happened; and the ``current_width``, ``offset`` and ``threshold`` of
            the bounds.
        """
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
        """Adds an observation at the center of a cell."""
        self.counts, self.sums = self.counts.clone(), self.sums.clone()
        self.counts[row] += 1
        self.sums[row] += value

    def put_off(self, num_evaluations: int) -> None:
        """Puts the refinement off until the level has twice as many evaluations as now."""
        self.next_look = max(2 * num_evaluations, 1)

    def row_of(self, code: int) -> int | None:
        """The row of the cell with a code; None if the cell is not active."""
        if not 0 <= code < 2**self.depth:
            return None
        row = int(torch.searchsorted(self.codes, code))
        return row if row < len(self.codes) and int(self.codes[row]) == code else None

    def join(self, code: int) -> int:
        """Makes a cell active that is not, and returns its row."""
        row = int(torch.searchsorted(self.codes, code))
        for name, value in (("codes", code), ("counts", 0), ("sums", 0.0)):
            old = getattr(self, name)
            setattr(self, name, torch.cat([old[:row], old.new_tensor([value]), old[row:]]))
        return row

    def children_of(self, kept: Tensor) -> Tensor:
        """The codes of both children of each kept cell, ascending."""
        codes = 2 * self.codes[kept]
        return torch.stack([codes, codes + 1], dim=-1).flatten()
