"""Repeated runs: columns, means and standard errors of their rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.common.tables import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def column(rows: Sequence[Row], name: str, **where: Any) -> list[Any]:
    """One column of the rows whose other columns have these values, in the order of the seeds."""
    kept = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return [row[name] for row in sorted(kept, key=lambda row: row["seed"])]


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; 0 for a single value, which tells nothing about it."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0


def difference(rows: Sequence[Row], score: str, first: str, second: str) -> tuple[float, float]:
    """The mean paired difference first - second of a score over the seeds, and its standard error.

    Args:
        rows: Of one experiment in one setting.
        score: The name of the column.
        first: A method.
        second: Another one.
    """
    ours, theirs = (column(rows, score, method=method) for method in (first, second))
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    return statistics.fmean(gaps), standard_error(gaps)


def is_less(rows: Sequence[Row], score: str, first: str, second: str) -> bool:
    """Whether a score of the first method is lower by more than two standard errors of the paired
    difference."""
    mean, error = difference(rows, score, first, second)
    return mean < -2 * error


def mean_and_error(values: Sequence[float]) -> str:
    """The mean with its standard error, for quantities around 1."""
    return f"{statistics.fmean(values):.3f} ± {standard_error(values):.3f}"


def mean_and_sd(values: Sequence[float]) -> str:
    """The mean and the standard deviation of single runs, for quantities of hundreds."""
    if len(values) == 1:
        return f"{values[0]:.0f}"
    return f"{statistics.fmean(values):.0f} ± {statistics.stdev(values):.0f}"


def draw_means(
    ax: Axes,
    positions: Sequence[float],
    cells: Sequence[Sequence[float]],
    *,
    spread: bool = False,
    horizontal: bool = False,
    **look: Any,
) -> None:
    """A line of means with error bars.

    Args:
        ax: Where.
        positions: Of each cell, on the other axis.
        cells: The values of the runs at each position.
        spread: Bars of a standard deviation of single runs instead of a standard error.
        horizontal: Positions up the y axis, and the means along x.
        look: Of the line.
    """
    means = [statistics.fmean(cell) for cell in cells]
    bars = [standard_error(cell) * (math.sqrt(len(cell)) if spread else 1) for cell in cells]
    if horizontal:
        ax.errorbar(means, positions, xerr=bars, capsize=2, **look)
    else:
        ax.errorbar(positions, means, yerr=bars, capsize=2, **look)
