"""The report of the benchmark of tight bounds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from benchmarks.common.command_line import Options
from benchmarks.common.tabled_runs import (
    FALSE_ALARM,
    cells,
    most_failures,
    num_refuted,
    refutations,
    section,
    times_section,
)
from benchmarks.common.tables import Row, markdown_table
from benchmarks.tight.runs import DELTA, TABLES
from benchmarks.tight.times import time_row


def report(rows: Sequence[Row], options: Options) -> str:
    """Markdown from all rows."""
    time = times_section(
        options,
        "An ask and a tell after 100 observations, relative to SelfNormalized: medians of repeats "
        "in turns",
        time_row,
    )
    texts = [
        "# Tight bounds\n",
        _regret(rows),
        _coverage(rows),
        _unequal(rows),
        _alarm(rows),
        _lock_out(rows),
        time,
    ]
    return "\n".join(filter(None, texts))


def _regret(rows: Sequence[Row]) -> str:
    text = (
        "## Regret\n\nRegret of GP-UCB relative to that with SelfNormalized on the same functions, "
        "with standard errors. Enlarged bounds are told eps = 0.1, and the others are told that "
        "the model is right; eps is the true one.\n"
    )
    for table in ("regret", "misspecified"):
        found: list[Row] = []
        for problem in TABLES[table].problems:
            by_method = {
                method: {row["seed"]: row["regret"] for row in own}
                for at, method, own in cells(rows, TABLES, table)
                if at == problem
            }
            plain = by_method.get("SelfNormalized")
            if not plain:
                continue
            row: Row = {"problem": problem, "SelfNormalized": statistics.fmean(plain.values())}
            for method in TABLES[table].methods[1:]:
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
    found = [
        {
            "problem": problem,
            "bound": method,
            "runs": len(own),
            "failed": sum(row["failed"] for row in own),
            "allowed": most_failures(len(own), DELTA),
            "false alarms": num_refuted(own),
        }
        for problem, method, own in cells(rows, TABLES, "coverage")
    ]
    return section(
        "Coverage",
        "Runs in which a bound of the RKHS part failed at any of 300 points at any "
        f"of 200 steps. delta = {DELTA} allows so many with a false-alarm rate of "
        f"{FALSE_ALARM:g}. Kernels, norms and noises are drawn with the seed; with pointwise "
        "enlargement the observations have errors of 0.1 besides.",
        found,
    )


def _unequal(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    by_cell = {(at, method): own for at, method, own in cells(rows, TABLES, "unequal")}
    for (problem, method), missed in by_cell.items():
        own = by_cell.get((problem.replace("not told", "told"), method))
        if "not told" not in problem or own is None:
            continue
        regrets, others = ({row["seed"]: row["regret"] for row in each} for each in (own, missed))
        is_bound = method != "2.0"
        found.append(
            {
                "d": problem[4],
                "bound": method,
                "runs": len(own),
                "regret, told / not told": _ratio(regrets, others),
                "failed, told": sum(row["failed"] for row in own) if is_bound else "",
                "allowed": most_failures(len(own), DELTA) if is_bound else "",
                "failed, not told": sum(row["failed"] for row in missed) if is_bound else "",
            }
        )
    return section(
        "Results with different noise",
        "The noise of every step has its own standard deviation, from a tenth of sigma to ten "
        "times sigma, uniform in the logarithm. Methods are told the standard errors, or take all "
        "results as equally noisy, with the same sigma. Runs whose bounds failed at any of 300 "
        f"points at any of 150 steps; delta = {DELTA} allows so many.",
        found,
    )


def _alarm(rows: Sequence[Row]) -> str:
    found: list[Row] = []
    for problem, method, own in cells(rows, TABLES, "alarm"):
        most = max((row["refuted"] for row in own if row["refuted"] is not None), default="-")
        found.append(
            {"problem": problem, "player": method, "runs": len(own)}
            | refutations(own)
            | {"after, most": most, "with a false bound": sum(row["failed"] for row in own)}
        )
    return section(
        "Alarm",
        "What is wrong: the norm is 2B; the lengthscale is a third of the told one; "
        "the noise is twice the told one. Trials until the model is refuted, within 150.",
        found,
    )


def _lock_out(rows: Sequence[Row]) -> str:
    found = [
        {
            "problem": problem,
            "method": method,
            "regret": statistics.fmean(row["regret"] for row in own),
            "last step with a regret": max(row["last"] for row in own),
        }
        for problem, method, own in cells(rows, TABLES, "lock-out")
    ]
    return section("Lock-out", "The lock-out instance, 300 steps.", found)
