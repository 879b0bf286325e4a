"""Figures of the runs with unknown hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.common.pictures import save
from benchmarks.common.repeated_runs import column, draw_means
from benchmarks.common.tables import Row
from benchmarks.unknown_hyperparameters.claims import select
from benchmarks.unknown_hyperparameters.experiments import (
    EXPERIMENTS,
    HE,
    METHODS,
    MLE,
    OF_THE_PAPER,
    RANDOM,
)
from benchmarks.unknown_hyperparameters.robust import (
    GP,
    HE_STABLE,
    ROBUST_METHODS,
    STABLE,
    make,
    rows_of,
)
from botorch_ext.plotting import PALETTE, plot_regret

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Captions, in the order of the report.
PICTURES = {
    "regret.png": (
        "Cumulative and best regret in the four experiments. Figure 2 of Ziomek et al. "
        "2024, without random play."
    ),
    "widths.png": (
        "Cumulative regret under each confidence width. The intervals are standard errors "
        "of the mean."
    ),
    "models.png": (
        "Which models are alive and which play. Shares of the seeds, under HE-GP-UCB and MLE-UCB."
    ),
    "robust.png": (
        "Stable regret on the robust problem, and where each method ends. The narrow peak "
        "is higher, the wide one is stable."
    ),
}

# A method has one colour everywhere.
_COLORS = dict(zip(METHODS, PALETTE, strict=False))
# Where two lines coincide both are seen.
_STYLES: dict[str, Any] = dict(
    zip(METHODS, ("-", "--", "-.", (0, (1, 1)), (0, (4, 1, 1, 1, 1, 1)), ":"), strict=True)
)
_MARKERS = dict(zip(METHODS, "os^Dv*", strict=True))


def draw(rows: Sequence[Row], robust: Sequence[Row], folder: Path) -> None:
    """Draws regret.png (figure 2 of Ziomek et al. 2024), widths.png, models.png and robust.png.

    Args:
        rows: A row for each run, with its lists.
        robust: Likewise for the robust problem.
        folder: For the files.
    """
    _draw_regret(rows, folder / "regret.png")
    _draw_widths(rows, folder / "widths.png")
    _draw_models(rows, folder / "models.png")
    _draw_robust(robust, folder / "robust.png")


def _save(figure: Figure, path: Path) -> None:
    import matplotlib.pyplot as plt

    save(figure, path, 110)
    plt.close(figure)


def _legend(figure: Figure, axes: Sequence[Axes], columns: int) -> None:
    """One for all panels, outside them."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
        if (legend := ax.get_legend()) is not None:
            legend.remove()
    figure.legend(list(entries.values()), list(entries), loc="outside upper center", ncols=columns)


def _draw_regret(rows: Sequence[Row], path: Path) -> None:
    """Without random play, whose regret would set the scale."""
    import matplotlib.pyplot as plt

    names = [name for name in OF_THE_PAPER if any(row["experiment"] == name for row in rows)]
    figure, grid = plt.subplots(2, len(names), figsize=(4.2 * len(names), 7.4), squeeze=False)
    figure.set_layout_engine("constrained")
    for column_of, name in zip(grid.T, names, strict=True):
        experiment = EXPERIMENTS[name]
        cell = select(rows, name, experiment.widths[0])
        methods = [method for method in METHODS if method in experiment.methods]
        for ax, curve in zip(column_of, ("curve", "best_curve"), strict=True):
            curves = {m: column(cell, curve, method=m) for m in methods if m != RANDOM}
            plot_regret(curves, ax, cumulative=curve == "curve")
            for line, band, method in zip(ax.lines, ax.collections, curves, strict=False):
                line.set_color(_COLORS[method])
                line.set_linestyle(_STYLES[method])
                line.set_marker(_MARKERS[method])
                band.set_facecolor(_COLORS[method])
            ax.set_ylim(bottom=0)
        label = column_of[0].get_ylabel().split("\n")[1]
        column_of[0].set_title(f"{experiment.title}\n{experiment.widths[0]} {label}", fontsize=10)
        column_of[0].set_ylabel("cumulative regret")
        column_of[1].set_ylabel("best regret")
        column_of[0].set_xlabel("")
    _legend(figure, list(grid.flat), len(METHODS))
    _save(figure, path)


def _draw_widths(rows: Sequence[Row], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["experiment"] for row in rows))
    columns = min(4, len(names))
    lines = -(-len(names) // columns)
    figure, grid = plt.subplots(lines, columns, figsize=(4.2 * columns, 3.6 * lines), squeeze=False)
    figure.set_layout_engine("constrained")
    for ax in list(grid.flat)[len(names) :]:
        ax.set_visible(False)
    for ax, name in zip(grid.flat, names, strict=False):
        experiment = EXPERIMENTS[name]
        methods = [method for method in METHODS if method in experiment.methods]
        for i, method in enumerate(methods):
            cells = [
                column(select(rows, name, width), "cumulative_regret", method=method)
                for width in experiment.widths
            ]
            y = [j + 0.13 * (i - (len(methods) - 1) / 2) for j in range(len(cells))]
            look: dict[str, Any] = {
                "color": _COLORS[method],
                "marker": _MARKERS[method],
                "linestyle": "none",
            }
            draw_means(ax, y, cells, horizontal=True, label=method, **look)
        ax.set_title(experiment.title, fontsize=10)
        ax.set_yticks(range(len(experiment.widths)), experiment.widths)
        ax.set_ylim(len(experiment.widths) - 0.5, -0.5)
        ax.set_xlabel("cumulative regret")
        ax.set_xlim(left=0)
        ax.grid(alpha=0.3, axis="x")
    _legend(figure, list(grid.flat)[: len(names)], len(METHODS))
    _save(figure, path)


def _draw_models(rows: Sequence[Row], path: Path) -> None:
    """Which models are alive under HE-GP-UCB, and which play under it and under MLE-UCB."""
    import matplotlib.pyplot as plt

    names = [name for name in OF_THE_PAPER if any(row["experiment"] == name for row in rows)]
    figure, grid = plt.subplots(3, len(names), figsize=(4.2 * len(names), 8.4), squeeze=False)
    figure.set_layout_engine("constrained")
    image = None
    for column_of, name in zip(grid.T, names, strict=True):
        experiment = EXPERIMENTS[name]
        cell = select(rows, name, experiment.widths[0])
        horizon = cell[0]["horizon"]
        he = sorted((r for r in cell if r["method"] == HE), key=lambda row: row["seed"])
        mle = sorted((r for r in cell if r["method"] == MLE), key=lambda row: row["seed"])
        problems = [experiment.problem(row["seed"]) for row in he]
        labels, places = _places(problems)
        steps = np.arange(1, horizon + 1)
        alive, of_he, of_mle = np.zeros((3, len(labels), horizon))
        counts = np.bincount(places[0], minlength=len(labels))[:, None] * len(he)
        for row, other, place in zip(he, mle, places, strict=True):
            for position, last in enumerate(row["rejected"]):
                alive[place[position]] += steps <= last
            for shares, run in ((of_he, row), (of_mle, other)):
                for step, position in enumerate(run["played"]):
                    shares[place[position], step] += 1
        alive /= counts
        titles = (
            f"{experiment.title}, {experiment.widths[0]}\nalive under {HE}",
            f"played by {HE}",
            f"played by {MLE}",
        )
        for ax, shares, title in zip(
            column_of, (alive, of_he / len(he), of_mle / len(he)), titles, strict=True
        ):
            image = ax.imshow(
                shares,
                aspect="auto",
                cmap="Blues",
                vmin=0,
                vmax=1,
                interpolation="nearest",
                extent=(0.5, horizon + 0.5, len(labels) - 0.5, -0.5),
            )
            ax.set_yticks(range(len(labels)), labels, fontsize=8)
            ax.set_title(title, fontsize=10)
        column_of[-1].set_xlabel("evaluations")
    if image is not None:
        figure.colorbar(image, ax=list(grid.flat), label="share of the seeds", shrink=0.5)
    _save(figure, path)


def _places(problems: Sequence[Any]) -> tuple[list[str], list[list[int]]]:
    """Labels, and for each problem the label of each of its models. Where the true model changes
    with the problem, the others are one group, but for the last."""
    names, true = list(problems[0].names), [problem.true_model for problem in problems]
    if len(set(true)) == 1 and len(names) < 10:
        labels = [f"{name} (true)" if i == true[0] else name for i, name in enumerate(names)]
        return labels, [list(range(len(names)))] * len(problems)
    labels = ["true hill", "other hills", names[-1]]
    return labels, [[0 if i == own else 1 for i in range(len(names) - 1)] + [2] for own in true]


def _draw_robust(rows: Sequence[Row], path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, (top, middle, right) = plt.subplots(1, 3, figsize=(15, 4.4))
    figure.set_layout_engine("constrained")
    colors = dict(zip(ROBUST_METHODS, PALETTE, strict=False))
    problem = make("line")
    x = problem.domain.like
    top.plot(x[:, 0], problem(x), color="black", label="f")
    worst = problem.stable_value - problem.robust_regret(x)
    top.plot(x[:, 0], worst, color="grey", linestyle="--", label="worst within 0.1")
    top.axvline(float(problem.stable_optimizer), color="grey", linewidth=1, alpha=0.6)
    line = rows_of(rows, problem="line", width="constant 3")
    for i, method in enumerate(ROBUST_METHODS):
        ends = [row["centers"][-1][0] for row in line if row["method"] == method]
        heights = np.full(len(ends), -0.1 - 0.09 * i)
        top.plot(ends, heights, "o", color=colors[method], alpha=0.6, label=f"{method} ends")
    top.set_title("Line: where each method ends (constant 3)", fontsize=10)
    top.set_xlabel("x")
    top.legend(fontsize="x-small", loc="upper right")
    for ax, name in ((middle, "line"), (right, "square")):
        cell = rows_of(rows, problem=name, width="constant 3")
        curves = {m: column(cell, "curve", method=m) for m in (HE_STABLE, STABLE, GP)}
        plot_regret(curves, ax)
        ax.set_ylim(bottom=0)
        ax.set_ylabel("cumulative stable regret\n" + ax.get_ylabel().split("\n")[1])
        ax.set_title(f"{name.capitalize()}: stable regret (constant 3)", fontsize=10)
    _save(figure, path)
