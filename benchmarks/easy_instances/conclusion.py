"""Conclusion from the runs on easy and hard instances."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from benchmarks.common.repeated_runs import column
from benchmarks.common.tables import Row
from benchmarks.easy_instances.claims import (
    BPE,
    GP_UCB,
    OURS,
    TOLERANCE,
    active_shares,
    advantage,
    at_most,
    clearly_less,
    common_horizon,
    difference_of_slopes,
    instances_of,
    last_horizon,
    late_slope,
    ratio,
    regrets,
    rows_at,
    share_of_uniform,
    sharpest_and_flattest,
)
from benchmarks.easy_instances.costs import GAP, Cost
from benchmarks.easy_instances.runs import NAMES, Instance

# Regret that hardly grows less than T.
_LINEAR = 0.85
# The share of the regret of uniform play from which on a method is no better.
_UNIFORM = 0.95


def conclusion(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    """The last section of the report.

    Args:
        rows: One for each run and horizon.
        costs: What each instance costs.
    """
    found = [_of_growth(rows), _outright(rows), _of_ratios(rows), _of_bounds(rows, costs)]
    return "\n".join(f"- {text}" for text in (*found, _choice(rows)))


def _of_growth(rows: Sequence[Row]) -> str:
    instances, pairs = instances_of(rows), _pairs(rows)
    above = {each: late_slope(rows, each, OURS).slope - at_most(each, OURS) for each in instances}
    near = [each for each in instances if above[each] <= TOLERANCE]
    slower = [pair for pair in pairs if difference_of_slopes(rows, *pair, errors=2.0) < 0]
    text = (
        f"The slope of breadthwise exploration is at most {TOLERANCE:g} above the exponent of "
        f"proposition 2 in {len(near)} of {len(instances)} instances, and clearly less on the "
        f"sharpest than on the flattest in {len(slower)} of {len(pairs)} pairs of like nu and d"
    )
    if others := [pair for pair in pairs if pair not in slower]:
        most = max(abs(at_most(sharp, OURS) - at_most(flat, OURS)) for sharp, flat in others)
        text += f"; of the others the exponents themselves differ by {most:.2f} at most"
    worst = max(above, key=lambda each: above[each])
    if above[worst] <= TOLERANCE:
        return text + "."
    alike = [each for each in instances if (each.nu, each.dim) == (worst.nu, worst.dim)]
    last = {each: last_horizon(rows, each, OURS) for each in alike}
    active = [share for each in alike for share in active_shares(rows_at(rows, each, last[each]))]
    uniform = [share_of_uniform(rows, each, OURS, last[each]) for each in alike]
    return text + (
        f". It is furthest above at {worst} ({above[worst]:+.2f}): for nu = {worst.nu:g}, d = "
        f"{worst.dim} {min(active):.0%} to {max(active):.0%} of the box are active still, and "
        f"regret is {min(uniform):.0%} to {max(uniform):.0%} of that of uniform play. To halve V_h "
        f"there takes {2 ** (worst.dim / min(worst.nu, 1)):.0f} times as many cells of the same "
        "volume."
    )


def _outright(rows: Sequence[Row]) -> str:
    pairs = _pairs(rows)
    dearer = sum(_last_regret(rows, sharp) > _last_regret(rows, flat) for sharp, flat in pairs)
    text = (
        "That is growth. Outright a sharp maximum costs breadthwise exploration more than a flat "
        f"one at these T in {dearer} of {len(pairs)} pairs"
    )
    if not pairs:
        return text + "."
    times = [_uniform_step(rows, sharp) / _uniform_step(rows, flat) for sharp, flat in pairs]
    return text + (
        f"; the average point of the box is {min(times):.1f} to {max(times):.1f} times as far "
        "below it."
    )


def _of_ratios(rows: Sequence[Row]) -> str:
    instances = instances_of(rows)
    short, longer = common_horizon(rows, *NAMES), common_horizon(rows, OURS, BPE)
    return (
        f"Its regret as a multiple of BPE's, T = {longer}: "
        f"{_ratios(rows, instances, BPE, longer)}. Of GP-UCB's, T = {short}: "
        f"{_ratios(rows, instances, GP_UCB, short)}."
    )


def _of_bounds(rows: Sequence[Row], costs: Sequence[Cost]) -> str:
    silent = [cost.at_horizon.silent_before or 0.0 for cost in costs]
    zero = sum(not cost.at_horizon.lower_bound for cost in costs)
    cost_of = {cost.instance: cost for cost in costs}
    pairs = [(cost_of[sharp], cost_of[flat]) for sharp, flat in _pairs(rows)]
    reached = sum(
        sharp.at_horizon.upper.value < flat.at_horizon.upper.value for sharp, flat in pairs
    )
    # The set of points that are as good as the first term asks, c1 times the gap, is all there is.
    whole = sum(
        cost.at_horizon.upper.terms[0].high > _height(rows, cost.instance) for cost in costs
    )
    upper = sum(sharp.upper.value < flat.upper.value for sharp, flat in pairs)
    lower = sum(sharp.lower.value < flat.lower.value for sharp, flat in pairs)
    return (
        f"The lower bound is 0 at these T in {zero} of {len(costs)} instances, and before T = "
        f"{min(silent):.0e} in all. The upper complexity at the gap that is reached is less on the "
        f"sharper one in {reached} of {len(pairs)} pairs: in {whole} of {len(costs)} instances c1 "
        "times that gap exceeds the largest there is, and the near-optimal set is the whole box. "
        f"At gap {GAP:g} it is less in {upper} of {len(pairs)}, the lower complexity in {lower}."
    )


def _choice(rows: Sequence[Row]) -> str:
    """What to use, by regret at the longest horizon of all methods."""
    instances, short = instances_of(rows), common_horizon(rows, *NAMES)
    theirs = _all_alike(instances, lambda each: _clearly_more(rows, each, short))
    linear = [each for each in instances if late_slope(rows, each, GP_UCB).slope > _LINEAR]
    better = [each for each in linear if clearly_less(rows, each, GP_UCB, short)]
    blind = _all_alike(
        instances,
        lambda each: all(share_of_uniform(rows, each, name, short) > _UNIFORM for name in NAMES),
    )
    seconds = {
        method: statistics.median(
            row["seconds"]
            for each in instances
            for row in rows_at(rows, each, last_horizon(rows, each, method), method)
        )
        for method in (OURS, GP_UCB)
    }
    longest = {
        method: max(last_horizon(rows, each, method) for each in instances) for method in seconds
    }
    parts = []
    if theirs:
        parts.append(
            f"GP-UCB loses clearly less, sharp maximum or not, for {_names(theirs)}: use `gp_ucb` "
            "there."
        )
    if linear:
        parts.append(
            f"Where the regret of GP-UCB still grows nearly like T after {short} steps (slope "
            f"above {_LINEAR:g}: {_names(linear)}), `breadthwise_exploration` loses clearly less "
            f"on {len(better)} of {len(linear)}."
        )
    if blind:
        parts.append(
            f"No method is {1 - _UNIFORM:.0%} better than uniform play by then for {_names(blind)}."
        )
    parts.append(
        f"Horizons of up to {longest[OURS]} took breadthwise exploration {seconds[OURS]:.0f} s "
        f"(median of the longest), GP-UCB took {seconds[GP_UCB]:.0f} s for {longest[GP_UCB]}, "
        "timed beside other runs."
    )
    return " ".join(parts)


# --- parts ----------------------------------------------------------------------------------------


def _pairs(rows: Sequence[Row]) -> list[tuple[Instance, Instance]]:
    """The sharpest and the flattest instance of each nu and d that has two."""
    return [pair for pair in sharpest_and_flattest(rows) if len(set(pair)) > 1]


def _height(rows: Sequence[Row], instance: Instance) -> float:
    """The height of the function of the first seed, which no gap exceeds."""
    return column(rows, "height", method=OURS, **instance._asdict())[0]


def _uniform_step(rows: Sequence[Row], instance: Instance) -> float:
    """The mean regret of a step of uniform play."""
    where = instance._asdict() | {"method": OURS}
    return statistics.fmean(column(rows, "uniform_regret_per_step", **where))


def _last_regret(rows: Sequence[Row], instance: Instance) -> float:
    """The mean of breadthwise exploration at its longest horizon."""
    return statistics.fmean(regrets(rows, instance, OURS, last_horizon(rows, instance, OURS)))


def _clearly_more(rows: Sequence[Row], instance: Instance, horizon: int) -> bool:
    """Whether breadthwise exploration loses more than GP-UCB, by more than two standard errors."""
    mean, error = advantage(rows, instance, GP_UCB, horizon)
    return mean > 2 * error


def _all_alike(instances: Sequence[Instance], holds: Callable[[Instance], bool]) -> list[Instance]:
    """The instances of those nu and d all of whose instances have a property."""
    failing = {(each.nu, each.dim) for each in instances if not holds(each)}
    return [each for each in instances if (each.nu, each.dim) not in failing]


def _names(instances: Sequence[Instance]) -> str:
    kernels = dict.fromkeys((nu, dim) for nu, _, dim in instances)
    return "; ".join(f"nu = {nu:g}, d = {dim}" for nu, dim in kernels)


def _ratios(rows: Sequence[Row], instances: Sequence[Instance], other: str, horizon: int) -> str:
    """The range of each nu and d."""
    groups: dict[tuple[float, int], list[float]] = {}
    for each in instances:
        groups.setdefault((each.nu, each.dim), []).append(ratio(rows, each, other, horizon))
    return ", ".join(
        f"{min(found):.2f} to {max(found):.2f} (nu = {nu:g}, d = {dim})"
        for (nu, dim), found in groups.items()
    )
