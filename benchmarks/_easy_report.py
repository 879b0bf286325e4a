"""The tables of the experiment on easy and hard instances."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks._easy_claims import (
    BPE,
    GP_UCB,
    LAST,
    OURS,
    TOLERANCE,
    advantage,
    at_least,
    at_most,
    claims,
    common_horizon,
    instances_of,
    late_slope,
    ratio,
    regret_curve,
    regrets,
    sharpest_and_flattest,
)
from benchmarks._easy_costs import GAP, LARGER_BOUND, Cost, row_at_horizon, row_of_terms
from benchmarks._easy_runs import (
    DELTA,
    NAMES,
    NOISE_STD,
    NORM,
    RKHS_BOUND,
    Instance,
)
from benchmarks._harness import Row, markdown_table
from benchmarks._statistics import column, standard_error
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
        f"Functions f of norm {NORM:g} in the RKHS of a Matern kernel, with f(x*) - f(x) like "
        "|x - x*|^b around the maximiser: the smaller b, the sharper. Boxes of 2.5 lengthscales "
        "(d = 1) and 2.5 by 2 (d = 2), away from the origin; each seed has a maximiser of its own. "
        f"Gaussian noise of sd {NOISE_STD:g}; the methods are told B = {RKHS_BOUND:g}, the sd and "
        f"delta = {DELTA:g}, and use theoretical widths. All values are cumulative regret. "
        "Breadthwise exploration and BPE are run anew for each horizon T; a curve of GP-UCB or "
        "IGP-UCB, which know no horizon, is one run. ± is one standard error over seeds, [ ] a 95 "
        "% interval: it covers chance, not the bias of a finite T.",
        markdown_table(claims(rows)),
        "## Slopes on log axes, and the exponents",
        f"Over the last {LAST} horizons of each method. *At most*: proposition 2 for breadthwise "
        "exploration, for the others what is known of the worst case, up to logarithms. *At "
        "least*: proposition 1, for methods that promise on every function what they do; "
        "nothing is known where b <= nu.",
        markdown_table([_slope_row(rows, each) for each in instances]),
        "## Where slopes differ from exponents, why",
        "Of breadthwise exploration at its longest horizon: after how many evaluations the first "
        "cell was dropped (median), and what that is of T; the last level, its active cells, and "
        "what share of the box they are; the regret as a share of that of uniform play; and the "
        "slope over all horizons from the first that drops anything, beside that over the last.",
        markdown_table([_reason_row(rows, each) for each in instances]),
        _stuck(rows),
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
        f"Complexities at gap {GAP:g}, which no run here reaches, and how many balls their first "
        "terms pack: the lower one, among functions of norm "
        f"{LARGER_BOUND:g}, disjoint balls in the set of gaps from 2^k {GAP:g} to twice that; the "
        "upper one, of the set of gaps up to c1 rho^(-k xi) times it. * by volume, where the "
        "balls are finer than the grid.",
        markdown_table(_term_rows(costs)),
        "## What follows",
        _conclusion(rows, costs),
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


def _reason_row(rows: Sequence[Row], instance: Instance) -> Row:
    horizons, runs = regret_curve(rows, instance, OURS)
    last = _at(rows, instance, horizons[-1])
    dropped = statistics.median(row["before_elimination"] for row in last)
    shares = [row["last_cells"] / 2 ** row["last_level"] for row in last]
    uniform = [row["regret"] / (row["uniform_regret_per_step"] * row["horizon"]) for row in last]
    kept = [i for i, horizon in enumerate(horizons) if horizon > dropped]
    whole = "-"
    if len(kept) > 1:
        slope = fitted_slope([horizons[i] for i in kept], [[run[i] for i in kept] for run in runs])
        whole = f"{slope.slope:.2f} (T from {horizons[kept[0]]})"
    return _named(instance) | {
        "T": horizons[-1],
        "first dropped after": f"{dropped:.0f}",
        "of T": f"{dropped / horizons[-1]:.0%}",
        "last level": f"{statistics.median(row['last_level'] for row in last):.0f}",
        "active cells": f"{statistics.median(row['last_cells'] for row in last):.0f}",
        "of the box": f"{statistics.fmean(shares):.1%}",
        "of uniform regret": f"{statistics.fmean(uniform):.0%}",
        "slope since": whole,
        "at the end": f"{late_slope(rows, instance, OURS).slope:.2f}",
        "at most": f"{at_most(instance, OURS):.2f}",
    }


def _stuck(rows: Sequence[Row]) -> str:
    """What came of the runs that never left the whole box."""
    stuck = [row for row in rows if row["method"] == OURS and row["last_level"] == 0]
    if not stuck:
        return "Every run left the first level."
    horizons = sorted({row["horizon"] for row in stuck})
    listed = ", ".join(map(str, horizons))
    runs = sum(row["method"] == OURS and row["horizon"] in horizons for row in rows)
    return (
        f"At T = {listed}, {len(stuck)} of {runs} runs never left the first level, and evaluated "
        "the center of the box for ever: a level is refined only while w max s > 1/sqrt(T), and "
        "with so little noise one evaluation makes it less, though f can move by far more than "
        "that within the box. The rule is in the units of f, so this depends on them. Regret then "
        "says how near the center the maximiser happens to be; slopes are without these T."
    )


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


def _term_rows(costs: Sequence[Cost]) -> list[Row]:
    found = []
    for cost in costs:
        nu, _, dim = cost.instance
        alike = [each for each in costs if (each.instance.nu, each.instance.dim) == (nu, dim)]
        found.append(row_of_terms(cost, max(alike, key=lambda each: each.instance.growth)))
    return found


def _at(rows: Sequence[Row], instance: Instance, horizon: int) -> list[Row]:
    """Rows of breadthwise exploration."""
    wanted = instance._asdict() | {"method": OURS, "horizon": horizon}
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


# --- what follows ---------------------------------------------------------------------------------


def _conclusion(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    instances = instances_of(rows)
    above = {each: late_slope(rows, each, OURS).slope - at_most(each, OURS) for each in instances}
    worst = max(above, key=lambda each: above[each])
    near = [each for each in instances if above[each] <= TOLERANCE]
    short, longer = common_horizon(rows, *NAMES), common_horizon(rows, OURS, BPE)
    of_bpe = {each: ratio(rows, each, BPE, longer) for each in instances}
    of_gp_ucb = {each: ratio(rows, each, GP_UCB, short) for each in instances}
    better = [each for each in instances if of_gp_ucb[each] < 1]
    silent = [cost.at_horizon.silent_before or 0.0 for cost in costs]
    # The set of points that are as good as the first term asks, c1 times the gap, is all there is.
    whole = sum(
        cost.at_horizon.upper.terms[0].high > _height(rows, cost.instance) for cost in costs
    )
    return "\n".join(
        [
            f"- Sharp maxima are cheaper, by about what proposition 2 says: in {len(near)} of "
            f"{len(instances)} instances the slope of breadthwise exploration is at most "
            f"{TOLERANCE:g} above its exponent. It is furthest above where cells are dropped "
            f"late ({worst}: {above[worst]:+.2f}): before anything is dropped regret grows like "
            "T, and what follows has to make up for it. With a rough kernel in the plane V_h "
            "falls so slowly that the first levels are whole grids.",
            f"- Its regret is {min(of_bpe.values()):.2f} to {max(of_bpe.values()):.2f} times that "
            f"of BPE at T = {longer}, and {min(of_gp_ucb.values()):.2f} to "
            f"{max(of_gp_ucb.values()):.2f} times that of GP-UCB at T = {short}; it is less than "
            f"GP-UCB's on {len(better)} of {len(instances)} instances"
            + (f": {_listed(better)}." if better else "."),
            f"- The lower bound says nothing of runs that can be made: it is 0 before T = "
            f"{min(silent):.0e}, on any of these instances. Nor does the upper complexity at the "
            f"gap that is reached tell sharp from flat: in {whole} of {len(costs)} instances "
            "c1 times that gap exceeds the largest there is, so the near-optimal sets are the "
            "whole box. Both tell them apart at smaller gaps, and the method does at once.",
            "- So use `breadthwise_exploration` where a bound on the norm is known, maxima are "
            "sharp or the kernel is rough, and there are thousands of evaluations, each cheap: a "
            "step costs well below a millisecond, and no acquisition function is maximised. Give "
            "it units in which 1/sqrt(T) is less than the noise.",
        ]
    )


def _height(rows: Sequence[Row], instance: Instance) -> float:
    """The height of the function of the first seed, which no gap exceeds."""
    return column(rows, "height", method=OURS, **instance._asdict())[0]


def _listed(instances: Sequence[Instance]) -> str:
    """With the growths of a kernel together."""
    groups: dict[tuple[float, int], list[str]] = {}
    for nu, growth, dim in instances:
        groups.setdefault((nu, dim), []).append(f"{growth:g}")
    return "; ".join(
        f"nu = {nu:g}, d = {dim}, b = {', '.join(growths)}" for (nu, dim), growths in groups.items()
    )
