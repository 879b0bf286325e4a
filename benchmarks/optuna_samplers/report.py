"""The report of the samplers."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.common.differences import estimate
from benchmarks.common.tables import Row, markdown_table
from benchmarks.optuna_samplers.samplers import OURS, SAMPLERS

_INTRODUCTION = """# Samplers of Optuna

`StrategySampler` asks a strategy of this library for an Optuna study
([in Optuna](../../../docs/in_optuna.md)).
"""
_COMPARED = """
## Compared

On functions that `benchmarks.real` develops on, each with its number of evaluations and the same
eight first points and noise for all samplers, one at a time; noise of 0.5 % of the range. Regret is
that of the point with the largest observation. Differences are in log10 of it, paired by problem
and seed: below 0 the first sampler is better. The first standard error holds for other problems
like these; the one in brackets is that of the runs on these. Seconds are those of one core for a
question and its answer.
"""
_AT_ONCE = """
## Several processes on one SQLite storage

Each optimises the same study, with an objective that takes no time, so that they ask as often as
they can. A question misses another one where both were asked in the same state. The trials that
were not asked by the strategy are the first ones, when no trial had said yet what the space is.
"""


def report(rows: Sequence[Row], num_missing: int, checks: Sequence[Row]) -> str:
    """Markdown.

    Args:
        rows: Of the runs there are.
        num_missing: How many are not.
        checks: Rows of processes at once.
    """
    text = _INTRODUCTION
    if rows:
        text += _COMPARED + "\n" + markdown_table(_of_samplers(rows))
        differences = _differences(rows)
        if differences:
            text += "\n" + markdown_table(differences)
        if num_missing:
            text += f"\n{num_missing} runs are missing yet.\n"
    if checks:
        text += _AT_ONCE + "\n" + markdown_table(checks)
    return text


def _of_samplers(rows: Sequence[Row]) -> list[Row]:
    table = []
    for name in SAMPLERS:
        own = [row for row in rows if row["method"] == name]
        if own:
            regrets = [math.log10(row["regret"]) for row in own]
            table.append(
                {
                    "sampler": name,
                    "mean log10 regret": f"{statistics.fmean(regrets):+.2f}",
                    "seconds a question": statistics.fmean(row["seconds"] for row in own),
                    "runs": len(own),
                }
            )
    return table


def _paired(rows: Sequence[Row], first: str, second: str) -> dict[str, list[float]]:
    """Differences of log10 regret, by problem."""
    regrets: dict[str, dict[tuple[str, int], float]] = defaultdict(dict)
    for row in rows:
        regrets[row["method"]][row["problem"], row["seed"]] = math.log10(row["regret"])
    found: dict[str, list[float]] = defaultdict(list)
    for run in sorted(regrets[first].keys() & regrets[second].keys()):
        found[run[0]].append(regrets[first][run] - regrets[second][run])
    return found


def _differences(rows: Sequence[Row]) -> list[Row]:
    table = []
    for first in OURS:
        for second in SAMPLERS:
            pairs = _paired(rows, first, second) if second != first else {}
            if pairs:
                found = estimate(pairs)
                table.append(
                    {
                        "difference": f"{first} - {second}",
                        "log10 regret": str(found),
                        "better in": f"{found.wins:.0%}",
                        "problems": found.problems,
                        "runs": found.runs,
                    }
                )
    return table
