"""Differences of log10 regret between two methods, paired by cell and seed."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.common.tables import Row
from benchmarks.practice.methods import METHODS

# Fewer runs tell nothing of a cell.
LEAST_RUNS = 3


@dataclass(frozen=True)
class Pair:
    """Two runs of one cell with the same seed.

    Args:
        setting: Of the cell.
        problem: Likewise.
        noise: Likewise.
        seed: Of both runs.
        value: log10 regret of the first method minus that of the second.
    """

    setting: str
    problem: str
    noise: float
    seed: int
    value: float


@dataclass(frozen=True)
class Estimate:
    """A mean difference.

    With m_p the mean over the pairs of problem p, of P problems: the mean is that of all m_p; its
    standard error sd(m_p) / sqrt(P), which holds for other problems like these, since m_p varies
    with the problem and with its runs; that of the runs alone sqrt(sum_p s_p^2 / n_p) / P, s_p^2
    the variance of the n_p pairs of p within their cells, which holds for these problems.

    Args:
        mean: Below 0, the first method is better.
        error: Of the mean, clustered by problem; NaN for a single one.
        error_of_runs: Of the mean on these problems; NaN where a problem has no two runs of a cell.
        problems: How many.
        runs: How many pairs.
        wins: The share of the pairs where the first method is better, ties counting half.
        median: Of all m_p.
    """

    mean: float
    error: float
    error_of_runs: float
    problems: int
    runs: int
    wins: float
    median: float

    def __str__(self) -> str:
        error, of_runs = (
            "-" if math.isnan(x) else f"{x:.2f}" for x in (self.error, self.error_of_runs)
        )
        return f"{self.mean:+.2f} ± {error} ({of_runs})"


def final_regret(row: Row, kind: str) -> float | None:
    """The regret at the end of what a run recommends of that kind, or None; "own" takes the kind
    that the users of its method get."""
    regret = row[METHODS[row["method"]].recommends if kind == "own" else kind]
    if isinstance(regret, list):
        return regret[-1] if regret else None
    return regret


def paired(rows: Sequence[Row], first: str, second: str, kind: str) -> list[Pair]:
    """All pairs that both methods have a recommendation of that kind for, in a fixed order."""
    regrets: dict[str, dict[tuple[str, str, float, int], float]] = {first: {}, second: {}}
    for row in rows:
        regret = final_regret(row, kind) if row["method"] in regrets else None
        if regret is not None:
            cell = (row["setting"], row["problem"], row["noise"], row["seed"])
            regrets[row["method"]][cell] = math.log10(regret)
    common = sorted(regrets[first].keys() & regrets[second].keys())
    return [Pair(*cell, regrets[first][cell] - regrets[second][cell]) for cell in common]


def estimate(pairs: Sequence[Pair]) -> Estimate:
    """The mean difference of pairs; there must be one at least."""
    of_problems: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        of_problems[pair.problem].append(pair)
    means = [statistics.fmean(pair.value for pair in few) for few in of_problems.values()]
    count = len(means)
    error = statistics.stdev(means) / math.sqrt(count) if count > 1 else math.nan
    variances = [_variance_of_mean(few) for few in of_problems.values()]
    wins = [0.5 if pair.value == 0 else float(pair.value < 0) for pair in pairs]
    return Estimate(
        statistics.fmean(means),
        error,
        math.sqrt(sum(variances)) / count,
        count,
        len(pairs),
        statistics.fmean(wins),
        statistics.median(means),
    )


def _by_cell(pairs: Sequence[Pair]) -> Iterator[tuple[tuple[str, str, float], list[Pair]]]:
    """The pairs of each setting, problem and noise."""
    cells: dict[tuple[str, str, float], list[Pair]] = defaultdict(list)
    for pair in pairs:
        cells[pair.setting, pair.problem, pair.noise].append(pair)
    yield from cells.items()


def known_cells(pairs: Sequence[Pair]) -> dict[tuple[str, str, float], Estimate]:
    """The estimates of the cells that have at least `LEAST_RUNS` pairs."""
    return {cell: estimate(few) for cell, few in _by_cell(pairs) if len(few) >= LEAST_RUNS}


def _variance_of_mean(pairs: Sequence[Pair]) -> float:
    """Of one problem, from the spread within its cells; NaN where each cell has one pair."""
    squares, freedom = 0.0, 0
    for _, few in _by_cell(pairs):
        mean = statistics.fmean(pair.value for pair in few)
        squares += sum((pair.value - mean) ** 2 for pair in few)
        freedom += len(few) - 1
    return squares / freedom / len(pairs) if freedom else math.nan
