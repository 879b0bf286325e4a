"""Ranks and scores of all methods, cell by cell."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence

from benchmarks.common.tables import Row
from benchmarks.practice.differences import final_regret
from benchmarks.practice.methods import RANDOM

# Setting, problem, noise.
Cell = tuple[str, str, float]


def log_regrets(rows: Sequence[Row], kind: str) -> dict[Cell, dict[str, dict[int, float]]]:
    """log10 of the final regret, of a kind of `final_regret`, of the methods that recommend such
    points: by cell, method and seed."""
    found: dict[Cell, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        regret = final_regret(row, kind)
        if regret is not None:
            cell = (row["setting"], row["problem"], row["noise"])
            found[cell][row["method"]][row["seed"]] = math.log10(regret)
    return found


def means(of_cell: dict[str, dict[int, float]]) -> dict[str, float]:
    """The mean log10 regret of each method, over the seeds that all of them have."""
    shared = shared_seeds(of_cell)
    if not shared:
        return {}
    return {
        method: statistics.fmean(seeds[seed] for seed in shared)
        for method, seeds in of_cell.items()
    }


def shared_seeds(of_cell: dict[str, dict[int, float]]) -> set[int]:
    """The seeds that all methods have."""
    return set.intersection(*(set(seeds) for seeds in of_cell.values()))


def ranks(scores: dict[str, float]) -> dict[str, float]:
    """From 1 for the least; equal ones share the mean of their ranks."""
    return {
        method: sum((other < score) + (other == score) / 2 for other in scores.values()) + 0.5
        for method, score in scores.items()
    }


def scores(of_cell: dict[str, dict[int, float]]) -> dict[str, float]:
    """The mean over the shared seeds of the log10 of the regret, less the log10 of the mean regret
    of random search over these seeds; empty where that is missing."""
    found = means(of_cell)
    if RANDOM not in found:
        return {}
    regrets = [10 ** of_cell[RANDOM][seed] for seed in shared_seeds(of_cell)]
    return {
        method: value - math.log10(statistics.fmean(regrets)) for method, value in found.items()
    }
