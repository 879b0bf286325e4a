"""Figures of the practice benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.pictures import save
from benchmarks.common.tables import Row
from benchmarks.practice.costs import seconds_of
from benchmarks.practice.differences import LEAST_RUNS, Estimate, Pair, estimate, paired
from benchmarks.practice.methods import METHODS, OURS, REFERENCE
from benchmarks.practice.problems import FURTHER, TUNED, problems
from benchmarks.practice.settings import NOISES, ONE_AT_A_TIME, SETTINGS
from botorch_ext.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Captions, in the order of the report.
PICTURES = {
    "evaluations.png": (
        "Regret against evaluations. Above, the median over the problems that all methods "
        "have played, with the quartiles of integrated_ei and qLogNEI; below, four problems "
        "that nothing was tuned on, the median of the seeds."
    ),
    "seconds.png": (
        "Seconds of one core for one question. The bars end at the median of the runs, the "
        "lines at the quartiles."
    ),
    "differences.png": (
        "Differences of log10 regret between integrated_ei and qLogNEI. A row for each "
        "problem where one question is asked at a time, a grey row for each group of "
        "problems, and one for each of the other settings."
    ),
}

# In the order of the methods; the two that are compared are drawn above the others.
_MARKERS = "osD^vP*X"
_LOOKS: dict[str, dict[str, Any]] = {
    method: {
        "color": PALETTE[i % len(PALETTE)],
        "linestyle": "-" if i < len(PALETTE) else "--",
        "marker": _MARKERS[i % len(_MARKERS)],
        "markersize": 4,
        "linewidth": 2.2 if method in (OURS, REFERENCE) else 1.1,
        "zorder": 3 if method in (OURS, REFERENCE) else 2,
    }
    for i, method in enumerate(METHODS)
}
# Nothing was tuned on them. On the last the default is worse than the method it is compared with.
_EXAMPLES = ("Styblinski-Tang4", "Hartmann4", "SVC", "Ackley20")
_SHARES = np.linspace(0, 1, 41)
_POOLED = "D"
# A line of the picture of differences: its name, marker, colour and pairs.
_Line = tuple[str, str, str, list[Pair]]
_GROUPS = {
    "tuned on": ("o", PALETTE[0]),
    "not tuned on": ("s", PALETTE[1]),
    "chosen afterwards": ("^", PALETTE[2]),
}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draws evaluations.png, seconds.png and differences.png, where there are runs for them.

    Args:
        rows: One for each run.
        folder: Where the PNG files go.
    """
    one_at_a_time = [row for row in rows if row["setting"] in ONE_AT_A_TIME]
    if one_at_a_time:
        _draw_evaluations(one_at_a_time, folder / "evaluations.png")
        _draw_seconds(one_at_a_time, folder / "seconds.png")
    pairs = paired(rows, OURS, REFERENCE, "box")
    if len(pairs) >= LEAST_RUNS:
        _draw_differences(pairs, folder / "differences.png")


def _draw_evaluations(rows: Sequence[Row], path: Path) -> None:
    """Above, all problems at each noise; below, examples at the smaller one."""
    import matplotlib.pyplot as plt

    noises = [noise for noise in NOISES if any(row["noise"] == noise for row in rows)]
    played = {row["problem"] for row in rows}
    examples = [name for name in _EXAMPLES if name in played] or sorted(played)[:4]
    figure = plt.figure(figsize=(10, 7.6), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[1.25, 1])
    upper, lower = parts
    axes = upper.subplots(1, len(noises), sharey=True, squeeze=False)[0]
    for ax, noise in zip(axes, noises, strict=True):
        _draw_all_problems(ax, [row for row in rows if row["noise"] == noise])
        ax.set_title(f"{ax.get_title()}, noise {noise:.1%} of the range", fontsize="medium")
    axes[0].set_ylabel("regret, as a share of that\nafter the initial points")
    panels = lower.subplots(1, len(examples), squeeze=False)[0]
    for ax, name in zip(panels, examples, strict=True):
        _draw_example(ax, [r for r in rows if (r["problem"], r["noise"]) == (name, noises[0])])
        ax.set_title(f"{name}, {noises[0]:.1%}", fontsize="medium")
    panels[0].set_ylabel("regret, median of the seeds")
    shown = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    figure.legend(shown.values(), shown, loc="outside lower center", ncols=4, fontsize="small")
    save(figure, path, 110)
    plt.close(figure)


def _draw_all_problems(ax: Axes, rows: Sequence[Row]) -> None:
    """The median over the problems that all methods have played; of two methods the quartiles."""
    methods = [method for method in METHODS if any(row["method"] == method for row in rows)]
    played = [{row["problem"] for row in rows if row["method"] == method} for method in methods]
    names = sorted(set.intersection(*played))
    for method in methods:
        curves = np.array([_share_left(rows, name, method) for name in names])
        low, middle, high = np.quantile(curves, (0.25, 0.5, 0.75), axis=0)
        places = 100 * _SHARES
        ax.plot(places, middle, label=method, markevery=8, **_LOOKS[method])
        if method in (OURS, REFERENCE):
            color = _LOOKS[method]["color"]
            ax.fill_between(places, low, high, color=color, alpha=0.18, linewidth=0)
    _scale_log(ax)
    ax.set_xlabel("% of the evaluations after the initial points")
    ax.set_title(f"{len(names)} problems: median, quartiles")
    ax.grid(alpha=0.3)


def _share_left(rows: Sequence[Row], problem: str, method: str) -> np.ndarray:
    """The median regret over the seeds at each of `_SHARES`, by that of all methods at first."""
    of_problem = [row for row in rows if row["problem"] == problem]
    start = float(np.median([_curve(row)[0] for row in of_problem]))
    curves = [_curve(row) for row in of_problem if row["method"] == method]
    median = np.median(curves, axis=0)
    return median[np.round(_SHARES * (len(median) - 1)).astype(int)] / start


def _draw_example(ax: Axes, rows: Sequence[Row]) -> None:
    for method in METHODS:
        found = [row for row in rows if row["method"] == method]
        if found:
            median = np.median([_curve(row) for row in found], axis=0)
            every = max(len(median) // 5, 1)
            ax.plot(found[0]["told"], median, markevery=every, **_LOOKS[method])
    _scale_log(ax)
    ax.set_xlabel("evaluations")
    ax.grid(alpha=0.3)


def _scale_log(ax: Axes) -> None:
    """A logarithmic y axis with numbers as one writes them."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.tick_params(axis="y", labelsize="small")


def _curve(row: Row) -> np.ndarray:
    """Regret after each result, of the evaluated point the method recommends."""
    return np.asarray(row["evaluated"] or row["observed"])


def _draw_seconds(rows: Sequence[Row], path: Path) -> None:
    """What a question costs: a bar to the median over the runs, a line between the quartiles."""
    import matplotlib.pyplot as plt

    seconds = {
        method: np.quantile(
            [seconds_of(row) for row in rows if row["method"] == method], (0.25, 0.5, 0.75)
        )
        for method in METHODS
        if any(row["method"] == method for row in rows)
    }
    order = sorted(seconds, key=lambda method: seconds[method][1])
    figure, ax = plt.subplots(figsize=(8, 0.42 * len(order) + 1.1), layout="constrained")
    for place, method in enumerate(order):
        low, middle, high = seconds[method]
        color = _LOOKS[method]["color"]
        ax.barh(place, middle, color=color, alpha=0.55, height=0.62)
        ax.plot([low, high], [place, place], color="0.15", linewidth=1.4)
        ax.plot(middle, place, marker=_LOOKS[method]["marker"], color="0.15", markersize=5)
        ax.annotate(
            f"{middle:.2g} s", (high, place), (6, 0), textcoords="offset points", va="center"
        )
    ax.set_yticks(range(len(order)), order)
    ax.set_xscale("log")
    ax.set_xlim(right=ax.get_xlim()[1] * 2)
    ax.set_xlabel(
        "seconds of one core for one question: median of the runs, line between the quartiles"
    )
    ax.grid(alpha=0.3, axis="x")
    save(figure, path, 110)
    plt.close(figure)


def _group_of(problem: str) -> str:
    tuned, further = problem in TUNED, problem in FURTHER
    return list(_GROUPS)[0 if tuned else 2 if further else 1]


def _draw_differences(pairs: Sequence[Pair], path: Path) -> None:
    """A column for each noise. First a row for each problem, one question at a time, and one for
    each group of problems together; then a row for each of the other settings."""
    import matplotlib.pyplot as plt

    noises = [noise for noise in NOISES if any(pair.noise == noise for pair in pairs)]
    lines = _lines_of(pairs)
    size = (9, 0.21 * len(lines) + 1.3)
    figure, axes = plt.subplots(
        1, len(noises), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, noise in zip(axes[0], noises, strict=True):
        for place, (_, marker, color, of_line) in enumerate(lines):
            found = [pair for pair in of_line if pair.noise == noise]
            if marker == _POOLED:
                ax.axhspan(place - 0.5, place + 0.5, color="0.93", zorder=0)
            if len(found) >= LEAST_RUNS:
                _draw_estimate(ax, place, estimate(found), marker, color)
        ax.axvline(0, color="0.3", linewidth=0.9, zorder=1)
        ax.set_title(f"noise {noise:.1%} of the range", fontsize="medium")
        ax.grid(alpha=0.3, axis="x")
    axes[0, 0].set_yticks(range(len(lines)), [line[0] for line in lines], fontsize="small")
    axes[0, 0].set_ylim(len(lines) - 0.5, -0.5)
    figure.supxlabel(
        f"log10 regret of {OURS} minus that of {REFERENCE}; left of 0 is better, -0.3 is half the "
        "regret.\nBars: two standard errors. Those of a problem are of its runs, those of diamonds "
        "over problems.\nCircles: tuned on; squares: not tuned on; triangles: chosen afterwards",
        fontsize="small",
    )
    save(figure, path, 110)
    plt.close(figure)


def _lines_of(pairs: Sequence[Pair]) -> list[_Line]:
    lines: list[_Line] = []
    ours = [pair for pair in pairs if pair.setting in ONE_AT_A_TIME]
    for group, (marker, color) in _GROUPS.items():
        members = [pair for pair in ours if _group_of(pair.problem) == group]
        played = {pair.problem for pair in members}
        lines += [
            (name, marker, color, [pair for pair in members if pair.problem == name])
            for name in problems()
            if name in played
        ]
        if members:
            lines.append((f"{len(played)} {group}", _POOLED, color, members))
    if ours:
        lines.append((f"all {len({pair.problem for pair in ours})}", _POOLED, "black", ours))
    for setting in SETTINGS:
        found = [pair for pair in pairs if pair.setting == setting not in ONE_AT_A_TIME]
        if found:
            number = len({pair.problem for pair in found})
            lines.append((f"{setting}: {number} problems", _POOLED, PALETTE[3], found))
    return lines


def _draw_estimate(ax: Axes, place: float, found: Estimate, marker: str, color: str) -> None:
    error = found.error if marker == _POOLED else found.error_of_runs
    bar = 0.0 if math.isnan(error) else 2 * error
    ax.errorbar(found.mean, place, xerr=bar, fmt=marker, color=color, markersize=5, capsize=2)
