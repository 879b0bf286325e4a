"""InstanceGrid: the gaps of a function to its maximum on a grid of cells."""

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
# The number of points that are evaluated at once, to bound the memory of the problem.
_CHUNK = 2**14


class InstanceGrid:
    """The gaps f(x*) - f(x) at the centers of congruent cells of a box.

    Args:
        problem: The problem with the function f, on a box. If its maximum is not known, the largest
            value on the grid takes its place.
        lengthscales: One for each column; a column with an infinite lengthscale gets one cell.
        shape: The number of cells along each column; None for 160,000 cells in all.

    Raises:
        ValueError: If the domain is not a box, the shape is not one whole number for each column,
            or there are too many cells.
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
        """The largest gap f(x*) - f(x) on the grid, in units of f."""
        return float(self._gaps.max())

    def count_apart(self, high: float, distance: float) -> int:
        """The number of points with a small gap that are far from each other.

        Args:
            high: The largest gap of the points, in units of f.
            distance: The least distance between any two of them, in lengthscales.

        Returns:
            The size of a greedy packing, or a larger number that follows from the volume.
        """
        return self._count(self._gaps <= high, distance)

    def count_balls(self, low: float, high: float, radius: float) -> int:
        """The number of disjoint balls that lie in the box and in the set {low <= gap < high}.

        A ball lies in both if its center is at least ``radius`` away from the faces of the box and
        from all points of the grid outside the set.

        Args:
            low: The least gap, in units of f.
            high: The gap below which points are in the set, in units of f.
            radius: The radius of the balls, in lengthscales.

        Returns:
            The size of a greedy packing, or a larger number that follows from the volume.
        """
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
        """The size of a greedy packing of centers, or the volume of their cells over distance^d if
        that is larger: some shift of the lattice has so many points in the cells."""
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
        raise ValueError(f"shape must have at most {_MOST_POINTS} points, got {tuple(sizes)}")
    return tuple(sizes)
