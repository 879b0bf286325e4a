"""Differences of log10 regret between two methods, of runs with the same seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """A mean difference.

    With m_p the mean over the runs of problem p, of P problems: the mean is that of all m_p; its
    standard error sd(m_p) / sqrt(P), which holds for other problems like these, since m_p varies
    with the problem and with its runs; that of the runs alone sqrt(sum_p s_p^2 / n_p) / P, s_p^2
    the variance of the n_p differences of p, which holds for these problems.

    Args:
        mean: Below 0, the first method is better.
        error: Of the mean, clustered by problem; NaN for a single one.
        error_of_runs: Of the mean on these problems; NaN where a problem has no two runs.
        problems: How many.
        runs: How many differences.
        wins: The share of these where the first method is better, ties counting half.
    """

    mean: float
    error: float
    error_of_runs: float
    problems: int
    runs: int
    wins: float

    def __str__(self) -> str:
        error, of_runs = (
            "-" if math.isnan(x) else f"{x:.2f}" for x in (self.error, self.error_of_runs)
        )
        return f"{self.mean:+.2f} ± {error} ({of_runs})"


def estimate(differences: Mapping[str, Sequence[float]]) -> Estimate:
    """The mean of the differences, which are given by problem; there must be one at least."""
    means = [statistics.fmean(few) for few in differences.values()]
    count = len(means)
    error = statistics.stdev(means) / math.sqrt(count) if count > 1 else math.nan
    variances = [
        statistics.variance(few) / len(few) if len(few) > 1 else math.nan
        for few in differences.values()
    ]
    wins = [0.5 if x == 0 else float(x < 0) for few in differences.values() for x in few]
    return Estimate(
        statistics.fmean(means),
        error,
        math.sqrt(sum(variances)) / count,
        count,
        len(wins),
        statistics.fmean(wins),
    )
