"""Complexities of an instance by their definitions, in plain loops over lists."""

import math
from collections.abc import Callable, Sequence
from itertools import product

HOLDER = {
    0.5: (2**0.5, 0.5),
    1.5: (3**0.5, 1.0),
    2.5: ((5 / 3) ** 0.5, 1.0),
    math.inf: (1.0, 1.0),
}
SLACK = 1e-9  # of comparisons, for ties on the grid


def centers(
    bounds: Sequence[Sequence[float]], shape: Sequence[int]
) -> list[tuple[tuple[int, ...], tuple[float, ...]]]:
    """The cells of a grid, as indices and centers."""
    cells = []
    for index in product(*(range(num) for num in shape)):
        x = [
            low + (high - low) * (i + 0.5) / num
            for i, num, low, high in zip(index, shape, *bounds, strict=True)
        ]
        cells.append((index, tuple(x)))
    return cells


class Instance:
    """f on the grid of a box, in lengthscales."""

    def __init__(
        self,
        function: Callable[[tuple[float, ...]], float],
        best: float,
        bounds: Sequence[Sequence[float]],
        shape: Sequence[int],
        lengthscales: Sequence[float],
    ) -> None:
        self.lower, self.upper = [
            [x / scale for x, scale in zip(corner, lengthscales, strict=True)] for corner in bounds
        ]
        self.steps = [
            (b - a) / num for a, b, num in zip(self.lower, self.upper, shape, strict=True)
        ]
        self.points = []
        for _, x in centers(bounds, shape):
            scaled = [each / scale for each, scale in zip(x, lengthscales, strict=True)]
            self.points.append((scaled, best - function(x)))

    def packing(self, points: list[list[float]], distance: float) -> int:
        taken: list[list[float]] = []
        for point in points:
            if all(math.dist(point, other) >= distance * (1 - SLACK) for other in taken):
                taken.append(point)
        volume = len(points) * math.prod(self.steps)
        return max(len(taken), math.floor(volume / distance ** len(self.steps) * (1 + SLACK)))

    def balls(self, low: float, high: float, radius: float) -> int:
        reach = radius * (1 - SLACK)
        outside = [x for x, gap in self.points if not low <= gap < high]
        inside = []
        for x, gap in self.points:
            to_faces = [
                min(a - b, c - a) for a, b, c in zip(x, self.lower, self.upper, strict=True)
            ]
            far = all(math.dist(x, other) >= reach for other in outside)
            if low <= gap < high and min(to_faces) >= reach and far:
                inside.append(x)
        return self.packing(inside, 2 * radius)

    def lower_terms(
        self, nu: float, gap: float, room: float, bump_norm: float, variance: float
    ) -> list[tuple[float, int]]:
        """w_k and m_k until no point falls short by as much."""
        terms = []
        largest = max(short for _, short in self.points)
        k = 0
        while 2**k * gap <= largest:
            radius = (3 * 2**k * gap * bump_norm / (math.sqrt(variance) * room)) ** (1 / nu)
            many = self.balls(2**k * gap, 2 ** (k + 1) * gap, radius) if radius <= 1 else 0
            terms.append((radius, many))
            k += 1
        return terms

    def tree(self) -> tuple[float, float, float]:
        """rho, v1 and v2 of the tree of cells, from 40 levels of it."""
        sides = [b - a for a, b in zip(self.lower, self.upper, strict=True)]
        rho = 0.5 ** (1 / len(sides))
        outer, inner = 0.0, math.inf
        for level in range(40):
            outer = max(outer, math.sqrt(sum(side**2 for side in sides)) / 2 / rho**level)
            inner = min(inner, min(sides) / 2 / rho**level)
            sides[sides.index(max(sides))] /= 2
        return rho, outer, inner

    def upper_terms(
        self, nu: float, gap: float, rkhs_bound: float, variance: float, num: int
    ) -> list[tuple[float, int, float, float]]:
        """(rho^(-k xi) D), m_k, the largest gap that counts and the distance for the first k."""
        rho, outer, inner = self.tree()
        constant, xi = HOLDER[nu]
        slope = rkhs_bound * constant * math.sqrt(variance)
        factor = 7 * slope * outer**xi * rho**-xi
        terms = []
        for k in range(num):
            level_gap = rho ** (-k * xi) * gap
            distance = 2 * inner * level_gap ** (1 / xi)
            members = [x for x, short in self.points if short <= factor * level_gap]
            many = max(self.packing(members, distance), 1)
            terms.append((level_gap, many, factor * level_gap, distance))
        return terms
