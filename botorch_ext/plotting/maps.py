"""Maps over two coordinates: the heat map, points in order, the legend above it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from botorch_ext.plotting.style import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_heat_map(
    ax: Axes,
    across: np.ndarray,
    up: np.ndarray,
    heights: np.ndarray,
    label: str,
    *,
    cells: bool = False,
) -> None:
    """Draws values on a grid, with a colour bar beside the axes.

    Args:
        ax: Where to draw.
        across: ``n`` positions from left to right.
        up: ``m`` positions from bottom to top.
        heights: ``m x n`` values.
        label: Of the colour bar.
        cells: Whether each value has a cell of one colour around its position, where colours
            otherwise run from one value to the next.
    """
    look: dict[str, Any] = {"cmap": "viridis", "rasterized": True}
    mesh = ax.pcolormesh(across, up, heights, shading="nearest" if cells else "gouraud", **look)
    figure = ax.get_figure(root=True)
    if figure is not None:
        figure.colorbar(mesh, ax=ax, label=label)
    if not cells:
        ax.set_xlim(float(across[0]), float(across[-1]))
        ax.set_ylim(float(up[0]), float(up[-1]))


def scatter_in_order(ax: Axes, points: np.ndarray) -> None:
    """Draws ``n x 2`` points that grow and redden from the first to the last."""
    from matplotlib.colors import LinearSegmentedColormap

    order = np.linspace(0.0, 1.0, len(points)) if len(points) > 1 else np.ones(1)
    areas = 12 + 48 * order
    # Colours that the map of the posterior does not use.
    colors = LinearSegmentedColormap.from_list("order", ["white", PALETTE[1]])
    # Points on the edge of the box are drawn whole.
    look = {"cmap": colors, "vmin": 0.0, "vmax": 1.0, "edgecolors": "black", "clip_on": False}
    ax.scatter(points[:, 0], points[:, 1], s=areas, c=order, linewidths=0.8, zorder=3, **look)
    for position, label in ((0, "first asked point"), (-1, "last asked point")):
        face = colors(order[position])
        size = float(np.sqrt(areas[position]))
        handle: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgecolor": "black"}
        ax.plot([], [], markersize=size, markerfacecolor=face, label=label, **handle)


def legend_above(ax: Axes, num_columns: int) -> None:
    """The legend above the map: inside it would hide points."""
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    ax.legend(ncols=num_columns, frameon=False, fontsize="small", **where)
