"""The report of the benchmark of limits."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from benchmarks.common.differences import estimate
from benchmarks.common.repeated_runs import standard_error
from benchmarks.common.tabled_runs import seconds_of_methods, section
from benchmarks.common.tables import Row
from benchmarks.limits.methods import METHODS, OURS
from benchmarks.limits.tasks import TASKS, log_regret, sample

_TITLE = """# Limits on other outcomes

The five designs of `benchmarks.real` with constraints, which are outcomes that are measured with
the loss, without noise; each must be at most 0. `integrated_ei` is told them as `outcomes`, BoTorch
as `constraints` of qLogNEI with an output of the model for each, Optuna as `constraints_func` of
`GPSampler`; *penalty* is `integrated_ei` that is told the loss plus a penalty, as in
`benchmarks.real`. The library may be changed for what happens on the designs to develop on; the
others are only reported.

"""
_REGRET = """log10 of the regret of the best result within all limits, in units of the least loss:
-2 is 1 % more than the least loss. Means with standard errors over the seeds. *Within* is the share
of 16,384 Sobol points that keeps all limits; where a run finds no such point, the greatest loss of
those counts."""
_SHARES = "The share of the trials that kept all limits, in percent, with standard errors."
_DIFFERENCES = """Differences of log10 regret, paired by task and seed: below 0 `integrated_ei` is
better. The first standard error holds for other tasks like these, the one in brackets is that of
the runs on these."""


def report(rows: Sequence[Row]) -> str:
    """Markdown of the rows there are."""
    text = _TITLE
    text += section("Regret", _REGRET, _table(rows, _log_regret, "{:+.2f} ± {:.2f}"))
    text += "\n" + section("Within the limits", _SHARES, _table(rows, _kept, "{:.0f} ± {:.0f}"))
    text += "\n" + section("Differences", _DIFFERENCES, _differences(rows))
    return text + seconds_of_methods(rows, METHODS)


def _log_regret(row: Row) -> float:
    return log_regret(row["problem"], row["losses"])


def _kept(row: Row) -> float:
    return 100 * statistics.fmean(loss is not None for loss in row["losses"])


def _table(rows: Sequence[Row], score: Callable[[Row], float], form: str) -> list[Row]:
    """A row for each task, with a column for each method."""
    found: list[Row] = []
    for name, task in TASKS.items():
        own = [row for row in rows if row["problem"] == name]
        if not own:
            continue
        _, within, num = sample(name)
        cells = {}
        for method in METHODS:
            scores = [score(row) for row in own if row["method"] == method]
            cells[method] = (
                form.format(statistics.fmean(scores), standard_error(scores)) if scores else "-"
            )
        about = {"design": name, "half": task.half, "limits": num, "within": f"{within:.1%}"}
        found.append(about | cells)
    return found


def _differences(rows: Sequence[Row]) -> list[Row]:
    """Of this library's method to each other one, on each half and on both."""
    regrets: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        regrets[row["method"]][row["problem"], row["seed"]] = _log_regret(row)
    found: list[Row] = []
    for other in METHODS:
        for half in ("develop", "report", "both"):
            pairs: dict[str, list[float]] = defaultdict(list)
            for run in sorted(regrets[OURS].keys() & regrets[other].keys()):
                if half in ("both", TASKS[run[0]].half):
                    pairs[run[0]].append(regrets[OURS][run] - regrets[other][run])
            if other == OURS or not pairs:
                continue
            about = estimate(pairs)
            found.append(
                {
                    "difference": f"{OURS} - {other}",
                    "half": half,
                    "log10 regret": str(about),
                    "better in": f"{about.wins:.0%}",
                    "runs": about.runs,
                }
            )
    return found
