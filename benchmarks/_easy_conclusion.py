"""What follows from the experiment on easy and hard instances."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks._easy_claims import (
    BPE,
    GP_UCB,
    OURS,
    TOLERANCE,
    active_shares,
    at_most,
    clearly_less,
    common_horizon,
    instances_of,
    late_slope,
    ratio,
    regret_curve,
    rows_at,
    sharpest_and_flattest,
)
from benchmarks._easy_costs import Cost
from benchmarks._easy_runs import NAMES, Instance
from benchmarks._harness import Row
from benchmarks._statistics import column

# Regret that hardly grows less than T.
_LINEAR = 0.85


def conclusion(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    """The last section of the report.

    Args:
        rows: One for each run and horizon.
        costs: What each instance costs.
    """
    instances = instances_of(rows)
    above = {each: late_slope(rows, each, OURS).slope - at_most(each, OURS) for each in instances}
    worst = max(above, key=lambda each: above[each])
    near = [each for each in instances if above[each] <= TOLERANCE]
    short, longer = common_horizon(rows, *NAMES), common_horizon(rows, OURS, BPE)
    seconds = {
        method: statistics.median(
            row["seconds"]
            for each in instances
            for row in rows_at(rows, each, regret_curve(rows, each, method)[0][-1], method)
        )
        for method in (OURS, GP_UCB)
    }
    longest = [
        max(horizons)
        for horizons in (
            [row["horizon"] for row in rows if row["method"] == name] for name in seconds
        )
    ]
    active = [
        share
        for each in instances
        if (each.nu, each.dim) == (worst.nu, worst.dim)
        for share in active_shares(rows_at(rows, each, regret_curve(rows, each, OURS)[0][-1]))
    ]
    extremes = [pair for pair in sharpest_and_flattest(rows) if len(set(pair)) > 1]
    dearer = sum(_last_regret(rows, sharp) > _last_regret(rows, flat) for sharp, flat in extremes)
    linear = [each for each in instances if late_slope(rows, each, GP_UCB).slope > _LINEAR]
    better = [each for each in linear if clearly_less(rows, each, GP_UCB, short)]
    silent = [cost.at_horizon.silent_before or 0.0 for cost in costs]
    # The set of points that are as good as the first term asks, c1 times the gap, is all there is.
    whole = sum(
        cost.at_horizon.upper.terms[0].high > _height(rows, cost.instance) for cost in costs
    )
    return "\n".join(
        [
            f"- The sharper the maximum, the slower regret grows, about as proposition 2 says: in "
            f"{len(near)} of {len(instances)} instances the slope of breadthwise exploration is at "
            f"most {TOLERANCE:g} above its exponent. It is furthest above at {worst} "
            f"({above[worst]:+.2f}): for nu = {worst.nu:g}, d = {worst.dim} {min(active):.0%} to "
            f"{max(active):.0%} of the box are active still, since V_h falls slowly with the cells "
            "and their number rises fast: these T are the start of the curve.",
            f"- That is growth. Outright a sharp maximum costs more than a flat one at these T in "
            f"{dearer} of {len(extremes)} pairs of like nu and d, because nearly all of the box is "
            "far below it.",
            f"- Its regret as a multiple of BPE's, T = {longer}: "
            f"{_ratios(rows, instances, BPE, longer)}. Of GP-UCB's, T = {short}: "
            f"{_ratios(rows, instances, GP_UCB, short)}.",
            f"- The lower bound says nothing of runs that can be made: it is 0 before T = "
            f"{min(silent):.0e}, on any of these instances. Nor does the upper complexity at the "
            f"gap that is reached tell sharp from flat: in {whole} of {len(costs)} instances "
            "c1 times that gap exceeds the largest there is, so the near-optimal sets are the "
            "whole box. Both tell them apart at smaller gaps, and the method does at once.",
            "- So use `gp_ucb` where the kernel is smooth for its dimension, sharp maximum or not: "
            "its bound is worse, its regret is not. Where its width still excludes almost nothing "
            f"after {short} steps (slope above {_LINEAR:g}: {_names(linear)}), "
            f"`breadthwise_exploration` loses clearly less on {len(better)} of {len(linear)}; and "
            f"it takes as many evaluations as one likes: a run of up to {longest[0]} took "
            f"{seconds[OURS]:.0f} s (median), one of GP-UCB of {longest[1]} took "
            f"{seconds[GP_UCB]:.0f} s, on a machine shared with other work.",
        ]
    )


def _height(rows: Sequence[Row], instance: Instance) -> float:
    """The height of the function of the first seed, which no gap exceeds."""
    return column(rows, "height", method=OURS, **instance._asdict())[0]


def _last_regret(rows: Sequence[Row], instance: Instance) -> float:
    """The mean of breadthwise exploration at its longest horizon."""
    return statistics.fmean(run[-1] for run in regret_curve(rows, instance, OURS)[1])


def _names(instances: Sequence[Instance]) -> str:
    kernels = dict.fromkeys((nu, dim) for nu, _, dim in instances)
    return ", ".join(f"nu = {nu:g}, d = {dim}" for nu, dim in kernels) or "none"


def _ratios(rows: Sequence[Row], instances: Sequence[Instance], other: str, horizon: int) -> str:
    """The range of each nu and d."""
    groups: dict[tuple[float, int], list[float]] = {}
    for each in instances:
        groups.setdefault((each.nu, each.dim), []).append(ratio(rows, each, other, horizon))
    return ", ".join(
        f"{min(found):.2f} to {max(found):.2f} (nu = {nu:g}, d = {dim})"
        for (nu, dim), found in groups.items()
    )
