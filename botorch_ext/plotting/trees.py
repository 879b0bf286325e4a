"""Trees of cells: where breadthwise exploration dropped them, and where it evaluated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from botorch_ext.domains import Box
from botorch_ext.plotting.slices import Slice, draw_truth
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.problems import Problem
from botorch_ext.strategies.fixed_design.breadthwise import BreadthwiseExploration
from botorch_ext.strategies.fixed_design.level import Level

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KEPT, _DROPPED, _CURRENT = PALETTE[2], PALETTE[1], PALETTE[5]
_COLORS = "viridis_r"
_NONE = "0.9"  # no evaluation

Coloring = Literal["level", "evaluations"]


def plot_tree(
    strategy: BreadthwiseExploration,
    ax: Axes | None = None,
    *,
    problem: Problem | None = None,
    color: Coloring = "level",
) -> Axes:
    """The cells of breadthwise exploration on one or two coordinates.

    On one coordinate a row of cells for each level, from the whole box downwards: the upper half of
    a row has the number of evaluations at each center, the lower half what became of the cell, and
    to the right stand the numbers. The function is drawn above. On two coordinates the partition at
    the end: each dropped cell at the level where it was dropped, and the cells of the current
    level, with a dot at each center that was evaluated.

    Args:
        strategy: A breadthwise exploration at any time.
        ax: Where to draw; a new figure unless given.
        problem: The function, drawn above the rows on one coordinate; its maximiser is a star.
        color: On two coordinates, what the colours of cells tell: "level", the last one a cell was
            on, or "evaluations" of its center there.

    Returns:
        The axes.

    Raises:
        ValueError: Another strategy, more than two coordinates, a problem with another number of
            them, or an unknown color.
    """
    if not isinstance(strategy, BreadthwiseExploration):
        raise ValueError(
            f"strategy must be a BreadthwiseExploration, got a {type(strategy).__name__}"
        )
    if strategy.domain.dim > 2:
        raise ValueError(f"strategy must have one or two coordinates, got {strategy.domain.dim}")
    if problem is not None and problem.domain.dim != strategy.domain.dim:
        raise ValueError(
            f"problem must have {strategy.domain.dim} coordinates, got {problem.domain.dim}"
        )
    if color not in ("evaluations", "level"):
        raise ValueError(f"color must be 'level' or 'evaluations', got {color!r}")
    levels = strategy.levels
    if strategy.domain.dim == 1:
        ax = axes_or_new(ax, (8.0, 2.6 + 0.3 * len(levels)))
        _draw_rows(ax, levels)
        if problem is not None:
            _draw_above(ax, strategy.tree.box, problem, len(levels))
        return ax
    ax = axes_or_new(ax, (7.2, 6.0))
    _draw_partition(ax, levels, color)
    _draw_centers(ax, levels)
    if problem is not None and problem.optimizer is not None:
        x, y = to_numpy(problem.optimizer)
        star: dict[str, Any] = {"marker": "*", "s": 180, "color": "white", "edgecolors": "black"}
        ax.scatter(x, y, label="maximiser", zorder=4, **star)
    lower, upper = to_numpy(strategy.tree.box.bounds)
    ax.set_xlim(lower[0], upper[0])
    ax.set_ylim(lower[1], upper[1])
    ax.set_xlabel("x[0]")
    ax.set_ylabel("x[1]")
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize="small")
    return ax


# --- one coordinate -------------------------------------------------------------------------------


def _draw_rows(ax: Axes, levels: list[Level]) -> None:
    """One row for each level, centred at its depth, the vertical axis pointing down."""
    counts = [to_numpy(level.counts) for level in levels]
    shades = _shades(max(float(count.max()) for count in counts))
    for level, count in zip(levels, counts, strict=True):
        lower, upper = to_numpy(level.lower[:, 0]), to_numpy(level.upper[:, 0])
        top, middle, bottom = level.depth - 0.4, level.depth + 0.15, level.depth + 0.4
        _add_cells(ax, lower, upper, top, middle, _colors(count, shades))
        _add_cells(ax, lower, upper, middle, bottom, _fates(level))
    ax.set_ylim(levels[-1].depth + 0.6, -0.6)
    ax.set_xlim(float(levels[0].lower[0, 0]), float(levels[0].upper[0, 0]))
    ax.set_yticks([level.depth for level in levels], [str(level.depth) for level in levels])
    ax.set_ylabel("level")
    ax.set_xlabel("x")
    beside = ax.secondary_yaxis("right")
    beside.set_yticks(
        [level.depth for level in levels], [_words(level) for level in levels], fontsize="small"
    )
    for axis in (ax, beside):
        axis.tick_params(axis="y", length=0)
        for edge in ("left", "right", "top"):
            if edge in axis.spines:
                axis.spines[edge].set_visible(False)
    _add_bar(ax, shades, "evaluations of a center", location="bottom", shrink=0.5)
    for label, color in (("kept", _KEPT), ("dropped", _DROPPED), ("current", _CURRENT)):
        ax.plot([], [], "s", color=color, label=label)
    look: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, 0), "frameon": False}
    ax.legend(fontsize="small", **look)


def _words(level: Level) -> str:
    cells, evaluations = level.num_cells, level.num_evaluations
    words = f"{cells} cell" + "s" * (cells != 1)
    words += "" if level.kept is None else f", {int(level.kept.sum())} kept"
    return words + f", {evaluations} evaluation" + "s" * (evaluations != 1)


def _draw_above(ax: Axes, box: Box, problem: Problem, num_levels: int) -> None:
    """The function over the rows, scaled to the room there; its least and largest values stand at
    the left."""
    line = Slice.through_box(box.bounds, 0, None, 801)
    values = problem(line.points)
    least, most = float(values.min()), float(values.max())
    if problem.optimal_value is not None:
        most = max(most, problem.optimal_value)
    base, room = -0.9, -max(2.0, 0.3 * num_levels)

    def height(value: Any) -> Any:
        return base + room * (value - least) / (most - least if most > least else 1.0)

    draw_truth(ax, line, lambda X: height(problem(X)))
    if problem.optimizer is not None and problem.optimal_value is not None:
        star: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 12}
        place = float(problem.optimizer[0]), height(problem.optimal_value)
        ax.plot(*place, "*", zorder=4, **star)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    ticks = [*ax.get_yticks(), height(least), height(most)]
    ax.set_yticks(ticks, [*labels, f"{least:.3g}", f"{most:.3g}"])
    ax.set_ylim(top=base + 1.15 * room)
    ax.set_ylabel("level, and f above")


def _fates(level: Level) -> np.ndarray:
    from matplotlib.colors import to_rgba_array

    if level.kept is None:
        return to_rgba_array([_CURRENT] * level.num_cells)
    return to_rgba_array([_KEPT if kept else _DROPPED for kept in level.kept.tolist()])


# --- two coordinates ------------------------------------------------------------------------------


def _draw_partition(ax: Axes, levels: list[Level], color: Coloring) -> None:
    """The dropped cells of each level and all of the last, which cover the box without overlap."""
    corners, values = [], []
    for level in levels:
        shown = torch.ones_like(level.codes, dtype=torch.bool)
        if level.kept is not None:
            shown = ~level.kept
        corners.append(torch.cat([level.lower[shown], level.upper[shown]], dim=-1))
        counts = level.counts[shown]
        values.append(counts if color == "evaluations" else torch.full_like(counts, level.depth))
    cells, values = to_numpy(torch.cat(corners)), to_numpy(torch.cat(values))
    if color == "evaluations":
        shades = _shades(float(values.max()))
        colors = _colors(values, shades)
        label = "evaluations of a center, on the last level of its cell"
    else:
        shades = _steps(int(values.min()), int(values.max()))
        colors = shades.to_rgba(values)
        label = "last level of a cell"
    # Edges of more cells would be all there is to see.
    edge = min(0.5, 150 / len(cells))
    _add_cells(ax, cells[:, 0], cells[:, 2], cells[:, 1], cells[:, 3], colors, edge)
    _add_bar(ax, shades, label)


def _draw_centers(ax: Axes, levels: list[Level]) -> None:
    centers = to_numpy(torch.cat([level.centers[level.counts > 0] for level in levels]))
    look: dict[str, Any] = {"color": PALETTE[1], "linewidths": 0}
    size = min(12.0, max(1.5, 4000 / max(len(centers), 1)))
    ax.scatter(centers[:, 0], centers[:, 1], s=size, zorder=3, **look)
    ax.scatter([], [], s=12, label="evaluated centers", **look)  # of one size in any legend


# --- cells and colours ----------------------------------------------------------------------------


def _add_cells(
    ax: Axes, left: Any, right: Any, bottom: Any, top: Any, colors: np.ndarray, edge: float = 0.0
) -> None:
    """Rectangles, as one collection."""
    from matplotlib.collections import PolyCollection

    left, right, bottom, top = np.broadcast_arrays(left, right, bottom, top)
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    vertices = np.stack([np.stack(corner, axis=-1) for corner in corners], axis=1)  # (n, 4, 2)
    # Without edges of their own colour, a gap would show between cells.
    look: dict[str, Any] = {"edgecolors": "white", "linewidths": edge}
    if edge == 0.0:
        look = {"edgecolors": "face", "linewidths": 0.1}
    ax.add_collection(PolyCollection(list(vertices), facecolors=colors, **look), autolim=False)


def _shades(most: float) -> Any:
    """Colours of numbers of evaluations."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    return ScalarMappable(LogNorm(1, max(most, 2.0)), _COLORS)


def _steps(first: int, last: int) -> Any:
    """Colours of levels."""
    import matplotlib as mpl
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    colormap = mpl.colormaps[_COLORS].resampled(last - first + 1)
    edges = np.arange(first, last + 2) - 0.5
    return ScalarMappable(BoundaryNorm(edges, len(edges) - 1), colormap)


def _colors(counts: np.ndarray, shades: Any) -> np.ndarray:
    from matplotlib.colors import to_rgba

    colors = shades.to_rgba(np.maximum(counts, 1))
    colors[counts == 0] = to_rgba(_NONE)
    return colors


def _add_bar(ax: Axes, shades: Any, label: str, **look: Any) -> None:
    from matplotlib.colors import LogNorm

    figure = ax.get_figure()
    if figure is None:
        raise ValueError("ax must be part of a figure, got one that is not")
    bar = figure.colorbar(shades, ax=ax, label=label, **look)
    low, high = shades.norm.vmin, shades.norm.vmax
    if isinstance(shades.norm, LogNorm):
        leading = (1, 2, 5) if high <= 100 else (1,)
        ticks = [digit * 10**power for power in range(7) for digit in leading]
        ticks = [tick for tick in ticks if low <= tick <= high]
    else:
        ticks = list(range(math.ceil(low), math.floor(high) + 1))
    bar.set_ticks(ticks, labels=[str(tick) for tick in ticks])
    bar.minorticks_off()
