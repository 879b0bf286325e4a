"""Costs of a question, by method."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.common.tables import Row
from benchmarks.practice.settings import PRIMARY


def seconds_of(row: Row) -> float:
    """Of one core, of the questions after the initial ones, their mean in a run."""
    return statistics.fmean(row["seconds"][row["initial"] :])


def cost_ratios(rows: Sequence[Row], first: str, second: str) -> list[float]:
    """Of the paired runs of the primary table: what a question costs, by what it costs the second
    method."""
    seconds: dict[tuple[str, float, int], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["setting"] == PRIMARY:
            cell = (row["problem"], row["noise"], row["seed"])
            seconds[cell][row["method"]] = seconds_of(row)
    return [both[first] / both[second] for both in seconds.values() if {first, second} <= set(both)]
