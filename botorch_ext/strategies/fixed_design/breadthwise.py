"""Breadthwise exploration of a tree of ever smaller cells."""

from __future__ import annotations

from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Self

import torch
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.cells import CellTree
from botorch_ext.exceptions import CellLimitWarning, HorizonWarning
from botorch_ext.kernels.smoothness import HolderConstants, given_constants, holder_constants
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.repeated_points import RepeatedDesign
from botorch_ext.records import NonNegative, in_sign, plain
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Abandoned, Asked, Event, Told, Trial
from botorch_ext.strategies.fixed_design.horizon import (
    ObservedMeans,
    require_before_horizon,
    require_left,
    require_prior,
    waiting,
)
from botorch_ext.strategies.fixed_design.level import Level
from botorch_ext.strategies.fixed_design.refinement import Descent, Opening, RefinementRule
from botorch_ext.strategies.initial_checks import probes_of
from botorch_ext.widths import Width, as_width, check_rkhs_bound
from botorch_ext.widths.composed import fixed_design_ridges, require_plain


@dataclass(frozen=True)
class ExploredCell:
    """The record of a trial of `BreadthwiseExploration`.

    Args:
        level: h, the number of the level.
        cell: The code of the cell in its level.
        std: The standard deviation at its center.
        slack: V_h.
        opening: Which cells were kept before the trial, if the level is new.
    """

    level: int
    cell: int
    std: NonNegative
    slack: NonNegative
    opening: Opening | None = None


class BreadthwiseExploration(Strategy):
    """Explores a tree of cells, one level at a time.

    Within a level, the center with the largest standard deviation is evaluated, until all centers
    are known better than f can move within a cell. Then cells that cannot hold the maximum are
    dropped, and the others are split. Each level starts from the prior and is judged by its own
    observations alone, so widths for fixed designs apply. A level is refined when all its trials
    are told or abandoned; any number of trials may be pending within a level.

    If a value is corrected, the levels end where they ended before, but with the right values: the
    cells of a level are then those that the right values keep, and those that were asked.

    A cell of level h is kept if mean + width * std + V_h reaches the largest mean - width * std,
    where V_h = B C_k r_h^xi and r_h is the half-diagonal of a cell in lengthscales. Numbers that
    differ by 1e-9 (1e-5 in float32) of their size or less count as equal; of equal centers the
    first is evaluated.

    ``info`` of a trial has the keys

    - ``level``: h, the number of the level, 0 for the whole box;
    - ``cell``: the code of the cell in its level;
    - ``std``: the standard deviation at its center, given the trials of the level before it;
    - ``slack``: V_h, by how much f can move from the center to the points of the cell;
    - ``opening``: for the first trial of a level, which cells were kept before it.

    Source: Shekhar and Javidi 2022, algorithm 1, corrected. The threshold is the largest lower
    bound (definition 14 prints the smallest). V_h is added when cells are kept (otherwise the cell
    of the maximiser can be lost). Refining waits for width * std, not std, to fall below V_h. V_h
    has the constant B C_k in place of the printed B k(0). And V_h must exceed 1/sqrt(T) (if the
    error must, one evaluation with little noise ends all refining).

    Args:
        domain: The domain, a `Box` or its bounds.
        model: A `KernelGP` without data: kernel, noise variance and a prior mean that is constant.
        width: The confidence width, called with the design of one level, whose candidates are the
            centers of its active cells; or a number.
        horizon: T, the number of trials. Levels in whose cells f moves by at most 1/sqrt(T), in
            units of f, are not refined.
        rkhs_bound: B, at least the RKHS norm of f, in units of f.
        holder: C_k and xi in sqrt(k(x,x) + k(z,z) - 2 k(x,z)) <= C_k r^xi: `HolderConstants`, or a
            pair for r in the units of the box. None: derived from the kernel, which must then be
            made of RBF and Matern kernels.
        max_cells: The largest number of active cells. A level that would have more is not entered,
            with a warning; the level before it is evaluated until it has twice as many
            observations, by which more cells may be dropped, and so on. If a value is corrected and
            a level would then have more cells, those with the highest upper bounds are kept, with a
            warning.
        seed: Unused, since the method is deterministic.
        minimize: As for `Strategy`.

    Warns:
        HorizonWarning: Not even the whole box is refined, since B is small: the unit of f is too
            large.

    Raises:
        ValueError: If the domain is not a `Box`; if the horizon is less than 1; if ``holder`` is
            missing for a kernel of unknown smoothness; if a constant is impossible; or if the model
            has data, batch dimensions, transforms, a mean that is not constant, or another dtype or
            device than the domain.
    """

    record = ExploredCell
    refuses_attached = "a level is judged by the centers of its own cells alone"

    def __init__(
        self,
        domain: Box,
        model: KernelGP,
        width: Width | float,
        horizon: int,
        *,
        rkhs_bound: float,
        holder: HolderConstants | tuple[float, float] | None = None,
        max_cells: int = 2**13,
        seed: int = 0,
        minimize: bool | None = None,
    ) -> None:
        if not isinstance(domain, Box):
            raise ValueError(f"domain must be a Box, which can be split, got {domain!r}")
        super().__init__(domain, seed, minimize=minimize)
        self.horizon = whole_number(horizon, "horizon", least=1)
        max_cells = whole_number(max_cells, "max_cells", least=1)
        rkhs_bound = check_rkhs_bound(rkhs_bound)
        require_prior(model, domain)
        if not isinstance(model.mean, ConstantMean | ZeroMean | None):
            raise ValueError(
                "mean must be constant, since f - mean must move by at most V_h in a cell: "
                f"subtract any other mean from the observations, got {model.mean!r}"
            )
        if minimize:
            model = model.negated()
        self.holder = (
            holder_constants(model.kernel, domain.dim)
            if holder is None
            else given_constants(holder, domain.dim)
        )
        self._note_large_kernel(float(model.largest_variance(probes_of(domain, None, self.seed))))
        self.width = as_width(width)
        require_plain(self.width)
        if fixed_design_ridges(self.width) is not None:
            raise ValueError(f"width must have one ridge, got {width!r}")
        self.tree = CellTree(domain, self.holder.lengthscales)
        self._rule = RefinementRule(
            self.tree, model, self.width, self.horizon, rkhs_bound, self.holder, max_cells
        )
        root = self._rule.root()
        if self._rule.is_fine(root):
            self._note(self._rule.why_idle(root), HorizonWarning)
        self._raise_warnings()
        self.levels: list[Level] = [root]
        self._means = ObservedMeans(model)
        # The design of all trials of the current level that are not abandoned.
        self._design = RepeatedDesign(model, root.centers)
        # The row of the cell of each trial of the current level.
        self._rows: list[int] = []

    @property
    def model(self) -> KernelGP:
        """The prior, a `KernelGP` without data."""
        return self._means.model

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``horizon``: T;
            - ``width``: the width as it was given;
            - ``holder_constant``, ``holder_exponent``: C_k and xi;
            - ``levels``: a list with the `Level.summary` of each level.
        """
        return super().report() | {
            "horizon": self.horizon,
            "width": parts_of(self.width),
            "holder_constant": self.holder.constant,
            "holder_exponent": self.holder.exponent,
            "levels": in_sign([level.summary() for level in self.levels], self.history.sign),
        }

    # --- decisions --------------------------------------------------------------------------------

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        asked = len(self.history.trials)
        require_left(num_trials, asked, self.horizon)
        available = self._num_available(num_trials, asked + 1)
        if available < num_trials:
            raise waiting(num_trials, available, self.pending, "the level is refined")

    def _num_available(self, num_trials: int, t: int) -> int:
        """The number of the next ``num_trials`` trials that can be asked before a result is
        told."""
        pending = len(self.history.trials) - len(self.history.values) - len(self.history.abandoned)
        if pending and self._rule.is_known(self.levels[-1], self._design, t):
            return 0
        if num_trials == 1:
            return 1
        level, design, opening = self._at(t)
        level, design = copy(level), deepcopy(design)
        if opening is not None and opening.record.crowded is not None:
            level.put_off(design.num_observations)
        for ahead in range(1, num_trials):
            design.add(int(design.least_known()))
            if self._rule.is_known(level, design, t + ahead):
                return ahead
        return num_trials

    def _at(self, t: int) -> tuple[Level, RepeatedDesign, Descent | None]:
        """The level of step t, its design, and the refinement before it, which may have been
        refused since there are too many cells; None if no refinement was due."""
        if not self._rule.is_known(self.levels[-1], self._design, t):
            return self.levels[-1], self._design, None
        opening = self._rule.descend(self.levels[-1], self._design, t)
        return opening.level, opening.design, opening

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        level, design, opening = self._at(len(self.history.trials) + 1)
        if opening is not None:
            self._enter(opening)
        top = design.least_known()
        row, cell = torch.cat([top, level.codes[top]]).tolist()
        std = float(design.variance[row].clamp_min(0).sqrt())
        kept = None if opening is None else opening.record
        record = ExploredCell(level.depth, cell, std, level.slack, kept)
        return design.candidates[row].clone(), plain(record)

    # --- the next state ---------------------------------------------------------------------------

    def successor(self) -> Self:
        new = super().successor()
        new.levels[-1] = copy(new.levels[-1])
        return new

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial):
                row = self.levels[-1].row_of(trial.info["cell"])
                if row is None:
                    self._join(trial.info["cell"])
                else:
                    self._rows.append(row)
                    self._design.add(row)
            case Told(id, value):
                self.levels[-1].observe(self._rows[id - self.levels[-1].first], value)
            case Abandoned(id):
                self._design.remove(self._rows[id - self.levels[-1].first])

    def _enter(self, opening: Descent) -> None:
        left = [self.levels[-1], *opening.levels][: len(opening.refinements)]
        for level, refinement in zip(left, opening.refinements, strict=True):
            level.refinement = refinement
        if opening.levels:
            self.levels.extend(opening.levels)
            self._design, self._rows = opening.design, []
        if opening.record.crowded is not None:
            if opening.level.next_look == 0:
                self._note(self._rule.why_crowded(opening), CellLimitWarning)
            opening.level.put_off(opening.design.num_observations)
        if opening.is_cut:
            most = f"more than {self._rule.max_cells} cells of a level can hold the maximum"
            self._note(
                f"after a correction {most}, and it was left: those with the highest upper bounds "
                "are kept; a larger max_cells keeps all",
                CellLimitWarning,
            )

    def _join(self, cell: int) -> None:
        """Makes a cell active again, since a trial was asked there before its level was
        corrected."""
        row = self.levels[-1].join(cell)
        counts = self._design.counts
        counts = torch.cat([counts[:row], torch.ones_like(counts[:1]), counts[row:]])
        centers = self.levels[-1].centers
        self._design = RepeatedDesign.from_counts(self.model, centers, counts)
        self._rows = [*(own + (own >= row) for own in self._rows), row]

    def _recall(self, trial: Trial) -> ExploredCell:
        require_before_horizon(trial.id, self.history, self.horizon)
        record: ExploredCell = super()._recall(trial)
        if record.opening is not None:
            own = self.levels[-1], self._design, trial.id + 1
            self._enter(self._rule.descend(*own, record.opening, self._is_corrected))
        level = self.levels[-1]
        if record.level != level.depth:
            raise ValueError(
                f"level in the info of trial {trial.id} must be {level.depth}, got {record.level}"
            )
        if level.row_of(record.cell) is None and not self._is_corrected:
            raise ValueError(
                f"info of trial {trial.id} must have an active cell of level {level.depth}, got "
                f"cell {record.cell}"
            )
        return record

    def _mixture(self, context: Tensor | None) -> GPMixture:
        return self._means.mixture(*self._maximised())

    def evaluated_means(self) -> Tensor:
        """The posterior mean at the ``n`` evaluated points given the observations of all levels:
        ``n``."""
        return self._means.at(*self._maximised())
