"""The report of the benchmark of safe exploration."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from scipy.stats import binom

from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, markdown_table
from benchmarks.safety.runs import COUNTED, HORIZONS, METHODS, POINTS, PROBLEMS, WRONG
from benchmarks.safety.times import time_rows
from benchmarks.tight.runs import DELTA, EPS

# The false-alarm rate of a test that a share of failures is at most delta.
_FALSE_ALARM = 1e-4


def report(rows: Sequence[Row], options: Options) -> str:
    """Markdown from all rows."""
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
    ]
    machine, table = time_rows(options)
    if table:
        texts.append(
            "## Time of a step\n\nAn ask and a tell after 100 observations, d = 2, and its ratio "
            "to that of `gp_ucb` with the same bounds: medians of repeats in turns, one thread, on "
            f"{machine}.\n\n" + markdown_table(table)
        )
    return "\n".join(texts)


def _growth(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in _of_table(rows, "growth"):
        found.append(
            {
                "problem": problem,
                "bounds": method,
                "runs": len(own),
                "share certified": _mean(own, "share"),
                "cumulative regret": _mean(own, "regret"),
                "with an unsafe trial": _num_unsafe(own),
                "with a false certificate": sum(row["falsely"] for row in own),
                "false alarms": _num_refuted(own),
            }
        )
    return _section(
        "The model is right",
        f"The share of the safe points that is certified after {COUNTED} trials, the cumulative "
        f"regret relative to the best safe point after {HORIZONS['growth']} trials, with standard "
        f"errors, and the number of runs in which something went wrong. N = {POINTS['growth']}.",
        found,
    )


def _wrong(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in _of_table(rows, "wrong"):
        dim, _, wrong = problem.partition(", ")
        others = [row for row in own if row["at_first"] == 1]
        alarms = sorted(row["refuted"] for row in own if row["refuted"] is not None)
        found.append(
            {
                "what is wrong": f"{WRONG[wrong]}, {dim}",
                "bounds": method,
                "runs": len(own),
                "unsafe, never stopping": _num_unsafe(own),
                "unsafe, stopping at the alarm": sum(map(_is_unsafe_before_alarm, own)),
                "only the seed certified at first": len(others),
                "unsafe of these, never stopping": _num_unsafe(others),
                "refuted": len(alarms),
                "after, median": statistics.median(alarms) if alarms else "-",
            }
        )
    return _section(
        "The model is wrong",
        f"Runs with an unsafe trial within {HORIZONS['wrong']}, if the alarm is ignored and if it "
        "stops the run, and the number of results when it comes. The library stops or asks seeds; "
        "only this benchmark goes on. Objective and outcome have norm 2B, or a third of the told "
        "lengthscale. Where the limit is below -B, the told B alone certifies all points before "
        "any result; the runs without this are counted apart.",
        found,
    )


def _is_unsafe_before_alarm(row: Row) -> bool:
    """Whether a trial is unsafe that was asked before the result that refutes the models."""
    unsafe, refuted = row["unsafe"], row["refuted"]
    return unsafe is not None and (refuted is None or unsafe <= refuted)


def _promises(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in _of_table(rows, "promises"):
        found.append(
            {
                "problem": problem,
                "bounds": method,
                "runs": len(own),
                "with an unsafe trial": _num_unsafe(own),
                "with a false certificate": sum(row["falsely"] for row in own),
                "allowed": int(binom.isf(_FALSE_ALARM, len(own), DELTA)),
                "false alarms": _num_refuted(own),
                "share certified": _mean(own, "share"),
            }
        )
    return _section(
        "What is promised",
        f"Runs of {HORIZONS['promises']} trials on {POINTS['promises']} points, d = 1 and 2 in "
        f"turns. With eps, results look safer by {EPS} than the RKHS part, and the outcome is less "
        f"safe by {EPS} everywhere. With a radius, a trial is unsafe if any point within it is. "
        '"least slack" always asks the certified point that is truly nearest to the limit, which '
        f"no method can know. delta = {DELTA} allows so many runs that fail, with a false-alarm "
        f"rate of {_FALSE_ALARM:g}.",
        found,
    )


def _section(title: str, text: str, found: Sequence[Row]) -> str:
    return f"## {title}\n\n{text}\n\n{markdown_table(found)}" if found else ""


def _of_table(rows: Sequence[Row], table: str) -> Iterator[tuple[str, str, list[Row]]]:
    """The rows of a table by problem and method."""
    for problem in PROBLEMS[table]:
        for method in METHODS[table]:
            wanted = table, problem, method
            own = [row for row in rows if (row["table"], row["problem"], row["method"]) == wanted]
            if own:
                yield problem, method, own


def _num_unsafe(rows: Sequence[Row]) -> int:
    return sum(row["unsafe"] is not None for row in rows)


def _num_refuted(rows: Sequence[Row]) -> int:
    return sum(row["refuted"] is not None for row in rows)


def _mean(rows: Sequence[Row], column: str) -> str:
    """The mean of a column and its standard error."""
    numbers = [row[column] for row in rows]
    mean = statistics.fmean(numbers)
    if len(numbers) < 2:
        return f"{mean:.3g}"
    return f"{mean:.3g} ± {statistics.stdev(numbers) / len(numbers) ** 0.5:.2g}"
