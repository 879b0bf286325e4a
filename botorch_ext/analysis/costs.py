"""The cost of an instance: the least regret of methods that are good in the worst case, and the
regret that suffices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpytorch.kernels import Kernel

from botorch_ext.analysis.complexity import (
    Complexity,
    UpperTerms,
    check_norms,
    largest_useful_gap,
    lower_complexity,
    lower_on_grid,
)
from botorch_ext.analysis.exponents import minimax_exponent
from botorch_ext.analysis.grids import InstanceGrid
from botorch_ext.checks import one_number, whole_number
from botorch_ext.kernels.rkhs_norms import radial_kernel
from botorch_ext.kernels.smoothness import holder_constants
from botorch_ext.problems.base import Problem
from botorch_ext.widths.base import check_noise_std, require


@dataclass(frozen=True, repr=False)
class InstanceCost:
    """The cost of an instance; `instance_cost` makes it.

    Args:
        horizon: T, the number of evaluations.
        consistency: a, for methods whose regret is at most of order T^a on every function of the
            RKHS.
        lower: The lower complexity at gap 16 T^-(1-a); None for RBF, for which none is known.
        upper: The upper complexity at the gap that breadthwise exploration reaches by T.
        lower_bound: The least regret of such methods, in units of f: `regret_lower_bound`.
        worst_case: The exponent of T that no method beats on every function.
        silent_before: The horizon before which the lower bound is 0, whatever the grid.
    """

    horizon: int
    consistency: float
    lower: Complexity | None
    upper: Complexity
    lower_bound: float | None
    worst_case: float
    silent_before: float | None

    @property
    def upper_order(self) -> float:
        """The order of the regret of breadthwise exploration, without constants and logarithms.

        Source: Shekhar and Javidi 2022, theorem 2.
        """
        return self.upper.value

    def __repr__(self) -> str:
        rows = [f"InstanceCost after {self.horizon} evaluations"]
        if self.lower is None:
            rows.append("  least regret: unknown for this kernel")
        else:
            rows.append(
                f"  least regret of a method with worst case T^{self.consistency:.3g}: "
                f"{self.lower_bound:.4g}{self._why_zero()}"
            )
            rows.append(_summary("lower", self.lower))
        rows.append(_summary("upper", self.upper))
        rows.append(
            f"  order of regret: {self.upper_order:.4g} by breadthwise exploration, "
            f"{self.horizon**self.worst_case:.4g} in the worst case (T^{self.worst_case:.3g})"
        )
        return "\n".join(rows)

    def _why_zero(self) -> str:
        if self.lower_bound or self.lower is None or self.silent_before is None:
            return ""
        if self.horizon < self.silent_before:
            return f" (as for every horizon before {self.silent_before:.2g})"
        return " (no ball fits where it must)"


def instance_cost(
    problem: Problem,
    kernel: Kernel,
    horizon: int,
    rkhs_bound: float,
    norm: float,
    noise_std: float,
    *,
    consistency: float | None = None,
    shape: Sequence[int] | None = None,
) -> InstanceCost:
    """How hard an instance is: its complexities, the least regret, and the order of the regret that
    suffices.

    The upper complexity is taken at min(T^-(1-a), rho^(xi H)) with a the worst-case exponent
    (Shekhar and Javidi 2022, theorem 2 and lemma 7). All numbers are orders of magnitude: see
    `regret_lower_bound`.

    Args:
        problem: The problem with the function f, on a `Box`.
        kernel: A Matern or RBF kernel, or a multiple of one.
        horizon: T, the number of evaluations.
        rkhs_bound: B, the bound on the RKHS norms of all functions on which the method must be
            good.
        norm: |f|, the RKHS norm of f, at least 0 and less than B.
        noise_std: sigma, the standard deviation of Gaussian noise, in units of f.
        consistency: a, at least the method's `consistency_exponent`; None for the worst-case
            exponent.
        shape: The number of grid points along each column; None for 160,000 points in all.

    Returns:
        The cost, which prints as a short report.

    Raises:
        ValueError: If it is another kernel, the domain is not a box, the grid is too large, or a
            number is out of range.
    """
    dim = problem.domain.dim
    radial = radial_kernel(kernel, dim)
    worst_case = minimax_exponent(radial.nu, radial.dim)
    consistency = worst_case if consistency is None else consistency
    gap = _lower_gap(horizon, consistency, printed=False)
    check_noise_std(noise_std)
    check_norms(rkhs_bound, norm)
    grid = InstanceGrid(problem, radial.lengthscales, shape)
    upper = UpperTerms(grid, holder_constants(kernel, dim), rkhs_bound)
    reached = min(horizon ** -(1 - worst_case), upper.reached_gap(horizon))
    lower = silent_before = None
    if radial.nu < math.inf:
        lower = lower_on_grid(grid, radial, gap, rkhs_bound - norm)
        useful = largest_useful_gap(grid, radial, rkhs_bound - norm)
        silent_before = (16 / useful) ** (1 / (1 - consistency)) if useful > 0 else math.inf
    return InstanceCost(
        horizon=horizon,
        consistency=consistency,
        lower=lower,
        upper=upper.complexity(reached),
        lower_bound=None if lower is None else _lower_bound(lower, noise_std, printed=False),
        worst_case=worst_case,
        silent_before=silent_before,
    )


def regret_lower_bound(
    problem: Problem,
    kernel: Kernel,
    horizon: int,
    rkhs_bound: float,
    norm: float,
    noise_std: float,
    consistency: float,
    *,
    printed: bool = False,
    shape: Sequence[int] | None = None,
) -> float:
    """A lower bound on the expected regret at an instance, for methods that are good on all of the
    RKHS.

    (13 ln2 / 9) sigma^2 C(16 T^-(1-a)), where C is the `lower_complexity`. The bound holds for
    methods whose expected regret is at most 2 T^a at this T, on f and on f with each of the bumps.
    This condition is met for large T if a exceeds their `consistency_exponent`. It cannot be
    checked at a given T, so the bound is an order of magnitude.

    The constant: a bump on a ball E whose points fall short by D to 2 D has height 3 D, so that its
    top exceeds f(x*) by D. Let N count the evaluations in E, and let p and q be the means of N/T
    without and with the bump. Evaluations in E distinguish the two: E[N] (3 D)^2 / (2 sigma^2) >=
    kl(p, q) >= (1 - p) ln(1/(1 - q)) - ln 2. If D >= 16 T^-(1-a), then p <= 2 T^a / (T D) <= 1/8,
    and likewise 1 - q <= 1/8. Hence E[N] >= 2 sigma^2 / (9 D^2) (7/8 3 ln2 - ln2) = (13 ln2 / 36)
    sigma^2 / D^2. Each evaluation costs D, so m_k balls of gap D = 2^k 16 T^-(1-a) add (13 ln2 / 9)
    sigma^2 m_k / (4 D).

    Source: Shekhar and Javidi 2022, theorem 1, proposition 3 and lemma 1. The paper prints (7 ln2 /
    4) sigma^2 C(T^-(1-a)): eq. 57 takes 2 D for the height of the bump, 3 D (a height of 2 D would
    not exceed f(x*)), 13/8 is rounded down to 7/8, and the gap lacks the 16 that the proof needs.

    The other arguments are those of `instance_cost`.

    Args:
        kernel: A Matern kernel, or a multiple of one.
        consistency: a, in [0, 1).
        printed: Whether to return the bound as the paper prints it.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If it is another kernel (also RBF), the domain is not a box, the grid is too
            large, or a number is out of range.
    """
    gap = _lower_gap(horizon, consistency, printed)
    check_noise_std(noise_std)
    lower = lower_complexity(problem, kernel, gap, rkhs_bound, norm, shape=shape)
    return _lower_bound(lower, noise_std, printed)


def least_regret(
    problem: Problem,
    kernel: Kernel,
    horizon: int,
    rkhs_bound: float,
    norm: float,
    noise_std: float,
    worst_regret: float,
    *,
    shape: Sequence[int] | None = None,
) -> float:
    """A lower bound on the expected regret at an instance, for methods whose regret is at most R on
    every function of norm B.

    This is `regret_lower_bound` at this T, without the constants of its condition. With u = R /
    (T D) < 1/2, a ball of gap D has p <= u and q >= 1 - u, so E[N] >= 2 sigma^2 / (9 D^2) kl(u, 1 -
    u) with kl(u, 1 - u) = (1 - 2 u) ln((1 - u) / u), and the ball adds D E[N]. The gaps are D_k =
    2^k D_0, and the bound is the largest of the sums for four values of D_0 in [2 R/T, 4 R/T). A
    bound above R means that no method has a regret of at most R on every function.

    The other arguments are those of `regret_lower_bound`.

    Args:
        rkhs_bound: B, the bound on the RKHS norm of f.
        worst_regret: R, the largest regret of the method on any function, positive, in units of f.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If it is another kernel (also RBF), the domain is not a box, the grid is too
            large, or a number is out of range.
    """
    horizon = whole_number(horizon, "horizon", 1)
    worst_regret = one_number(worst_regret, "worst_regret")
    require(0 < worst_regret < math.inf, "worst_regret", worst_regret, "positive and finite")
    radial = radial_kernel(kernel, problem.domain.dim)
    check_noise_std(noise_std)
    check_norms(rkhs_bound, norm)
    grid = InstanceGrid(problem, radial.lengthscales, shape)

    def least(gap: float) -> float:
        total = 0.0
        for term in lower_on_grid(grid, radial, gap, rkhs_bound - norm).terms:
            u = worst_regret / (horizon * term.low)
            divergence = (1 - 2 * u) * math.log((1 - u) / u)
            total += term.packing * 2 * noise_std**2 / (9 * term.low) * divergence
        return total

    return max(least(2 * worst_regret / horizon * 2 ** (j / 4)) for j in range(4))


def _lower_gap(horizon: int, consistency: float, printed: bool) -> float:
    horizon = whole_number(horizon, "horizon", 1)
    consistency = one_number(consistency, "consistency")
    require(0 <= consistency < 1, "consistency", consistency, "at least 0 and less than 1")
    return (1 if printed else 16) * horizon ** -(1 - consistency)


def _lower_bound(lower: Complexity, noise_std: float, printed: bool) -> float:
    constant = 7 / 4 if printed else 13 / 9
    return constant * math.log(2) * noise_std**2 * lower.value


def _summary(name: str, complexity: Complexity) -> str:
    row = f"  {name} complexity: {complexity.value:.4g} at gap {complexity.gap:.4g}, "
    row += f"{len(complexity.terms)} terms"
    return row if complexity.resolved else row + ", some finer than the grid"
