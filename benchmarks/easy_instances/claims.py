"""Claims about easy and hard instances, and the numbers that the report rests on."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tables import Row
from benchmarks.easy_instances.runs import DELTA, NAMES, Instance
from botorch_ext.analysis import (
    Slope,
    consistency_exponent,
    fitted_slope,
    lower_exponent,
    upper_exponent,
)

OURS, BPE, GP_UCB = "breadthwise_exploration", "bpe", "gp_ucb"
# Slopes are over a factor of four in T: what came before is the start.
LAST = 3
# A factor ln T, of which the theory's bounds have some, adds 1 / ln T to a slope: 0.1 at T = 16384.
TOLERANCE = 0.1


# --- numbers --------------------------------------------------------------------------------------


def instances_of(rows: Sequence[Row]) -> list[Instance]:
    """Those of the rows, in their order."""
    return list(dict.fromkeys(Instance(row["nu"], row["growth"], row["dim"]) for row in rows))


def regret_curve(
    rows: Sequence[Row], instance: Instance, method: str
) -> tuple[list[int], list[list[float]]]:
    """The horizons, and the regret of each seed at each."""
    where = instance._asdict() | {"method": method}
    horizons = sorted(set(column(rows, "horizon", **where)))
    columns = [column(rows, "regret", horizon=horizon, **where) for horizon in horizons]
    return horizons, [list(run) for run in zip(*columns, strict=True)]


def late_slope(rows: Sequence[Row], instance: Instance, method: str) -> Slope:
    """The slope over the last three horizons."""
    horizons, runs = regret_curve(rows, instance, method)
    return fitted_slope(horizons[-LAST:], [run[-LAST:] for run in runs])


def slope_of_each(rows: Sequence[Row], instance: Instance, method: str) -> list[float]:
    """The slope of each seed over the last three horizons."""
    horizons, runs = regret_curve(rows, instance, method)
    log_t = np.log(horizons[-LAST:])
    return [float(np.polyfit(log_t, np.log(run[-LAST:]), 1)[0]) for run in runs]


def at_most(instance: Instance, method: str) -> float:
    """The power of T that theory gives a method on an instance: of what is known of the instance
    only breadthwise exploration makes use."""
    if method == OURS:
        return upper_exponent(*instance)
    return consistency_exponent(method, instance.nu, instance.dim)


def at_least(instance: Instance, method: str) -> float | None:
    """The power of T below which a method cannot be, for what it promises on every function."""
    return lower_exponent(*instance, consistency_exponent(method, instance.nu, instance.dim))


def common_horizon(rows: Sequence[Row], *methods: str) -> int:
    """The longest horizon of all these methods."""
    return max(
        set.intersection(
            *({row["horizon"] for row in rows if row["method"] == name} for name in methods)
        )
    )


def regrets(rows: Sequence[Row], instance: Instance, method: str, horizon: int) -> list[float]:
    """Of each seed."""
    where = instance._asdict() | {"method": method, "horizon": horizon}
    return column(rows, "regret", **where)


def advantage(
    rows: Sequence[Row], instance: Instance, other: str, horizon: int
) -> tuple[float, float]:
    """The regret of breadthwise exploration minus that of another method, the mean over the seeds
    and its standard error: both have the same functions and the same noise."""
    pairs = zip(
        regrets(rows, instance, OURS, horizon),
        regrets(rows, instance, other, horizon),
        strict=True,
    )
    gaps = [ours - theirs for ours, theirs in pairs]
    return statistics.fmean(gaps), standard_error(gaps)


def ratio(rows: Sequence[Row], instance: Instance, other: str, horizon: int) -> float:
    """The mean regret of breadthwise exploration as a multiple of another method's."""
    ours, theirs = (regrets(rows, instance, name, horizon) for name in (OURS, other))
    return statistics.fmean(ours) / statistics.fmean(theirs)


def share_of_uniform(rows: Sequence[Row], instance: Instance, method: str, horizon: int) -> float:
    """The mean regret of a method as a multiple of that of uniform play."""
    where = instance._asdict() | {"method": method, "horizon": horizon}
    uniform = column(rows, "uniform_regret_per_step", **where)
    found = regrets(rows, instance, method, horizon)
    return statistics.fmean(found) / (horizon * statistics.fmean(uniform))


def last_horizon(rows: Sequence[Row], instance: Instance, method: str) -> int:
    """The longest of a method on an instance."""
    return regret_curve(rows, instance, method)[0][-1]


def rows_at(rows: Sequence[Row], instance: Instance, horizon: int, method: str = OURS) -> list[Row]:
    """Of one instance and horizon."""
    wanted = instance._asdict() | {"method": method, "horizon": horizon}
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def active_shares(rows: Sequence[Row]) -> list[float]:
    """Of the box, at the end of runs of breadthwise exploration."""
    return [row["last_cells"] / 2 ** row["last_level"] for row in rows]


def sharpest_and_flattest(rows: Sequence[Row]) -> list[tuple[Instance, Instance]]:
    """For each nu and d the instances with the least and the largest b."""
    groups: dict[tuple[float, int], list[Instance]] = {}
    for instance in instances_of(rows):
        groups.setdefault((instance.nu, instance.dim), []).append(instance)
    return [(min(group), max(group)) for group in groups.values()]


# --- claims ---------------------------------------------------------------------------------------


def claims(rows: Sequence[Row]) -> list[Row]:
    """Each claim with what was measured and whether it holds."""
    instances, extremes = instances_of(rows), sharpest_and_flattest(rows)
    sharp, pairs = [pair[0] for pair in extremes], [pair for pair in extremes if len(set(pair)) > 1]
    longest, short = common_horizon(rows, OURS, BPE), common_horizon(rows, *NAMES)
    bounded = [each for each in instances if at_least(each, OURS) is not None]
    found = [
        _everywhere(
            f"breadthwise: slope over the last {LAST} horizons at most {TOLERANCE:g} above the "
            "exponent of proposition 2",
            instances,
            lambda each: late_slope(rows, each, OURS).slope <= at_most(each, OURS) + TOLERANCE,
            lambda each: f"{late_slope(rows, each, OURS).slope - at_most(each, OURS):+.2f}",
        ),
        _everywhere(
            "breadthwise: its interval not below the exponent of proposition 1, where b > nu",
            bounded,
            lambda each: late_slope(rows, each, OURS).high >= (at_least(each, OURS) or 0.0),
            lambda each: f"{late_slope(rows, each, OURS).high:.2f}",
        ),
        _everywhere(
            "breadthwise: the slope is less on the sharpest instance of each nu and d than on the "
            "flattest, by more than two standard errors",
            [flat for _, flat in pairs],
            lambda flat: difference_of_slopes(rows, _partner(pairs, flat), flat, 2.0) < 0,
            lambda flat: (
                f"{difference_of_slopes(rows, _partner(pairs, flat), flat):+.2f}, predicted "
                f"{at_most(_partner(pairs, flat), OURS) - at_most(flat, OURS):+.2f}"
            ),
        ),
        _everywhere(
            f"breadthwise loses less than BPE on the sharpest instance of each nu and d, T = "
            f"{longest}, by more than two standard errors",
            sharp,
            lambda each: clearly_less(rows, each, BPE, longest),
            lambda each: f"{ratio(rows, each, BPE, longest):.2f} times",
        ),
        _everywhere(
            "and its regret, as a multiple of that of BPE, is less there than on the flattest",
            [flat for _, flat in pairs],
            lambda flat: (
                ratio(rows, _partner(pairs, flat), BPE, longest) < ratio(rows, flat, BPE, longest)
            ),
            lambda flat: (
                f"{ratio(rows, _partner(pairs, flat), BPE, longest):.2f} and "
                f"{ratio(rows, flat, BPE, longest):.2f}"
            ),
        ),
        _everywhere(
            f"breadthwise loses less than GP-UCB on the sharpest instances, T = {short}, likewise",
            sharp,
            lambda each: clearly_less(rows, each, GP_UCB, short),
            lambda each: f"{ratio(rows, each, GP_UCB, short):.2f} times",
        ),
    ]
    others = [name for name in NAMES if name != OURS]
    over = too_steep(rows, others)
    found.append(
        {
            "claim": f"the other methods: slope over the last {LAST} horizons at most "
            f"{TOLERANCE:g} above what they promise on every function",
            "measured": f"in {len(others) * len(instances) - len(over)} of "
            f"{len(others) * len(instances)} cells"
            + "".join(
                f"; {NAMES[name]} not in {sum(of == name for of, _ in over)}"
                for name in others
                if any(of == name for of, _ in over)
            ),
            "holds": not over,
        }
    )
    kept = [row["best_cell_kept"] for row in rows if row["method"] == OURS]
    found.append(
        {
            "claim": f"the cell of the maximiser is kept in at least {1 - DELTA:.0%} of runs",
            "measured": f"{sum(kept)} of {len(kept)}",
            "holds": sum(kept) >= (1 - DELTA) * len(kept),
        }
    )
    return found


def too_steep(rows: Sequence[Row], methods: Sequence[str]) -> list[tuple[str, Instance]]:
    """Where methods have a slope above what they promise, and the tolerance."""
    return [
        (name, each)
        for name in methods
        for each in instances_of(rows)
        if late_slope(rows, each, name).slope > at_most(each, name) + TOLERANCE
    ]


def _everywhere(
    claim: str,
    instances: Sequence[Instance],
    holds: Callable[[Instance], bool],
    number: Callable[[Instance], str],
) -> Row:
    """A claim of many instances, with the number where it fails."""
    failing = [each for each in instances if not holds(each)]
    measured = f"in {len(instances) - len(failing)} of {len(instances)}"
    if failing:
        measured += "; not in " + "; ".join(f"{each}: {number(each)}" for each in failing)
    return {"claim": claim, "measured": measured, "holds": not failing}


def _partner(pairs: Sequence[tuple[Instance, Instance]], flat: Instance) -> Instance:
    return next(sharp for sharp, other in pairs if other == flat)


def difference_of_slopes(
    rows: Sequence[Row], sharp: Instance, flat: Instance, errors: float = 0.0
) -> float:
    """The slope of breadthwise exploration on the sharp instance minus that on the flat one, plus
    some standard errors."""
    ours, theirs = (slope_of_each(rows, each, OURS) for each in (sharp, flat))
    error = math.hypot(standard_error(ours), standard_error(theirs))
    return statistics.fmean(ours) - statistics.fmean(theirs) + errors * error


def clearly_less(rows: Sequence[Row], instance: Instance, other: str, horizon: int) -> bool:
    """Whether breadthwise exploration loses less, by more than two standard errors."""
    mean, error = advantage(rows, instance, other, horizon)
    return mean < -2 * error
