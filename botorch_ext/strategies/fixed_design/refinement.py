"""When a level of cells is refined, and which of its cells are kept."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch

from botorch_ext.checks import short
from botorch_ext.domains.cells import MAX_LEVEL, CellTree
from botorch_ext.domains.ranks import among_highest, reach
from botorch_ext.kernels.smoothness import HolderConstants
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.repeated_points import RepeatedDesign
from botorch_ext.state import Immutable
from botorch_ext.strategies.fixed_design.level import Level, Refinement
from botorch_ext.widths import Width


@dataclass(frozen=True)
class Opening:
    """The record of a descent.

    Args:
        kept: For each level that was left, the rows of the cells that were kept; None for all.
        crowded: The number of cells that the next level would have, if the level is not refined
            since they are too many.
    """

    kept: tuple[tuple[int, ...] | None, ...]
    crowded: int | None = None


@dataclass(frozen=True, eq=False)
class Descent:
    """The refinements before one step.

    Args:
        refinements: The ends of the levels that were left.
        levels: The levels that were entered.
        level: The level of the step: the last of ``levels``, or the level from before.
        design: The evaluations of ``level``.
        record: The record, from which a replay takes the kept cells.
        is_cut: Whether cells were dropped that may hold the maximum, since a level would have too
            many cells after a correction.
    """

    refinements: list[Refinement]
    levels: list[Level]
    level: Level
    design: RepeatedDesign
    record: Opening
    is_cut: bool = False


@dataclass(frozen=True, eq=False)
class RefinementRule(Immutable):
    """Algorithm 1 of Shekhar and Javidi 2022, corrected, without its evaluations.

    Args:
        tree: The tree of cells of the box.
        model: The prior.
        width: The confidence width.
        horizon: T.
        rkhs_bound: B.
        holder: The Hoelder constants C_k and xi.
        max_cells: The largest number of cells of a level; a level whose kept cells have more
            children is not refined.
    """

    tree: CellTree
    model: KernelGP
    width: Width
    horizon: int
    rkhs_bound: float
    holder: HolderConstants
    max_cells: int

    def root(self) -> Level:
        """The level of the whole box."""
        return self._level(0, self.tree.box.like.new_zeros(1, dtype=torch.long), 0)

    def is_fine(self, level: Level) -> bool:
        """Whether f moves by at most 1/sqrt(T) within a cell."""
        return level.slack <= 1 / math.sqrt(self.horizon)

    def why_crowded(self, descent: Descent) -> str:
        """Why the level of a crowded descent is not refined."""
        limit = (
            f"they would have {descent.record.crowded} children, and max_cells is {self.max_cells}"
        )
        if descent.level.depth == MAX_LEVEL:
            limit = f"there are {MAX_LEVEL} levels at most"
        return (
            f"the cells of level {descent.level.depth} are known and not split: {limit}; they are "
            "evaluated further, and looked at again when they have been as often again"
        )

    def why_idle(self, root: Level) -> str:
        """The warning if the root `is_fine`, so that it is never refined."""
        return (
            f"only the center of the domain is evaluated: f moves by at most {root.slack:.3g} from "
            f"it for an rkhs_bound of {self.rkhs_bound:g}, and that is not above 1/sqrt(horizon) = "
            f"{1 / math.sqrt(self.horizon):.3g}; give f in smaller units, or a longer horizon"
        )

    def is_known(self, level: Level, design: RepeatedDesign, t: int) -> bool:
        """Whether a level is refined before step t, since all its centers are known better than f
        can move within a cell. Cells in which f moves by at most 1/sqrt(T) are never refined.

        Algorithm 1 prints 1/sqrt(T) < U < V_h for the error U, which implies V_h > 1/sqrt(T). If U
        itself had to exceed 1/sqrt(T), all exploration would end once one evaluation has a smaller
        error, for instance at the root if the noise is small."""
        if self.is_fine(level) or design.num_observations < level.next_look:
            return False
        error = float(self.width(t, design)) * float(design.variance.max().clamp_min(0).sqrt())
        error += float(self.width.offset(t, design))
        return error < level.slack

    def descend(
        self,
        level: Level,
        design: RepeatedDesign,
        t: int,
        record: Opening | None = None,
        is_corrected: bool = False,
    ) -> Descent:
        """Refines levels while `is_known` holds and the cells are not too many.

        Args:
            level: The current level, with no trial pending.
            design: All evaluations of the level.
            t: The step, from 1.
            record: The record of the descent, if it is replayed.
            is_corrected: Whether it is replayed with corrected values: then as many levels are
                left, but which cells are kept is decided again.

        Raises:
            ValueError: If the record has cells that are not there.
        """
        levels, refinements, crowded, is_cut = [], [], None, False
        kept: list[tuple[int, ...] | None] = []
        recorded = () if record is None else record.kept
        while self.is_known(level, design, t) if record is None else len(kept) < len(recorded):
            refinement = self._refine(level, design, t)
            if record is not None and not is_corrected:
                refinement = _keeping(refinement, recorded[len(kept)])
            children = 2 * int(refinement.kept.sum())
            if is_corrected and children > self.max_cells:
                refinement, is_cut = self._most_hopeful(refinement, level, design), True
            elif record is None and self._are_too_many(children, level):
                crowded = children
                break
            rows = refinement.kept.nonzero().squeeze(-1)
            kept.append(None if len(rows) == level.num_cells else tuple(rows.tolist()))
            level = self._level(level.depth + 1, level.children_of(refinement.kept), t - 1)
            design = RepeatedDesign(self.model, level.centers)
            refinements.append(refinement)
            levels.append(level)
        if record is not None and not is_corrected:
            crowded = record.crowded
        elif record is not None and self.is_known(level, design, t):
            children = 2 * int(self._refine(level, design, t).kept.sum())
            crowded = children if self._are_too_many(children, level) else None
        opening = Opening(tuple(kept), crowded)
        return Descent(refinements, levels, level, design, opening, is_cut)

    def _most_hopeful(
        self, refinement: Refinement, level: Level, design: RepeatedDesign
    ) -> Refinement:
        """The refinement that keeps the cells with the highest upper bounds, as many as allowed."""
        upper = level.mean + refinement.width * design.std
        return replace(refinement, kept=among_highest(upper, self.max_cells // 2))

    def _are_too_many(self, children: int, level: Level) -> bool:
        """Whether a level is not refined since its kept cells have too many children."""
        return children > self.max_cells or level.depth == MAX_LEVEL

    def _level(self, depth: int, codes: torch.Tensor, first: int) -> Level:
        radius = self.tree.half_diagonal(depth)
        slack = self.rkhs_bound * self.holder.constant * radius**self.holder.exponent
        return Level(self.tree, self.model, depth, codes, slack, first)

    def _refine(self, level: Level, design: RepeatedDesign, t: int) -> Refinement:
        """The refinement of a level, by its confidence bounds."""
        w, offset = float(self.width(t, design)), float(self.width.offset(t, design))
        mean, half = level.mean, w * design.std + offset
        threshold = (mean - half).max()
        kept = reach(mean + half + level.slack, threshold)
        return Refinement(t, w, offset, float(threshold), kept)


def _keeping(refinement: Refinement, rows: tuple[int, ...] | None) -> Refinement:
    """The refinement that keeps other cells, or all if ``rows`` is None; checks the rows."""
    kept = torch.ones_like(refinement.kept)
    if rows is not None:
        if not rows or max(rows) >= len(kept):
            raise ValueError(f"kept must be rows of {len(kept)} cells, got {short(rows)}")
        kept[:] = False
        kept[list(rows)] = True
    return replace(refinement, kept=kept)
