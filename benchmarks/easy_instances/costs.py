"""Costs of the instances, as theory has them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.common.tables import Row
from benchmarks.easy_instances.claims import OURS, regret_curve
from benchmarks.easy_instances.runs import NOISE_STD, NORM, RKHS_BOUND, Instance, problem_of
from botorch_ext.analysis import (
    Complexity,
    InstanceCost,
    instance_cost,
    lower_complexity,
    minimax_exponent,
    upper_complexity,
)

# A gap far below what the runs reach, and a class of functions with room for bumps.
GAP, LARGER_BOUND = 0.01, 2.0
_SHOWN = 6  # terms


class Cost(NamedTuple):
    """What one instance costs.

    Args:
        instance: Which.
        at_horizon: At the longest horizon of breadthwise exploration.
        lower: The lower complexity at `GAP`, among functions of norm `LARGER_BOUND`.
        upper: The upper complexity at `GAP`.
    """

    instance: Instance
    at_horizon: InstanceCost
    lower: Complexity
    upper: Complexity


def cost_of(rows: Sequence[Row], instance: Instance, grid: int) -> Cost:
    """The cost of the function of the first seed, on a grid of so many points a side."""
    problem = problem_of(instance, min(row["seed"] for row in rows))
    kernel, shape = problem.kernel, [grid] * instance.dim
    horizon = regret_curve(rows, instance, OURS)[0][-1]
    numbers = (RKHS_BOUND, NORM, NOISE_STD)
    return Cost(
        instance,
        instance_cost(problem, kernel, horizon, *numbers, shape=shape),
        lower_complexity(problem, kernel, GAP, LARGER_BOUND, NORM, shape=shape),
        upper_complexity(problem, kernel, GAP, RKHS_BOUND, shape=shape),
    )


def row_at_horizon(rows: Sequence[Row], cost: Cost) -> Row:
    """Of the table of bounds beside what was measured."""
    horizons, runs = regret_curve(rows, cost.instance, OURS)
    found, (nu, growth, dim) = cost.at_horizon, cost.instance
    return {
        "nu": nu,
        "b": growth,
        "d": dim,
        "T": horizons[-1],
        "least regret": "-" if found.lower_bound is None else f"{found.lower_bound:.3g}",
        "0 for T <": "-" if found.silent_before is None else f"{found.silent_before:.0e}",
        "upper complexity": f"{found.upper.value:.0f}",
        "at gap": f"{found.upper.gap:.3g}",
        "T^a, a minimax": f"{horizons[-1] ** minimax_exponent(nu, dim):.0f}",
        "measured": f"{statistics.fmean(run[-1] for run in runs):.0f}",
    }


def row_of_terms(cost: Cost, flattest: Cost) -> Row:
    """Of the table of complexities at one gap.

    Args:
        cost: Of the instance.
        flattest: Of the one with the largest b for this nu and d.
    """
    nu, growth, dim = cost.instance
    return {
        "nu": nu,
        "b": growth,
        "d": dim,
        "lower complexity": f"{cost.lower.value:.3g}",
        "balls": _packings(cost.lower),
        "upper complexity": f"{cost.upper.value:.3g}",
        "of that of the flattest": f"{cost.upper.value / flattest.upper.value:.2f}",
        "balls ": _packings(cost.upper),
    }


def _packings(complexity: Complexity) -> str:
    """How many balls the first terms pack; * where the grid is too coarse, and volumes count."""
    terms = complexity.terms
    listed = [f"{term.packing}" + "*" * (not term.resolved) for term in terms[:_SHOWN]]
    return ", ".join(listed) + ", ..." * (len(terms) > _SHOWN)
