"""Figures of the runs with delayed feedback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.common.pictures import save
from benchmarks.common.repeated_runs import column, draw_means
from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.objectives import OBJECTIVES
from benchmarks.delayed_feedback.runs import OPTIMISTIC, POISSON, TAIL_METHODS, TAILS, mean_delay
from botorch_ext.plotting import PALETTE, plot_regret

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Captions, in the order of the report.
PICTURES = {
    "growth.png": (
        "Cumulative regret against the mean delay. GP-BUCB counts pending trials in the "
        "standard deviation; the line of GP-UCB ignores them."
    ),
    "regret.png": (
        "Cumulative regret on the grids where results come 50 steps late on average. Figure "
        "2 of Vakili et al. 2023."
    ),
    "bpe.png": ("Cumulative regret of BPE-Delay and BPE alone. Figure 5 of Vakili et al. 2023."),
    "tails.png": (
        "Cumulative regret under three distributions of the delay with the same mean. "
        "BPE-Delay plans for what it is told of the delays, or for what it observes."
    ),
    "box.png": ("Cumulative regret on the box. The same methods and delays as on the grids."),
}

_LAST = "Poisson(50)"
# In this order everywhere, so that a method keeps its colour.
_METHODS = ("BPE-Delay", "BPE", *OPTIMISTIC)


def draw(rows: Sequence[Row], folder: Path) -> None:
    """Draws regret.png (figure 2 of Vakili et al. 2023), growth.png (3 and 4), bpe.png (5),
    tails.png and box.png.

    Args:
        rows: A row for each run, with its ``curve``.
        folder: For the files.
    """
    constant = [row for row in rows if row["width"] == "sqrt(6)"]
    grid = [row for row in constant if row["domain"] == "grid"]
    box = [row for row in constant if row["domain"] == "box"]
    _draw_curves(grid, _METHODS, f"grid, {_LAST}", folder / "regret.png")
    _draw_growth(grid, folder / "growth.png")
    _draw_curves(grid, _METHODS[:2], f"grid, {_LAST}", folder / "bpe.png")
    _draw_tails(grid, folder / "tails.png")
    _draw_curves(box, _METHODS, f"box, {_LAST}", folder / "box.png")


def _panels(height: float) -> tuple[Figure, Sequence[Axes]]:
    import matplotlib.pyplot as plt

    return plt.subplots(1, 2, figsize=(12, height), layout="constrained", sharey=True)


def _save(figure: Figure, axes: Sequence[Axes], path: Path, columns: int) -> None:
    """Under one legend for both panels, outside them."""
    import matplotlib.pyplot as plt

    handles, labels = axes[0].get_legend_handles_labels()
    for ax in axes:
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    figure.legend(handles, labels, loc="outside upper center", ncols=columns)
    save(figure, path, 120)
    plt.close(figure)


def _draw_curves(rows: Sequence[Row], methods: Sequence[str], title: str, path: Path) -> None:
    figure, axes = _panels(4.6)
    for ax, objective in zip(axes, OBJECTIVES, strict=True):
        where = {"objective": objective, "delay": _LAST}
        plot_regret({name: column(rows, "curve", method=name, **where) for name in methods}, ax)
        ax.set_title(f"{objective}, {title}")
        ax.set_ylim(bottom=0)
    axes[1].set_ylabel("")
    _save(figure, axes, path, len(methods))


def _draw_growth(rows: Sequence[Row], path: Path) -> None:
    figure, axes = _panels(4.6)
    x = [mean_delay(delay) for delay in POISSON]
    for ax, objective in zip(axes, OBJECTIVES, strict=True):
        for color, method, marker in zip(PALETTE, _METHODS, "os^Dv", strict=False):
            where = {"objective": objective, "method": method}
            cells = [column(rows, "cumulative_regret", delay=delay, **where) for delay in POISSON]
            look = {"color": color, "marker": marker, "label": method, "linewidth": 2}
            draw_means(ax, x, cells, spread=True, **look)
        ax.set_title(f"{objective}, grid, Poisson delays")
        ax.set_xlabel("mean delay (steps)")
        ax.set_xticks(x)
        ax.set_ylim(bottom=0)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel(f"cumulative regret at T = {rows[0]['horizon']}\n(mean ± sd of single runs)")
    _save(figure, axes, path, len(_METHODS))


def _draw_tails(rows: Sequence[Row], path: Path) -> None:
    figure, axes = _panels(5.2)
    for ax, objective in zip(axes, OBJECTIVES, strict=True):
        for i, (delay, color, marker) in enumerate(zip(TAILS, PALETTE, "os^", strict=False)):
            where = {"objective": objective, "delay": delay}
            cells = [
                column(rows, "cumulative_regret", method=name, **where) for name in TAIL_METHODS
            ]
            y = [j + 0.2 * (i - 1) for j in range(len(cells))]
            look: dict[str, Any] = {"color": color, "marker": marker, "linestyle": "none"}
            draw_means(ax, y, cells, spread=True, horizontal=True, label=delay, **look)
        ax.set_title(f"{objective}, grid, mean delay 50")
        ax.set_xlabel(f"cumulative regret at T = {rows[0]['horizon']} (mean ± sd of single runs)")
        ax.set_xlim(left=0)
        ax.grid(alpha=0.3, axis="x")
    axes[0].set_yticks(range(len(TAIL_METHODS)), TAIL_METHODS)
    axes[0].set_ylim(len(TAIL_METHODS) - 0.5, -0.5)
    _save(figure, axes, path, len(TAILS))
