"""Asked points: pictures of where a study asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botorch_ext.aligned import cut
from botorch_ext.page.drawing import (
    BEHIND,
    LOOKS,
    MOST_MARKS,
    RED,
    Picture,
    drawn,
    legend_above,
    mark_states,
    marks,
    ring,
    scale_axis,
)
from botorch_ext.page.overview import Overview, State, TrialStory
from botorch_ext.page.parameters import Column

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMES: dict[State, str] = {"pending": "Triangles", "failed": "Crosses", "abandoned": "Squares"}
# Coordinates that have a panel, rows of parallel coordinates, and their lines.
_MOST_PANELS, _MOST_ROWS, _MOST_LINES = 12, 16, 300
# Labels of a choice that have room on a row, characters of all of them, and those of a title.
_MOST_LABELS, _MOST_CHARACTERS, _LONGEST = 8, 36, 40


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
    draw = partial(_draw_plane, overview)
    return drawn("Where trials were asked", " ".join(words), draw, 3.6)


def _draw_plane(overview: Overview, ax: Axes) -> None:
    own, best, figure = _best_last(overview), overview.best, ax.get_figure(root=True)
    if own and figure is not None:
        dots = ax.scatter(
            [story.x[0] for story in own],
            [story.x[1] for story in own],
            c=[story.value or 0.0 for story in own],
            cmap=_colors(overview),
            s=26 if len(own) <= MOST_MARKS else 10,
            linewidths=0,
        )
        bar = figure.colorbar(dots, ax=ax, label=overview.objective.title)
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
    for state in _NAMES:
        without = overview.having(state)
        across, up = ([story.x[j] for story in without] for j in range(2))
        marks(ax, across, up, *LOOKS[state], label=state)
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
    draw = partial(_draw_coordinates, overview, shown)
    return drawn("Values against each coordinate", words, draw, panels=len(shown))


def _draw_coordinates(overview: Overview, columns: Sequence[Column], *axes: Axes) -> None:
    for j, (column, ax) in enumerate(zip(columns, axes, strict=True)):
        numbers = _numbers(overview, j)
        mark_states(ax, overview, lambda story, of=numbers: of[story.id])
        scale_axis(ax, "x", column, min(numbers))
        if not overview.observed:
            ax.set_yticks([])
    if overview.observed:
        axes[0].set_ylabel(overview.objective.title)


def parallel_coordinates(overview: Overview) -> Picture | None:
    """All parameters of each trial as one line, coloured by its value; None with fewer than two
    parameters or two values."""
    columns = overview.columns.all
    if len(columns) < 2 or len(overview.observed) < 2:
        return None
    words = (
        "Each line is a trial. It crosses the scale of each parameter where the trial was, and at "
        "the bottom that of its value; yellow lines are the best, the red one is the best of all."
    )
    if len(columns) > _MOST_ROWS:
        words += f" The first {_MOST_ROWS} of {len(columns)} parameters are shown."
    step = -(-len(overview.observed) // _MOST_LINES)
    if step > 1:
        words += f" From the best to the worst one of {step} trials is shown."
    own = _best_last(overview)[::-step][::-1]
    draw = partial(_draw_lines, overview, own)
    height = 0.4 + 0.6 * (min(len(columns), _MOST_ROWS) + 1)
    return drawn("All parameters together", words, draw, height)


def _draw_lines(overview: Overview, own: Sequence[TrialStory], ax: Axes) -> None:
    from matplotlib.collections import LineCollection

    columns, dim = overview.columns, len(overview.columns.x)
    across = []
    for j, column in enumerate(columns.all[:_MOST_ROWS]):
        counts = [j >= dim or columns.counts(j, story.x) for story in own]
        numbers = [[*story.x, *story.context][j] for story in own]
        known = [
            number if count else math.nan for number, count in zip(numbers, counts, strict=True)
        ]
        across.append(_on_scale(ax, j, column, known))
    values = [story.value or 0.0 for story in own]
    across.append(_on_scale(ax, len(across), overview.objective, values))
    lines = [list(zip(each, range(len(across)), strict=True)) for each in zip(*across, strict=True)]
    look: dict[str, Any] = {"cmap": _colors(overview), "linewidths": 1.2, "alpha": 0.7}
    ax.add_collection(LineCollection(lines, array=values, **look))
    ax.plot(*zip(*lines[-1], strict=True), color=RED, linewidth=2.2)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(across) - 0.4, -0.6)
    ax.grid(axis="x", visible=False)
    ax.set_xticks([])
    ax.set_yticks(range(len(across)), [""] * len(across))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _on_scale(ax: Axes, row: int, column: Column, numbers: Sequence[float]) -> list[float]:
    """Draws a scale with its name and its ends, or the labels of a choice: where the numbers are on
    it, from 0 to 1; NaN where the column does not count."""
    codes = [code for code, _ in column.labels]
    known = [number for number in numbers if not math.isnan(number)]
    ends = min(codes or known, default=0.0), max(codes or known, default=1.0)
    bent = math.log if column.log and ends[0] > 0 else float
    low, high = map(bent, ends)

    def place(number: float) -> float:
        return (bent(number) - low) / (high - low) if high > low else 0.5

    behind = {"facecolor": BEHIND, "edgecolor": "none", "pad": 1.0, "alpha": 0.8}
    marked = codes if 0 < len(codes) <= _MOST_LABELS else sorted(set(ends))
    most = max(4, _MOST_CHARACTERS // max(1, len(marked)))
    for mark in marked:
        at = place(mark)
        side = "left" if at < 0.1 else "right" if at > 0.9 else "center"
        label = dict(column.labels).get(mark, f"{mark:.4g}")
        ax.text(at, row + 0.1, cut(label, most), ha=side, va="top", fontsize=9, bbox=behind)
    title: dict[str, Any] = {"ha": "left", "va": "bottom", "fontweight": "bold", "bbox": behind}
    ax.text(0, row - 0.12, cut(column.title, _LONGEST), **title)
    return [math.nan if math.isnan(number) else place(number) for number in numbers]


def _best_last(overview: Overview) -> list[TrialStory]:
    """The trials that have a value, the best on top."""
    return sorted(overview.observed, key=lambda story: overview.sign * (story.value or 0.0))


def _colors(overview: Overview) -> str:
    return "viridis_r" if overview.minimize else "viridis"


def _numbers(overview: Overview, j: int) -> list[float]:
    """The numbers that all trials have in a column."""
    return [[*story.x, *story.context][j] for story in overview.stories]
