"""Asked points: pictures of where a study asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from botorch_ext.reports.drawing import (
    MOST_MARKS,
    Picture,
    colored,
    drawn,
    in_lines,
    label_first,
    legend_above,
    scale_axis,
)
from botorch_ext.reports.overview import Overview, State
from botorch_ext.reports.parameters import Column
from botorch_ext.reports.trial_markers import LOOKS, mark_states, ring, with_room

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES: dict[State, str] = {"pending": "Triangles", "failed": "Crosses", "abandoned": "Squares"}
# Coordinates that have a panel.
_MOST_PANELS = 12
_IN_A_ROW = 3


def plane(overview: Overview) -> Picture:
    """The trials in the plane of their two coordinates."""
    words, best = [], overview.best
    if best is not None:
        words.append(
            "Each dot is a value where it was measured; its colour says how good it is, yellow is "
            f"best. The ring is the best trial, at {overview.columns.at(best.x)}."
        )
        if best.context:
            words.append("Trials had different contexts, so not all values can be compared.")
    words += [f"{name} are {state}." for state, name in _NAMES.items() if overview.having(state)]
    drawable, cut = with_room(overview)
    draw = partial(_draw_plane, drawable)
    return drawn("Where trials were asked", " ".join(words) + cut, draw, 4.6)


def _draw_plane(overview: Overview, ax: Axes) -> None:
    # The best on top.
    own = sorted(overview.observed, key=lambda story: overview.sign * (story.value or 0.0))
    figure = ax.get_figure(root=True)
    if own and figure is not None:
        dots = ax.scatter(
            [story.x[0] for story in own],
            [story.x[1] for story in own],
            c=[story.value or 0.0 for story in own],
            cmap="viridis_r" if overview.minimize else "viridis",
            s=26 if len(own) <= MOST_MARKS else 10,
            rasterized=len(own) > MOST_MARKS,
            linewidths=0,
        )
        bar = figure.colorbar(dots, ax=ax, label=in_lines(ax, "y", overview.objective.title))
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
    for state in ("pending", "failed", "abandoned"):
        marker, color = LOOKS[state]
        without = overview.having(state)
        xs = [[story.x[j] for story in without] for j in range(2)]
        colored(ax, xs[0], xs[1], marker, color, label=state)
    best = overview.best
    if best is not None:
        ring(ax, best.x[0], best.x[1])
    for j, which in enumerate(("x", "y")):
        scale_axis(ax, which, overview.columns.x[j], min(_numbers(overview, j)))
    legend_above(ax)


def coordinates(overview: Overview) -> Picture:
    """The values against each coordinate of points and contexts."""
    columns = overview.columns.all
    shown = columns[:_MOST_PANELS]
    words = "Each trial against each coordinate alone. Marks at the bottom have no value."
    if len(shown) < len(columns):
        words += f" The first {len(shown)} of {len(columns)} coordinates are shown."
    panels = {"panels": len(shown), "in_a_row": _IN_A_ROW}
    drawable, cut = with_room(overview)
    draw = partial(_draw_coordinates, drawable, shown)
    return drawn("Values against each coordinate", words + cut, draw, 2.5, **panels)


def _draw_coordinates(overview: Overview, columns: Sequence[Column], *axes: Axes) -> None:
    for j, (column, ax) in enumerate(zip(columns, axes, strict=True)):
        numbers = _numbers(overview, j)
        mark_states(
            ax, overview, lambda story, of=numbers: of[story.id], lambda story: story.value or 0.0
        )
        scale_axis(ax, "x", column, min(numbers))
        if not overview.observed:
            ax.set_yticks([])
        else:
            label_first(ax, overview.objective.title)


def _numbers(overview: Overview, j: int) -> list[float]:
    """The numbers that all trials have in a column."""
    return [[*story.x, *story.context][j] for story in overview.stories]
