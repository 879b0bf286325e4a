"""Report on easy and hard instances: its tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.easy_instances.claims import (
    BPE,
    GP_UCB,
    LAST,
    OURS,
    TOLERANCE,
    active_shares,
    advantage,
    at_least,
    at_most,
    claims,
    common_horizon,
    instances_of,
    last_horizon,
    late_slope,
    ratio,
    regret_curve,
    regrets,
    rows_at,
    share_of_uniform,
    sharpest_and_flattest,
    too_steep,
)
from benchmarks.easy_instances.conclusion import conclusion
from benchmarks.easy_instances.costs import GAP, LARGER_BOUND, Cost, row_at_horizon, row_of_terms
from benchmarks.easy_instances.runs import (
    DELTA,
    NAMES,
    NOISE_STD,
    NORM,
    RKHS_BOUND,
    Instance,
)
from botorch_ext.analysis import fitted_slope


def report(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    """The Markdown text: the claims, the numbers they rest on, and what follows for a user.

    Args:
        rows: One for each run and horizon.
        costs: What each instance costs.

    Returns:
        The text.
    """
    instances = instances_of(rows)
    short, longer = common_horizon(rows, *NAMES), common_horizon(rows, OURS, BPE)
    parts = [
        "# Easy and hard instances: is a sharp maximum cheaper?",
        "A test of the theory of Shekhar and Javidi 2022, *Instance-Dependent Regret Analysis of "
        "Kernelized Bandits*.",
        f"Functions f of norm {NORM:g} in the RKHS of a Matern kernel, with f(x*) - f(x) like "
        "|x - x*|^b around the maximiser: the smaller b, the sharper. Boxes of 2.5 lengthscales "
        "(d = 1) and 2.5 by 2 (d = 2), away from the origin; each seed has a maximiser of its own. "
        f"Gaussian noise of sd {NOISE_STD:g}; the methods are told B = {RKHS_BOUND:g}, the sd and "
        f"delta = {DELTA:g}, and use theoretical widths. All values are cumulative regret. "
        "Breadthwise exploration and BPE are run anew for each horizon T; a curve of GP-UCB or "
        "IGP-UCB, which know no horizon, is one run. ± is one standard error over seeds, [ ] a 95 "
        "% interval: it covers chance, not the bias of a finite T. The settings were chosen, and "
        "the criteria fixed, after trial runs with functions of norm 0.8.",
        markdown_table(claims(rows)),
        "## Slopes on log axes, and the exponents",
        f"Over the last {LAST} horizons of each method. *At most*: proposition 2 for breadthwise "
        "exploration, for the others what is known of the worst case, up to logarithms. *At "
        "least*: proposition 1, for methods that promise on every function what they do; "
        "nothing is known where b <= nu. The picture of the regret has slopes over all horizons.",
        markdown_table([_slope_row(rows, each) for each in instances]),
        _below(rows),
        _above(rows),
        "## Where slopes differ from exponents, why",
        "Of breadthwise exploration at its longest horizon: after how many evaluations the first "
        "cell was dropped (median), and what that is of T; the last level, its active cells, and "
        "what share of the box they are; the regret as a share of that of uniform play; and the "
        "slope over all horizons from the first that drops anything, beside that over the last.",
        markdown_table([_reason_row(rows, each) for each in instances]),
        f"## Regret of all methods, T = {short}",
        markdown_table([_regret_row(rows, each, short) for each in instances]),
        f"The same for breadthwise exploration and BPE, T = {longer}, on the sharpest and the "
        "flattest instance of each nu and d:",
        markdown_table(
            [
                _pair_row(rows, each, longer)
                for pair in sharpest_and_flattest(rows)
                for each in dict.fromkeys(pair)
            ]
        ),
        "## What theory says the instances cost",
        "With the function of the first seed, at the longest horizon of breadthwise exploration. "
        "*Least regret*: of methods with the minimax exponent; the bound is 0 for every T less "
        "than stated, since the bumps that could deceive a method have no room. *Upper "
        "complexity*: the order of the regret of breadthwise exploration, without constants and "
        "logarithms.",
        markdown_table([row_at_horizon(rows, cost) for cost in costs]),
        f"Complexities at gap {GAP:g}, {_reached(costs)}, and how many balls their first "
        "terms pack: the lower one, among functions of norm "
        f"{LARGER_BOUND:g}, disjoint balls in the set of gaps from 2^k {GAP:g} to twice that; the "
        "upper one, of the set of gaps up to c1 rho^(-k xi) times it. * by volume, where the "
        "balls are finer than the grid.",
        markdown_table(_term_rows(costs)),
        "## What follows",
        conclusion(rows, costs),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


# --- rows -----------------------------------------------------------------------------------------


def _named(instance: Instance) -> Row:
    return {"nu": instance.nu, "b": instance.growth, "d": instance.dim}


def _slope_row(rows: Sequence[Row], instance: Instance) -> Row:
    row = _named(instance)
    for method, name in NAMES.items():
        slope, low, high = late_slope(rows, instance, method)
        row[name] = f"{slope:.2f} [{low:.2f}, {high:.2f}]"
        row["at most" + " " * len(row)] = f"{at_most(instance, method):.2f}"
        least = at_least(instance, method)
        row["at least" + " " * len(row)] = "-" if least is None else f"{least:.2f}"
    return row


def _below(rows: Sequence[Row]) -> str:
    """Who is below the least exponent there is."""
    found = [
        f"{NAMES[method]} at {each}"
        for method in NAMES
        for each in instances_of(rows)
        if late_slope(rows, each, method).high < (at_least(each, method) or 0.0)
    ]
    if not found:
        return "No interval lies below *at least*."
    return (
        f"Below *at least*: {'; '.join(found)}. Proposition 1 is of T without end; from which T on "
        "its bound is not 0 is below."
    )


def _above(rows: Sequence[Row]) -> str:
    """Which other methods are above what they promise, and how far they are from uniform play."""
    found = [
        f"{NAMES[method]} at {each} "
        f"({share_of_uniform(rows, each, method, last_horizon(rows, each, method)):.0%})"
        for method, each in too_steep(rows, [name for name in NAMES if name != OURS])
    ]
    if not found:
        return f"No other method is more than {TOLERANCE:g} above *at most*."
    return (
        f"More than {TOLERANCE:g} above *at most*, with the regret at the longest horizon as a "
        f"share of that of uniform play: {'; '.join(found)}. Near 100% a method has hardly begun "
        "to choose, and its regret is T times a constant."
    )


def _reason_row(rows: Sequence[Row], instance: Instance) -> Row:
    horizons, runs = regret_curve(rows, instance, OURS)
    last = rows_at(rows, instance, horizons[-1])
    dropped = statistics.median(row["before_elimination"] for row in last)
    shares = active_shares(last)
    uniform = [row["regret"] / (row["uniform_regret_per_step"] * row["horizon"]) for row in last]
    kept = [i for i, horizon in enumerate(horizons) if horizon > dropped]
    whole = "-"
    if len(kept) > 1:
        slope = fitted_slope([horizons[i] for i in kept], [[run[i] for i in kept] for run in runs])
        whole = f"{slope.slope:.2f} (T from {horizons[kept[0]]})"
    return _named(instance) | {
        "T": horizons[-1],
        "first dropped after": f"{dropped:.0f}",
        "of T": f"{dropped / horizons[-1]:.1%}",
        "last level": f"{statistics.median(row['last_level'] for row in last):.0f}",
        "active cells": f"{statistics.median(row['last_cells'] for row in last):.0f}",
        "of the box": f"{statistics.fmean(shares):.1%}",
        "of uniform regret": f"{statistics.fmean(uniform):.0%}",
        "slope since": whole,
        "at the end": f"{late_slope(rows, instance, OURS).slope:.2f}",
        "at most": f"{at_most(instance, OURS):.2f}",
    }


def _regret_row(rows: Sequence[Row], instance: Instance, horizon: int) -> Row:
    row = _named(instance)
    for method, name in NAMES.items():
        found = regrets(rows, instance, method, horizon)
        row[name] = f"{statistics.fmean(found):.1f} ± {standard_error(found):.1f}"
    uniform = column(
        rows, "uniform_regret_per_step", method=OURS, horizon=horizon, **instance._asdict()
    )
    row["uniform"] = f"{horizon * statistics.fmean(uniform):.1f}"
    for other in (BPE, GP_UCB):
        mean, error = advantage(rows, instance, other, horizon)
        row[f"breadthwise - {NAMES[other]}"] = f"{mean:+.1f} ± {error:.1f}"
    return row


def _pair_row(rows: Sequence[Row], instance: Instance, horizon: int) -> Row:
    row = _named(instance)
    for method in (OURS, BPE):
        found = regrets(rows, instance, method, horizon)
        row[NAMES[method]] = f"{statistics.fmean(found):.1f} ± {standard_error(found):.1f}"
    mean, error = advantage(rows, instance, BPE, horizon)
    return row | {
        "difference": f"{mean:+.1f} ± {error:.1f}",
        "ratio": f"{ratio(rows, instance, BPE, horizon):.2f}",
    }


def _reached(costs: Sequence[Cost]) -> str:
    """Whether runs come as close as the gap of the last table."""
    reaching = sum(cost.at_horizon.upper.gap <= GAP for cost in costs)
    if not reaching:
        return "which no run here reaches"
    return f"which runs on {reaching} of {len(costs)} instances reach"


def _term_rows(costs: Sequence[Cost]) -> list[Row]:
    found = []
    for cost in costs:
        nu, _, dim = cost.instance
        alike = [each for each in costs if (each.instance.nu, each.instance.dim) == (nu, dim)]
        found.append(row_of_terms(cost, max(alike, key=lambda each: each.instance.growth)))
    return found
