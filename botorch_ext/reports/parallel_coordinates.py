"""Parallel coordinates: all parameters of each trial as one line, coloured by its value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botorch_ext.reports.drawing import BEHIND, Picture, drawn, is_narrow
from botorch_ext.reports.overview import Overview, TrialStory
from botorch_ext.reports.parameters import Column
from botorch_ext.reports.trial_markers import RED, with_room
from botorch_ext.reports.words import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS, _MOST_LINES = 16, 300
# Labels of a choice that have room on a row.
_MOST_LABELS = 8


def parallel_coordinates(overview: Overview) -> Picture | None:
    """The picture; None with fewer than two parameters or two values."""
    columns = overview.columns.all
    if len(columns) < 2 or len(overview.observed) < 2:
        return None
    words = (
        "Each line is a trial. It crosses the scale of each parameter where the trial was, and at "
        "the bottom that of its value; yellow lines are the best, the red one is the best of all."
    )
    if len(columns) > _MOST_ROWS:
        words += f" The first {_MOST_ROWS} of {len(columns)} parameters are shown."
    if (step := _step(len(overview.observed))) > 1:
        words += f" From the best to the worst one of {step} trials is shown."
    drawable, limited = with_room(overview)
    rows = min(len(columns), _MOST_ROWS) + 1
    draw = partial(_draw, drawable)
    return drawn("All parameters together", words + limited, draw, 0.4 + 0.75 * rows)


def _draw(overview: Overview, ax: Axes) -> None:
    from matplotlib.collections import LineCollection

    # The best on top.
    own = sorted(overview.observed, key=lambda story: overview.sign * (story.value or 0.0))
    own = own[:: -_step(len(own))][::-1]
    rows = overview.columns.all[:_MOST_ROWS]
    across = [_draw_scale(ax, overview, own, j, column) for j, column in enumerate(rows)]
    values = [story.value or 0.0 for story in own]
    across.append(_on_scale(ax, len(rows), overview.objective, values))
    lines = [list(zip(each, range(len(across)), strict=True)) for each in zip(*across, strict=True)]
    shown = LineCollection(
        lines,
        array=values,
        cmap="viridis_r" if overview.minimize else "viridis",
        linewidths=1.2,
        alpha=0.7,
    )
    ax.add_collection(shown)
    ax.plot(*zip(*lines[-1], strict=True), color=RED, linewidth=2.2)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(len(across) - 0.4, -0.6)
    ax.grid(axis="x", visible=False)
    ax.set_xticks([])
    ax.set_yticks(range(len(across)), [""] * len(across))
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _step(number: int) -> int:
    """Of how many trials one is shown."""
    return -(-number // _MOST_LINES)


def _draw_scale(
    ax: Axes, overview: Overview, own: Sequence[TrialStory], j: int, column: Column
) -> list[float]:
    """Draws the scale of a column of points or contexts: where trials are on it, from 0 to 1; NaN
    where the column does not count."""
    dim = len(overview.columns.x)
    counts = [j >= dim or overview.columns.counts(j, story.x) for story in own]
    numbers = [[*story.x, *story.context][j] for story in own]
    return _on_scale(
        ax,
        j,
        column,
        [number if count else math.nan for number, count in zip(numbers, counts, strict=True)],
    )


def _on_scale(ax: Axes, row: int, column: Column, numbers: Sequence[float]) -> list[float]:
    """Draws a scale with its name and its ends, or the labels of a choice: where the numbers are on
    it, from 0 to 1."""
    codes = [code for code, _ in column.labels]
    known = [number for number in numbers if not math.isnan(number)]
    ends = min(codes or known, default=0.0), max(codes or known, default=1.0)
    bent = math.log if column.log and ends[0] > 0 else float
    low, high = map(bent, ends)

    def place(number: float) -> float:
        return (bent(number) - low) / (high - low) if high > low else 0.5

    behind = {"facecolor": BEHIND, "edgecolor": "none", "pad": 1.0, "alpha": 0.8}
    few = 0 < len(codes) <= _MOST_LABELS
    marked = codes if few else sorted(set(ends))
    most = max(4, (36 if is_narrow(ax) else 80) // max(1, len(marked)))
    for mark in marked:
        at = place(mark)
        side = "left" if at < 0.1 else "right" if at > 0.9 else "center"
        label = dict(column.labels).get(mark, f"{mark:.4g}")
        ax.text(at, row + 0.1, cut(label, most), ha=side, va="top", fontsize=9, bbox=behind)
    title: dict[str, Any] = {"ha": "left", "va": "bottom", "fontweight": "bold", "bbox": behind}
    ax.text(0, row - 0.12, cut(column.title, 40 if is_narrow(ax) else 100), **title)
    return [math.nan if math.isnan(number) else place(number) for number in numbers]
