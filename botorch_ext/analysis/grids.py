"""Grids of cells of a box: how far a function falls short of its maximum at their centers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.ndimage import distance_transform_edt

from botorch_ext.analysis.packing import ROUNDING, greedy_packing
from botorch_ext.checks import whole_number
from botorch_ext.domains import Box
from botorch_ext.problems.base import Problem

_DEFAULT_POINTS = 160_000
_MOST_POINTS = 2**24
# Evaluated at once, to bound the memory of a problem that compares each point with many.
_CHUNK = 2**14


class InstanceGrid:
    """Gaps f(x*) - f(x) at the centers of congruent cells.

    Args:
        problem: f, on a box. Where nobody knows its maximum, the largest value on the grid counts.
        lengthscales: One for each column; a column with an infinite one gets a single cell.
        shape: How many cells along each column; 160,000 in all if None.

    Raises:
        ValueError: A domain that is no box, a shape that is not one whole number for each column,
            or too many cells.
    """

    def __init__(
        self, problem: Problem, lengthscales: Sequence[float], shape: Sequence[int] | None = None
    ) -> None:
        box = problem.domain
        if not isinstance(box, Box):
            raise ValueError(f"problem must be on a Box, got {type(box).__name__}")
        box.require_plain("a grid", "domain of the problem")
        self.box = box
        self.shape: tuple[int, ...] = _checked_shape(shape, lengthscales)
        sides = (box.upper - box.lower).tolist()
        # The sides of a cell, in lengthscales.
        self._steps = np.array(
            [
                side / scale / num
                for side, scale, num in zip(sides, lengthscales, self.shape, strict=True)
            ]
        )
        self._gaps = self._evaluate(problem).reshape(self.shape)

    @property
    def coarsest(self) -> float:
        """The longest side of a cell, in lengthscales."""
        return float(self._steps.max())

    @property
    def shortest_side(self) -> float:
        """The shortest side of the box that counts, in lengthscales."""
        sides = self._steps * self.shape
        return float(sides[sides > 0].min())

    @property
    def largest_gap(self) -> float:
        """The largest f(x*) - f(x) on the grid."""
        return float(self._gaps.max())

    def count_apart(self, high: float, distance: float) -> int:
        """How many points with a gap of at most ``high`` are pairwise ``distance`` apart."""
        return self._count(self._gaps <= high, distance)

    def count_balls(self, low: float, high: float, radius: float) -> int:
        """How many disjoint balls lie in the box and in {low <= gap < high}: no point of the grid
        outside the set is nearer than ``radius`` to the center, nor is the boundary."""
        inside = (low <= self._gaps) & (self._gaps < high)
        reach = radius * (1 - ROUNDING)
        for axis, (step, num) in enumerate(zip(self._steps, self.shape, strict=True)):
            if step > 0:
                to_face = (np.minimum(np.arange(num), np.arange(num)[::-1]) + 0.5) * step
                line = [1] * len(self.shape)
                line[axis] = num
                inside = inside & (to_face.reshape(line) >= reach)
        in_set = (low <= self._gaps) & (self._gaps < high)
        if inside.any() and not in_set.all():
            sampling = np.where(self._steps > 0, self._steps, 1.0)
            inside = inside & (distance_transform_edt(in_set, sampling=sampling) >= reach)
        return self._count(inside, 2 * radius)

    def _count(self, members: np.ndarray, distance: float) -> int:
        """The greedy packing of the centers, or the volume of their cells over distance^d if that
        is more: some shift of the lattice has so many points in the cells."""
        cells = np.argwhere(members)
        if len(cells) == 0:
            return 0
        steps = self._steps[self._steps > 0]
        lattice = math.floor(len(cells) * (steps / distance).prod() * (1 + ROUNDING))
        if (steps >= distance).all():
            return lattice
        return max(lattice, len(greedy_packing(torch.from_numpy(cells * self._steps), distance)))

    def _evaluate(self, problem: Problem) -> np.ndarray:
        box = self.box
        places = [
            (torch.arange(num, dtype=box.dtype, device=box.device) + 0.5) / num
            for num in self.shape
        ]
        points = torch.cartesian_prod(*places).reshape(-1, box.dim)
        points = box.lower + (box.upper - box.lower) * points
        with torch.no_grad():
            values = torch.cat([problem(chunk) for chunk in points.split(_CHUNK)])
        values = values.to(torch.float64).cpu().numpy()
        if not np.isfinite(values).all():
            raise ValueError("problem must be finite on its box, got NaN or infinite values")
        best = problem.optimal_value
        return max(values.max(), -math.inf if best is None else best) - values


def _checked_shape(shape: Sequence[int] | None, lengthscales: Sequence[float]) -> tuple[int, ...]:
    counts = [scale < math.inf for scale in lengthscales]
    if shape is None:
        side = max(int(_DEFAULT_POINTS ** (1 / max(sum(counts), 1)) + 1e-6), 2)
        shape = [side] * len(counts)
    try:
        sizes = [whole_number(num, "shape", 1) for num in shape]
    except TypeError as error:
        raise ValueError(
            f"shape must be whole numbers, one for each column, got {shape}"
        ) from error
    if len(sizes) != len(counts):
        raise ValueError(
            f"shape must be {len(counts)} whole numbers, one for each column, got {tuple(sizes)}"
        )
    sizes = [num if counted else 1 for num, counted in zip(sizes, counts, strict=True)]
    if math.prod(sizes) > _MOST_POINTS:
        raise ValueError(f"shape must hold {_MOST_POINTS} points at most, got {tuple(sizes)}")
    return tuple(sizes)
