"""The report of the benchmark of results that differ in noise."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.common.differences import estimate
from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tabled_runs import seconds_of_methods, section
from benchmarks.common.tables import Row
from benchmarks.unequal_noise.runs import BASE, METHODS, PROBLEMS, TOLD

_TITLE = f"""# Results that differ in noise

The noise of each result has its own standard deviation, from a tenth to ten times {BASE:.0%} of the
range of the function, uniform in the logarithm; the noise is the same for all methods. *Told*: the
standard error comes with each result. BoTorch's loop is a `SingleTaskGP` with `train_Yvar` and
qLogNEI. Runs have 40 trials.

"""
_REGRET = """log10 of the regret of the evaluated point with the largest posterior mean, in ranges
of the function. Means with standard errors over the seeds."""
_DIFFERENCES = """Differences of log10 regret, paired by function and seed: below 0 the first method
is better. The first standard error holds for other functions like these, the one in brackets is
that of the runs on these."""


def report(rows: Sequence[Row]) -> str:
    """Markdown of the rows there are."""
    table: list[Row] = []
    for problem in PROBLEMS:
        cells = {
            method: column(rows, "log_regret", problem=problem, method=method) for method in METHODS
        }
        means = {
            method: f"{statistics.fmean(own):+.2f} ± {standard_error(own):.2f}" if own else "-"
            for method, own in cells.items()
        }
        if any(cells.values()):
            runs = min(map(len, cells.values()))
            table.append({"function": problem} | means | {"runs of each": runs})
    found: list[Row] = []
    for other in METHODS:
        pairs = {problem: _paired(rows, problem, other) for problem in PROBLEMS}
        pairs = {problem: own for problem, own in pairs.items() if own}
        if other != TOLD and pairs:
            about = estimate(pairs)
            found.append(
                {
                    "difference": f"{TOLD} - {other}",
                    "log10 regret": str(about),
                    "better in": f"{about.wins:.0%}",
                    "runs": about.runs,
                }
            )
    text = _TITLE + section("Regret", _REGRET, table)
    return (
        text
        + "\n"
        + section("Differences", _DIFFERENCES, found)
        + seconds_of_methods(rows, METHODS)
    )


def _paired(rows: Sequence[Row], problem: str, other: str) -> list[float]:
    """The differences of the first method to another one, by seed."""
    own, others = (
        {
            row["seed"]: row["log_regret"]
            for row in rows
            if (row["problem"], row["method"]) == (problem, method)
        }
        for method in (TOLD, other)
    )
    return [own[seed] - others[seed] for seed in sorted(own.keys() & others.keys())]
