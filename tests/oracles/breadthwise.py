"""Breadthwise exploration written out (Shekhar and Javidi 2022): plain loops, dense solves.

Cells are lists of intervals that are halved one after another, and every posterior is a dense solve
with all evaluations of the level, repeated ones included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from tests.oracles.models import Candidate

Array = NDArray[np.float64]
# How far a comparison may be from a tie for rounding to decide it: of a posterior with condition
# number 1e5 about nine digits are right.
NEARLY = 1e-9


@dataclass(frozen=True)
class Cell:
    """A cell: per coordinate its interval and how often it was halved, and its place among the
    2^h cells of its level."""

    intervals: tuple[tuple[float, float], ...]
    halvings: tuple[int, ...]
    code: int = 0

    @property
    def center(self) -> list[float]:
        return [(low + high) / 2 for low, high in self.intervals]

    def children(self, root: Cell, units: Sequence[float]) -> tuple[Cell, Cell]:
        """The lower and the upper half across the side that is longest in these units."""
        sides = self.sides(root, units)
        across = sides.index(max(sides))
        low, high = self.intervals[across]
        middle = (low + high) / 2
        halvings = [*self.halvings]
        halvings[across] += 1
        halves = []
        for part, interval in enumerate(((low, middle), (middle, high))):
            intervals = [*self.intervals]
            intervals[across] = interval
            halves.append(Cell(tuple(intervals), tuple(halvings), 2 * self.code + part))
        return halves[0], halves[1]

    def sides(self, root: Cell, units: Sequence[float]) -> list[float]:
        return [
            (high - low) / unit / 2**times
            for (low, high), unit, times in zip(root.intervals, units, self.halvings, strict=True)
        ]

    def half_diagonal(self, root: Cell, units: Sequence[float]) -> float:
        return 0.5 * math.hypot(*self.sides(root, units))


@dataclass
class Level:
    """A level: its active cells in the order of their codes, and what was evaluated on it.

    ``evaluated`` has the row of the cell of every trial asked and not abandoned, ``values`` what
    was told. Before there are ``next_look`` of them the level is not refined.
    """

    cells: list[Cell]
    slack: float
    evaluated: dict[int, int] = field(default_factory=dict)
    values: dict[int, float] = field(default_factory=dict)
    next_look: int = 0


@dataclass(frozen=True)
class Judged:
    """What was compared when a level was refined: a cell is kept where ``margin``, which is
    mean + w s + V_h - threshold, is not negative."""

    width: float
    mean: Array
    std: Array
    threshold: float
    margin: Array


class Oracle:
    """The state of the algorithm, and what it does next.

    Args:
        kernel: k.
        ends: The ``d`` intervals of the box.
        holder: C_k, xi, and the ``d`` units in which distances are measured.
        noise_variance, horizon, rkhs_bound, noise_std, delta: lambda, T, B, sigma, delta.
        width: w, where it is a constant.
        max_cells: A level that would have more cells is not entered; the one before is looked at
            again when it has twice as many evaluations.
    """

    def __init__(
        self,
        kernel: Kernel,
        ends: Sequence[tuple[float, float]],
        holder: tuple[float, float, Sequence[float]],
        *,
        noise_variance: float,
        horizon: int,
        rkhs_bound: float,
        noise_std: float,
        delta: float,
        width: float | None = None,
        max_cells: float = math.inf,
    ) -> None:
        self.kernel, self.root = kernel, Cell(tuple(ends), (0,) * len(ends))
        self.constant, self.exponent, self.units = holder
        self.noise_variance, self.horizon = noise_variance, horizon
        self.rkhs_bound, self.noise_std, self.delta = rkhs_bound, noise_std, delta
        self.constant_width, self.max_cells = width, max_cells
        self.num_asked = 0
        self.level_of: dict[int, int] = {}
        self.levels: list[Level] = []
        self._open([self.root])

    def _open(self, cells: list[Cell]) -> None:
        r = cells[0].half_diagonal(self.root, self.units)
        slack = self.rkhs_bound * self.constant * r**self.exponent
        self.levels.append(Level(cells, slack))
        X = torch.tensor([cell.center for cell in cells], dtype=torch.float64)
        self._model = Candidate.at(X, self.kernel, self.noise_variance)

    @property
    def level(self) -> Level:
        return self.levels[-1]

    def width(self) -> float:
        """w at step t = (number of trials asked) + 1."""
        if self.constant_width is not None:
            return self.constant_width
        t = self.num_asked + 1
        share = self.delta / (len(self.level.cells) * math.pi**2 * t**2 / 3)
        noise = self.noise_std / math.sqrt(self.noise_variance)
        return self.rkhs_bound + noise * math.sqrt(2 * math.log(1 / share))

    def std(self) -> Array:
        """s at the active cells, given everything asked on the level and not abandoned."""
        return self._model.std(list(self.level.evaluated.values())).numpy()

    def mean(self) -> Array:
        """mu at the active cells, given what was told on the level."""
        rows = [self.level.evaluated[id] for id in self.level.values]
        return self._model.mean(rows, list(self.level.values.values())).numpy()

    @property
    def missing(self) -> list[int]:
        """The trials of the level that are neither told nor abandoned."""
        return [id for id in self.level.evaluated if id not in self.level.values]

    def refines(self, std: Array) -> bool | None:
        """w max s < V_h, where V_h > 1/sqrt(T); None where rounding decides."""
        if len(self.level.evaluated) < self.level.next_look:
            return False
        largest = self.width() * float(std.max())
        if abs(largest - self.level.slack) <= NEARLY:
            return None
        return largest < self.level.slack and self.level.slack > 1 / math.sqrt(self.horizon)

    def judge(self) -> Judged:
        """What is kept of the level if it is refined now."""
        width, mean, std = self.width(), self.mean(), self.std()
        threshold = (mean - width * std).max()
        margin = mean + width * std + self.level.slack - threshold
        return Judged(width, mean, std, threshold, margin)

    def is_crowded(self, kept: Array) -> bool:
        """Whether the children of these cells are too many."""
        return 2 * int(kept.sum()) > self.max_cells

    def put_off(self) -> None:
        """Does not refine a level whose children are too many."""
        self.level.next_look = max(2 * len(self.level.evaluated), 1)

    def refine(self, kept: Array) -> None:
        """Replaces the kept cells by their children, and forgets the data."""
        children = []
        for cell, keep in zip(self.level.cells, kept.tolist(), strict=True):
            if keep:
                children += cell.children(self.root, self.units)
        self._open(children)

    def ask(self, row: int) -> int:
        """Records that the cell of a row is evaluated next; gives the id of the trial."""
        id = self.num_asked
        self.level.evaluated[id] = row
        self.level_of[id] = len(self.levels) - 1
        self.num_asked += 1
        return id

    def tell(self, id: int, value: float) -> None:
        self.levels[self.level_of[id]].values[id] = value

    def abandon(self, id: int) -> None:
        del self.levels[self.level_of[id]].evaluated[id]
