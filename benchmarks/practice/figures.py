"""Figures of the practice benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.tables import Row
from benchmarks.practice.differences import known_cells, paired
from benchmarks.practice.methods import METHODS, OURS, REFERENCE
from benchmarks.practice.problems import FURTHER, TUNED, problems
from benchmarks.practice.settings import NOISES, ONE_AT_A_TIME, PRIMARY, SETTINGS
from botorch_ext.plotting import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 5
_LOOKS: dict[str, dict[str, Any]] = {
    method: {
        "color": PALETTE[i % len(PALETTE)],
        "linestyle": "-" if i < len(PALETTE) else "--",
        "linewidth": 2.4 if method in (OURS, REFERENCE) else 1.2,
        "zorder": 3 if method in (OURS, REFERENCE) else 2,
    }
    for i, method in enumerate(METHODS)
}


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draws all pictures that there are runs for.

    Args:
        rows: One for each run.
        folder: Where the PNG files go.
    """
    for noise in NOISES:
        kept = [row for row in rows if row["setting"] in ONE_AT_A_TIME and row["noise"] == noise]
        if kept:
            name = f"{noise:.1%}".rstrip("%").replace(".", "_")
            _draw_panels(kept, folder / f"evaluations_{name}.png", _against_evaluations)
            _draw_panels(kept, folder / f"seconds_{name}.png", _against_seconds)
    # Settings of one question at a time have problems of their own, and a panel together.
    pairs = [
        replace(pair, setting=PRIMARY) if pair.setting in ONE_AT_A_TIME else pair
        for pair in paired(rows, OURS, REFERENCE, "box")
    ]
    _draw_differences(pairs, folder / "differences.png")


def _draw_panels(
    rows: Sequence[Row], path: Path, draw_one: Callable[[Axes, Sequence[Row], str], None]
) -> None:
    """A panel for each problem, those that are tuned on first."""
    import matplotlib.pyplot as plt

    names = [name for name in problems() if any(row["problem"] == name for row in rows)]
    columns = min(_COLUMNS, len(names))
    lines = -(-len(names) // columns)
    size = (max(3.0 * columns, 7.0), 2.5 * lines + 0.9)
    figure, axes = plt.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for ax, name in zip(axes.flat, names, strict=False):
        for method in METHODS:
            found = [row for row in rows if (row["problem"], row["method"]) == (name, method)]
            if found:
                draw_one(ax, found, method)
        ax.set_yscale("log")
        ax.set_title(f"{name}{' (tuned on)' if name in TUNED else ''}", fontsize="medium")
        ax.grid(alpha=0.3)
    for ax in axes.flat[len(names) :]:
        ax.set_axis_off()
    along = "evaluations" if draw_one is _against_evaluations else "seconds of one core"
    for ax in axes.flat[max(len(names) - columns, 0) : len(names)]:  # with nothing below
        ax.set_xlabel(along)
    noise, seeds = rows[0]["noise"], len({row["seed"] for row in rows})
    figure.supylabel(f"regret of what is recommended, median of up to {seeds} seeds")
    figure.suptitle(f"One question at a time, noise {noise:.1%} of the range")
    shown = {label: line for ax in axes.flat for line, label in zip(*_legend_of(ax), strict=True)}
    handles = [shown[method] for method in METHODS if method in shown]
    labels = [method for method in METHODS if method in shown]
    figure.legend(handles, labels, loc="outside lower center", ncols=8, fontsize="small")
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _legend_of(ax: Axes) -> tuple[list[Any], list[str]]:
    handles, labels = ax.get_legend_handles_labels()
    return list(handles), [str(label) for label in labels]


def _curve(row: Row) -> np.ndarray:
    """Regret after each result, of the evaluated point the method recommends."""
    return np.asarray(row["evaluated"] or row["observed"])


def _against_evaluations(ax: Axes, rows: Sequence[Row], method: str) -> None:
    median = np.median([_curve(row) for row in rows], axis=0)
    ax.plot(rows[0]["told"], median, label=method, **_LOOKS[method])


def _against_seconds(ax: Axes, rows: Sequence[Row], method: str) -> None:
    initial = rows[0]["initial"]
    median = np.median([_curve(row) for row in rows], axis=0)
    # By the time that the first of these questions was asked nothing had been spent.
    spent = [np.cumsum(row["seconds"])[initial:] for row in rows]
    ax.plot(np.median(spent, axis=0), median[1:], label=method, **_LOOKS[method])
    ax.set_xscale("log")
    ax.tick_params(axis="x", which="minor", labelbottom=False)


def _draw_differences(pairs: Sequence[Any], path: Path) -> None:
    """The mean paired difference of each known cell with two standard errors of its runs."""
    import matplotlib.pyplot as plt

    cells = known_cells(pairs)
    if not cells:
        return
    names = [name for name in problems() if any(cell[1] == name for cell in cells)]
    shown = [
        (setting, noise)
        for setting, what in SETTINGS.items()
        for noise in what.noises
        if any(cell[0] == setting and cell[2] == noise for cell in cells)
    ]
    size = (1.35 * len(shown) + 2.0, 0.28 * len(names) + 1.5)
    figure, axes = plt.subplots(
        1, len(shown), figsize=size, layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for ax, (setting, noise) in zip(axes[0], shown, strict=True):
        for place, name in enumerate(names):
            found = cells.get((setting, name, noise))
            if found is not None:
                color = PALETTE[0 if name in TUNED else 2 if name in FURTHER else 1]
                bar = 2 * found.error_of_runs
                ax.errorbar(found.mean, place, xerr=bar, fmt="o", color=color, capsize=2)
        ax.axvline(0, color="0.4", linewidth=0.8)
        ax.set_title(f"{setting}\n{noise:.1%} noise", fontsize="small")
        ax.grid(alpha=0.3)
    axes[0, 0].set_yticks(range(len(names)), names)
    axes[0, 0].set_ylim(len(names) - 0.5, -0.5)
    figure.supxlabel(
        f"log10 regret of {OURS} minus {REFERENCE},\n± 2 standard errors of the runs;\n"
        "left of 0 is better (blue: tuned on; green: chosen after the claims)",
        fontsize="small",
    )
    figure.savefig(path, dpi=120)
    plt.close(figure)
