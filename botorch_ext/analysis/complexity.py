"""The lower and the upper complexity of an instance, computed on a grid.

Both are sums over gaps that grow by a constant factor. Each term counts the balls that fit where
the function falls short of its maximum by about the gap, and divides the count by the gap. All
distances are in lengthscales. Source: Shekhar and Javidi 2022, definitions 10 and 11.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpytorch.kernels import Kernel

from botorch_ext.analysis.grids import ROUNDING, InstanceGrid
from botorch_ext.checks import one_number
from botorch_ext.domains.cells import CellTree
from botorch_ext.kernels.rkhs_norms import RadialKernel, bump_norm, radial_kernel
from botorch_ext.kernels.smoothness import HolderConstants, holder_constants
from botorch_ext.problems.base import Problem
from botorch_ext.widths.base import check_rkhs_bound, require


@dataclass(frozen=True)
class ComplexityTerm:
    """One term of a complexity.

    Args:
        k: The index of the term: 0, 1, ...
        low: The least gap f(x*) - f(x) of the points that the term counts, in units of f.
        high: The largest gap of the points that the term counts, in units of f.
        radius: The radius of the balls, in lengthscales.
        packing: The number of balls.
        value: The value that the term adds, in 1 / units of f.
        resolved: Whether the balls are at least as large as the cells of the grid. Smaller balls
            are counted by the volume of the cells.
        admissible: Whether the bumps of the lower bound are at most one lengthscale wide. The
            theory does not cover wider bumps, and their term counts 0.
    """

    k: int
    low: float
    high: float
    radius: float
    packing: int
    value: float
    resolved: bool
    admissible: bool = True


@dataclass(frozen=True)
class Complexity:
    """A complexity with its terms.

    Args:
        value: The sum of the terms and the tail, in 1 / units of f.
        gap: The smallest gap D, in units of f.
        terms: The terms, in the order of growing gaps.
        tail: The sum of all further terms, which count one ball each.
    """

    value: float
    gap: float
    terms: tuple[ComplexityTerm, ...]
    tail: float = 0.0

    @property
    def resolved(self) -> bool:
        """Whether the grid resolves every admissible term."""
        return all(term.resolved for term in self.terms if term.admissible)

    def __str__(self) -> str:
        rows = [f"{self.value:.4g} at gap {self.gap:.4g}"]
        rows.append(
            f"{'k':>4} {'gap from':>10} {'to':>10} {'radius':>10} {'balls':>9} {'adds':>10}"
        )
        for term in self.terms:
            row = f"{term.k:4d} {term.low:10.4g} {term.high:10.4g} {term.radius:10.4g} "
            row += f"{term.packing:9d} {term.value:10.4g}"
            row += "" if term.admissible else "  wider than a lengthscale: not counted"
            row += "" if term.resolved else "  finer than the grid: by volume"
            rows.append(row)
        if self.tail:
            rows.append(f"all further terms, one ball each, add {self.tail:.4g}")
        return "\n".join(rows)


def lower_complexity(
    problem: Problem,
    kernel: Kernel,
    gap: float,
    rkhs_bound: float,
    norm: float,
    *,
    shape: Sequence[int] | None = None,
) -> Complexity:
    """The lower complexity of an instance: the number of bumps that a method must rule out, each
    divided by its cost.

    sum_k m_k / (2^(k+2) D), where m_k counts disjoint balls of radius w_k that lie entirely in the
    box and in the set {2^k D <= f(x*) - f(x) < 2^(k+1) D}. A bump of height 3 2^k D and norm at
    most B - |f| fits into each ball: w_k = (3 2^k D M / (B - |f|))^(1/nu), with M = `bump_norm` /
    sqrt(k(x,x)). w^-nu M bounds the norm of a bump only for w <= 1, so wider bumps count 0.

    Source: Shekhar and Javidi 2022, definition 10 (2 w_k packing, as in its proof; B - |f| is
    their lambda M). The packing is greedy, on a grid, or by volume if that gives more.

    Args:
        problem: The problem with the function f, on a `Box`.
        kernel: A Matern kernel, or a multiple of one.
        gap: D, the smallest gap, in units of f.
        rkhs_bound: B, the bound on the RKHS norms of all functions on which the method must be
            good.
        norm: |f|, the RKHS norm of f, at least 0 and less than B.
        shape: The number of grid points along each column; None for 160,000 points in all.

    Returns:
        The complexity and its terms, in 1 / units of f.

    Raises:
        ValueError: If it is another kernel (also RBF, whose RKHS holds no bumps), the domain is not
            a box, the grid is too large, or a number is out of range.
    """
    radial = radial_kernel(kernel, problem.domain.dim)
    check_norms(rkhs_bound, norm)
    check_gap(gap)
    grid = InstanceGrid(problem, radial.lengthscales, shape)
    return lower_on_grid(grid, radial, gap, rkhs_bound - norm)


def upper_complexity(
    problem: Problem,
    kernel: Kernel,
    gap: float,
    rkhs_bound: float,
    *,
    shape: Sequence[int] | None = None,
) -> Complexity:
    """The upper complexity of an instance: the number of cells that breadthwise exploration may
    have to evaluate, each divided by its gap.

    sum_k m_k / (rho^(-k xi) D), where m_k is the 2 v2 (rho^(-k xi) D)^(1/xi) packing number of
    {f(x*) - f(x) <= c1 rho^(-k xi) D} and c1 = 7 B C_k v1^xi rho^-xi, with rho, v1 and v2 of the
    `CellTree` and C_k, xi of `holder_constants`. Once a ball covers the box, m_k = 1 and the rest
    is a geometric series.

    Source: Shekhar and Javidi 2022, definition 11 and lemma 4 (their L is B C_k). The packing is
    greedy, on a grid.

    Args:
        problem: The problem with the function f, on a `Box`.
        kernel: A kernel that `holder_constants` knows.
        gap: D, the smallest gap, in units of f.
        rkhs_bound: B, the bound on the RKHS norm, at least |f|.
        shape: The number of grid points along each column; None for 160,000 points in all.

    Returns:
        The complexity and its terms, in 1 / units of f.

    Raises:
        ValueError: If it is another kernel, the domain is not a box, the grid is too large, or a
            number is out of range.
    """
    constants = holder_constants(kernel, problem.domain.dim)
    check_rkhs_bound(rkhs_bound)
    check_gap(gap)
    grid = InstanceGrid(problem, constants.lengthscales, shape)
    return UpperTerms(grid, constants, rkhs_bound).complexity(gap)


def lower_on_grid(grid: InstanceGrid, kernel: RadialKernel, gap: float, room: float) -> Complexity:
    """The `lower_complexity` on a given grid, with B - |f| = ``room``.

    Args:
        grid: The instance on a grid.
        kernel: The kernel.
        gap: D, the smallest gap, in units of f.
        room: B - |f|, the norm that is left for bumps.

    Returns:
        The complexity and its terms, in 1 / units of f.
    """
    bump = bump_norm(kernel.nu, kernel.dim) / math.sqrt(kernel.variance)
    terms: list[ComplexityTerm] = []
    while (low := 2 ** len(terms) * gap) <= grid.largest_gap:
        radius = (3 * low * bump / room) ** (1 / kernel.nu)
        admissible = radius <= 1
        packing = grid.count_balls(low, 2 * low, radius) if admissible else 0
        terms.append(
            ComplexityTerm(
                k=len(terms),
                low=low,
                high=2 * low,
                radius=radius,
                packing=packing,
                value=packing / (4 * low),
                resolved=radius >= grid.coarsest * (1 - ROUNDING),
                admissible=admissible,
            )
        )
    return Complexity(sum(term.value for term in terms), gap, tuple(terms))


def largest_useful_gap(grid: InstanceGrid, kernel: RadialKernel, room: float) -> float:
    """The gap above which every lower complexity is 0.

    Above it no point falls short of the maximum by the gap, or the ball of the bump is wider than a
    lengthscale or than the box.

    Returns:
        The gap, in units of f.
    """
    widest = min(1.0, grid.shortest_side / 2)
    bump = bump_norm(kernel.nu, kernel.dim) / math.sqrt(kernel.variance)
    return min(grid.largest_gap, widest**kernel.nu * room / (3 * bump))


class UpperTerms:
    """The terms of upper complexities of one instance.

    Args:
        grid: The instance on a grid.
        constants: The Holder constants of the kernel.
        rkhs_bound: B, the bound on the RKHS norm of f.
    """

    def __init__(self, grid: InstanceGrid, constants: HolderConstants, rkhs_bound: float) -> None:
        self._grid = grid
        self._tree = CellTree(grid.box, constants.lengthscales)
        self._xi = constants.exponent
        slope = rkhs_bound * constants.constant * (self._tree.outer / self._tree.rho) ** self._xi
        self._factor = 7 * slope  # c1
        self._diameter = 2 * self._tree.half_diagonal(0)

    def complexity(self, gap: float) -> Complexity:
        """The upper complexity at a gap.

        Args:
            gap: D, the smallest gap, in units of f.

        Returns:
            The complexity and its terms, in 1 / units of f.
        """
        rho, terms = self._tree.rho**self._xi, []
        while self._distance(low := gap * rho ** -len(terms)) <= self._diameter:
            packing = self._packing(low)
            terms.append(
                ComplexityTerm(
                    k=len(terms),
                    low=0.0,
                    high=self._factor * low,
                    radius=self._distance(low) / 2,
                    packing=packing,
                    value=packing / low,
                    resolved=self._distance(low) >= self._grid.coarsest * (1 - ROUNDING),
                )
            )
        tail = 1 / (low * (1 - rho))
        return Complexity(sum(term.value for term in terms) + tail, gap, tuple(terms), tail)

    def reached_gap(self, horizon: int) -> float:
        """The gap that breadthwise exploration reaches by the horizon.

        rho^(xi H), H the last level with sum_(h <= H) rho^(-2 xi h) m_h <= T. Source: Shekhar and
        Javidi 2022, lemma 7.

        Args:
            horizon: T.

        Returns:
            The gap, at most 1.
        """
        gap, spent = 1.0, 0.0
        while True:
            spent += self._packing(gap) / gap**2
            if spent > horizon:
                return min(gap / self._tree.rho**self._xi, 1.0)
            gap *= self._tree.rho**self._xi

    def _distance(self, gap: float) -> float:
        return 2 * self._tree.inner * gap ** (1 / self._xi)

    def _packing(self, gap: float) -> int:
        # The maximiser is in every set, also if it is not on the grid.
        return max(self._grid.count_apart(self._factor * gap, self._distance(gap)), 1)


def check_norms(rkhs_bound: float, norm: float) -> None:
    """Check that 0 <= norm < rkhs_bound.

    Raises:
        ValueError: If this does not hold.
    """
    check_rkhs_bound(rkhs_bound)
    norm = one_number(norm, "norm")
    require(0 <= norm < rkhs_bound, "norm", norm, f"at least 0 and less than {rkhs_bound=}")


def check_gap(gap: float) -> None:
    """Check that a gap is positive and finite.

    Raises:
        ValueError: If it is not.
    """
    gap = one_number(gap, "gap")
    require(0 < gap < math.inf, "gap", gap, "positive and finite")
