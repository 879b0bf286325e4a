"""The report of the benchmark of tight bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from scipy.stats import binom

from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, markdown_table
from benchmarks.tight.runs import DELTA, METHODS, PROBLEMS, of_table
from benchmarks.tight.times import time_rows

# The false-alarm rate of a test that a share of failures is at most delta.
_FALSE_ALARM = 1e-4


def report(rows: Sequence[Row], options: Options) -> str:
    """Markdown from all rows."""
    texts = ["# Tight bounds\n", _regret(rows), _coverage(rows), _alarm(rows), _lock_out(rows)]
    machine, table = time_rows(options)
    if table:
        texts.append(
            "## Time of a step\n\nAn ask and a tell after 100 observations, relative to "
            f"SelfNormalized: medians of repeats in turns, one thread, on {machine}.\n\n"
            + markdown_table(table)
        )
    return "\n".join(texts)


def _regret(rows: Sequence[Row]) -> str:
    text = (
        "## Regret\n\nRegret of GP-UCB relative to that with SelfNormalized on the same functions, "
        "with standard errors. Enlarged bounds are told eps = 0.1, and the others are told that "
        "the model is right; eps is the true one.\n"
    )
    for table in ("regret", "misspecified"):
        found: list[Row] = []
        for problem in PROBLEMS[table]:
            by_method = {
                method: {row["seed"]: row["regret"] for row in own}
                for at, method, own in of_table(rows, table)
                if at == problem
            }
            plain = by_method.get("SelfNormalized")
            if not plain:
                continue
            row: Row = {"problem": problem, "SelfNormalized": statistics.fmean(plain.values())}
            for method in METHODS[table][1:]:
                row[method] = _ratio(by_method.get(method, {}), plain)
            found.append(row)
        if found:
            text += "\n" + markdown_table(found)
    return text


def _ratio(own: dict[int, float], plain: dict[int, float]) -> str:
    """The ratio of the mean regrets over common seeds, and its standard error by the delta
    method."""
    seeds = [seed for seed in own if seed in plain]
    if len(seeds) < 2:
        return "-"
    base = statistics.fmean(plain[seed] for seed in seeds)
    ratio = statistics.fmean(own[seed] for seed in seeds) / base
    rest = [(own[seed] - ratio * plain[seed]) / base for seed in seeds]
    return f"{ratio:.2f} ± {statistics.stdev(rest) / math.sqrt(len(seeds)):.2f}"


def _coverage(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in of_table(rows, "coverage"):
        failed = sum(row["failed"] for row in own)
        most = int(binom.isf(_FALSE_ALARM, len(own), DELTA))
        alarms = sum(row["refuted"] is not None for row in own)
        found.append(
            {
                "problem": problem,
                "bound": method,
                "runs": len(own),
                "failed": failed,
                "allowed": most,
                "false alarms": alarms,
            }
        )
    if not found:
        return ""
    return (
        "## Coverage\n\nRuns in which a bound of the RKHS part failed at any of 300 points at any "
        f"of 200 steps. delta = {DELTA} allows so many with a false-alarm rate of "
        f"{_FALSE_ALARM:g}. Kernels, norms and noises are drawn with the seed; with pointwise "
        "enlargement the observations have errors of 0.1 besides.\n\n" + markdown_table(found)
    )


def _alarm(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in of_table(rows, "alarm"):
        at = sorted(row["refuted"] for row in own if row["refuted"] is not None)
        found.append(
            {
                "problem": problem,
                "player": method,
                "runs": len(own),
                "refuted": len(at),
                "after, median": statistics.median(at) if at else "-",
                "after, most": at[-1] if at else "-",
                "with a false bound": sum(row["failed"] for row in own),
            }
        )
    if not found:
        return ""
    return (
        "## Alarm\n\nWhat is wrong: the norm is 2B; the lengthscale is a third of the told one; "
        "the noise is twice the told one. Trials until the model is refuted, within 150.\n\n"
        + markdown_table(found)
    )


def _lock_out(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in of_table(rows, "lock-out"):
        found.append(
            {
                "problem": problem,
                "method": method,
                "regret": statistics.fmean(row["regret"] for row in own),
                "last step with a regret": max(row["last"] for row in own),
            }
        )
    if not found:
        return ""
    return "## Lock-out\n\nThe lock-out instance, 300 steps.\n\n" + markdown_table(found)
