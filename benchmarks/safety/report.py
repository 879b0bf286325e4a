"""The report of the benchmark of safe exploration."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.common.command_line import Options
from benchmarks.common.repeated_runs import standard_error
from benchmarks.common.tabled_runs import (
    FALSE_ALARM,
    cells,
    most_failures,
    num_refuted,
    refutations,
    section,
    times_section,
)
from benchmarks.common.tables import Row
from benchmarks.safety.figures import draw
from benchmarks.safety.runs import COUNTED, POINTS, TABLES, WRONG
from benchmarks.safety.times import time_row
from benchmarks.tight.runs import DELTA, EPS


def report(rows: Sequence[Row], options: Options) -> str:
    """Markdown from all rows, and the picture."""
    draw(options.output)
    texts = [
        "# Benchmark of safe exploration\n\n"
        "An objective and one outcome of RKHS norm B = 2 on random points, "
        "RBF kernel of lengthscale 0.3 sqrt(d), sigma = 0.1, lambda = sigma^2, delta = 0.1. "
        "Safe is an outcome above its 30 % quantile; one seed lies at the 95 % quantile. `mixture` "
        "and `ladder` are those of `safe_exploration`. The others make the same decisions with the "
        "bounds of `SelfNormalized`, and with the mean plus and minus 2 standard deviations, as "
        "SafeOpt is mostly run. The library does not offer these two.\n",
        _growth(rows),
        _wrong(rows),
        _promises(rows),
        _loops(rows),
        times_section(
            options,
            "An ask and a tell after 100 observations, d = 2, and its ratio to that of `gp_ucb` "
            "with the same bounds: medians of repeats in turns",
            time_row,
        ),
    ]
    return "\n".join(filter(None, texts))


def _growth(rows: Sequence[Row]) -> str:
    found = [
        {
            "problem": problem,
            "bounds": method,
            "runs": len(own),
            "share certified": _mean(own, "share"),
            "cumulative regret": _mean(own, "regret"),
            "with an unsafe trial": _num_unsafe(own),
            "with a false certificate": sum(row["falsely"] for row in own),
            "false alarms": num_refuted(own),
        }
        for problem, method, own in cells(rows, TABLES, "growth")
    ]
    return section(
        "The model is right",
        f"The share of the safe points that is certified after {COUNTED} trials, the cumulative "
        f"regret relative to the best safe point after {TABLES['growth'].horizon} trials, with "
        "standard errors, and the number of runs in which something went wrong. "
        f"N = {POINTS['growth']}.",
        found,
    )


def _wrong(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in cells(rows, TABLES, "wrong"):
        dim, _, wrong = problem.partition(", ")
        others = [row for row in own if not row["limit_below"]]
        found.append(
            {
                "what is wrong": f"{WRONG[wrong]}, {dim}",
                "bounds": method,
                "runs": len(own),
                "unsafe, never stopping": _num_unsafe(own),
                "unsafe, stopping at the alarm": sum(map(_is_unsafe_before_alarm, own)),
                "limit not below -B": len(others),
                "unsafe of these, never stopping": _num_unsafe(others),
            }
            | refutations(own)
        )
    return section(
        "The model is wrong",
        f"Runs with an unsafe trial within {TABLES['wrong'].horizon}, if the alarm is ignored and "
        "if it stops the run, and the number of results when it comes. The library stops or asks "
        "seeds; only this benchmark goes on. Objective and outcome have norm 2B, or a third of the "
        "told lengthscale. Where the limit is below -B, the told B alone says that all points are "
        "safe; the other runs are counted apart.",
        found,
    )


def _is_unsafe_before_alarm(row: Row) -> bool:
    """Whether a trial is unsafe that was asked before the result that refutes the models."""
    unsafe, refuted = row["unsafe"], row["refuted"]
    return unsafe is not None and (refuted is None or unsafe <= refuted)


def _promises(rows: Sequence[Row]) -> str:
    found = [
        {
            "problem": problem,
            "bounds": method,
            "runs": len(own),
            "with an unsafe trial": _num_unsafe(own),
            "with a false certificate": sum(row["falsely"] for row in own),
            "allowed": most_failures(len(own), DELTA),
            "false alarms": num_refuted(own),
            "share certified": _mean(own, "share"),
        }
        for table in ("promises", "anywhere")
        for problem, method, own in cells(rows, TABLES, table)
    ]
    return section(
        "What is promised",
        f"Runs of {TABLES['promises'].horizon} trials on {POINTS['promises']} points, d = 1 and 2 "
        f"in turns. With eps, results look safer by {EPS} than the RKHS part, and the outcome is "
        f"less safe by {EPS} everywhere. With a radius, a trial is unsafe if any point within it "
        "is. The rows of boxes and contexts have the functions of norm B of a box, where the share "
        f"is that at the end. "
        '"least slack" always asks the certified point that is truly nearest to the limit, which '
        f"no method can know. delta = {DELTA} allows so many runs that fail, with a false-alarm "
        f"rate of {FALSE_ALARM:g}.",
        found,
    )


def _loops(rows: Sequence[Row]) -> str:
    found = [
        {
            "around": problem,
            "bounds": method,
            "loops": len(own),
            "least slack": min(row["slack"] for row in own),
            "with an unsafe trial": _num_unsafe(own),
            "false alarms": num_refuted(own),
        }
        for problem, method, own in cells(rows, TABLES, "loops")
    ]
    return section(
        "CertifiedSafe in BoTorch loops",
        f"Loops of {TABLES['loops'].horizon} trials of `CertifiedSafe.optimize` around acquisition "
        "functions, in boxes with d = 1 and 2 in turns, from one seed at the 95 % quantile. The "
        "least slack of all points that were returned; seeds have none.",
        found,
    )


def _num_unsafe(rows: Sequence[Row]) -> int:
    return sum(row["unsafe"] is not None for row in rows)


def _mean(rows: Sequence[Row], column: str) -> str:
    """The mean of a column and its standard error."""
    numbers = [row[column] for row in rows]
    return f"{statistics.fmean(numbers):.3g} ± {standard_error(numbers):.2g}"
