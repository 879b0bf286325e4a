"""The report of the benchmark of failures."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

from benchmarks.common.differences import estimate
from benchmarks.common.repeated_runs import standard_error
from benchmarks.common.tabled_runs import seconds_of_methods, section
from benchmarks.common.tables import Row
from benchmarks.failures.methods import METHODS, OURS, PENDING
from benchmarks.failures.tasks import TASKS

_TITLE = """# Failures

Evaluations fail on a part of each box. Runs have 40 trials, failed ones included, and no noise.
`integrated_ei` is told of failures by `abandon(trial, failed=True)`; *pending for ever* is
`integrated_ei` that is told nothing of them. Ax and Optuna have their defaults (Ax's `Client`,
`mark_trial_failed`; the state `FAIL`). The library may be changed for what happens on its own four
tasks; the four of others are only reported.

"""
_REGRET = """log10 of the regret of the best result, in ranges of the loss: 0 is the worst point of
the box, -2 is 1 % of the range. Means with standard errors over the seeds. *Fails* is the share of
the box, of 131,072 Sobol points."""
_SHARES = "The share of the 40 trials that failed, in percent, with standard errors over the seeds."
_DIFFERENCES = """Differences of log10 regret, paired by task and seed: below 0 the first method is
better. The first standard error holds for other tasks like these, the one in brackets is that of
the runs on these."""
_NOTHING = """Two tasks on which nothing fails. Without a failed trial there is no model of success,
so the points are the same, digit by digit."""


def report(rows: Sequence[Row]) -> str:
    """Markdown of the rows there are."""
    text = _TITLE
    text += section("Regret", _REGRET, _table(rows, _log_regret, "{:+.2f} ± {:.2f}"))
    text += "\n" + section("Failed trials", _SHARES, _table(rows, _failed, "{:.0f} ± {:.0f}"))
    text += "\n" + section("Differences", _DIFFERENCES, _differences(rows))
    text += "\n" + section("Where nothing fails", _NOTHING, _nothing_fails(rows))
    return text + seconds_of_methods(rows, METHODS)


def _log_regret(row: Row) -> float:
    return math.log10(TASKS[row["problem"]].regret(row["losses"]))


def _failed(row: Row) -> float:
    return 100 * statistics.fmean(loss is None for loss in row["losses"])


def _table(rows: Sequence[Row], score: Callable[[Row], float], form: str) -> list[Row]:
    """A row for each task on which something fails, with a column for each method."""
    found: list[Row] = []
    for name, task in TASKS.items():
        own = [row for row in rows if row["problem"] == name]
        if not task.failing or not own:
            continue
        cells = {}
        for method in METHODS:
            scores = [score(row) for row in own if row["method"] == method]
            cells[method] = (
                form.format(statistics.fmean(scores), standard_error(scores)) if scores else "-"
            )
        about = {"task": name, "source": task.source or "own", "fails": f"{task.failing:.0%}"}
        found.append(about | cells)
    return found


def _differences(rows: Sequence[Row]) -> list[Row]:
    """Of this library's method to each other one, on its own tasks and on those of others."""
    regrets: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        if TASKS[row["problem"]].failing:
            regrets[row["method"]][row["problem"], row["seed"]] = _log_regret(row)
    found: list[Row] = []
    for other in METHODS:
        for whose in ("own", "of others"):
            pairs: dict[str, list[float]] = defaultdict(list)
            for run in sorted(regrets[OURS].keys() & regrets[other].keys()):
                if bool(TASKS[run[0]].source) == (whose == "of others"):
                    pairs[run[0]].append(regrets[OURS][run] - regrets[other][run])
            if other == OURS or not pairs:
                continue
            about = estimate(pairs)
            found.append(
                {
                    "difference": f"{OURS} - {other}",
                    "tasks": whose,
                    "log10 regret": str(about),
                    "better in": f"{about.wins:.0%}",
                    "runs": about.runs,
                }
            )
    return found


def _nothing_fails(rows: Sequence[Row]) -> list[Row]:
    found: list[Row] = []
    for name, task in TASKS.items():
        losses: dict[str, dict[int, list[float]]] = {OURS: {}, PENDING: {}}
        for row in rows:
            if row["problem"] == name and not task.failing:
                losses[row["method"]][row["seed"]] = row["losses"]
        seeds = losses[OURS].keys() & losses[PENDING].keys()
        if seeds:
            same = all(losses[OURS][seed] == losses[PENDING][seed] for seed in seeds)
            found.append({"task": name, "runs": len(seeds), "the same points": same})
    return found
