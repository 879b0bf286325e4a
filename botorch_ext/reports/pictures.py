"""Pictures of a study: its values, its feedback in time, where it asked, and what it asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from botorch_ext.palette import PALETTE
from botorch_ext.reports.described import Scales, scales
from botorch_ext.reports.drawing import (
    MOST_MARKS,
    Picture,
    colored,
    drawn,
    legend_above,
    scale_axis,
)
from botorch_ext.reports.overview import Overview, State, TrialStory
from botorch_ext.reports.parts import Part
from botorch_ext.reports.tables import columns
from botorch_ext.reports.words import counted, duration, number, point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _RED, _GREEN, _PINK, _ORANGE, _SKY, _ = PALETTE
_GREY = "#7f7f7f"
_LOOKS: dict[State, tuple[str, str]] = {
    "told": ("o", _BLUE),
    "attached": ("D", _GREEN),
    "pending": ("^", _ORANGE),
    "failed": ("X", _RED),
    "abandoned": ("s", _GREY),
}
_NAMES: dict[State, str] = {"pending": "Triangles", "failed": "Crosses", "abandoned": "Squares"}
# Numbers that are larger have no room on an axis.
_LARGEST = 1e300
# Coordinates that have a panel.
_MOST_PANELS = 12
_IN_A_ROW = 3


def pictures(overview: Overview, parts: Sequence[Part], now: float) -> list[Picture]:
    """All pictures that the study has something for.

    Args:
        overview: Of the study, with at least one trial.
        parts: What its trials were asked for.
        now: In seconds since 1970.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    shown = [_values(overview)] if overview.observed else []
    if overview.num_asked:
        shown.append(_feedback(overview, now))
    if len(overview.stories[0].x) == 2:
        shown.append(_plane(overview))
    shown.append(_coordinates(overview))
    return [*shown, *(_part(overview, part) for part in parts)]


def _drawable(overview: Overview) -> tuple[Overview, str]:
    """The study with numbers that have room on an axis, and what to say where others were cut."""
    numbers = [
        number
        for story in overview.stories
        for number in (*story.x, *story.context, story.value or 0.0)
    ]
    if max(map(abs, numbers)) <= _LARGEST:
        return overview, ""
    stories = [
        replace(
            story,
            x=list(map(_cut, story.x)),
            context=list(map(_cut, story.context)),
            value=None if story.value is None else _cut(story.value),
        )
        for story in overview.stories
    ]
    words = f" Numbers beyond {number(_LARGEST)} are drawn there."
    return replace(overview, stories=stories), words


def _cut(number: float) -> float:
    return max(-_LARGEST, min(_LARGEST, number))


# --- values ---------------------------------------------------------------------------------------


def _values(overview: Overview) -> Picture:
    best = overview.best
    words = (
        "Each mark is a trial, from left to right in the order of asking. The line is the best "
        "value among the trials up to there."
    )
    if best is not None:
        words += f" The ring is the best of all, {number(best.value)}, of trial {best.id}."
    without = [state for state in ("pending", "failed", "abandoned") if overview.having(state)]
    if without:
        words += f" Marks at the bottom have no value: they are {_enumerated(without)}."
    if overview.stories[0].context:
        words += " Trials had different contexts, so not all values can be compared."
    drawable, cut = _drawable(overview)
    return drawn("Values, and the best so far", words + cut, partial(_draw_values, drawable), 3.4)


def _draw_values(overview: Overview, ax: Axes) -> None:
    observed = overview.observed
    better = min if overview.minimize else max
    best = list(accumulate((story.value or 0.0 for story in observed), better))
    ids = [story.id for story in observed]
    end = len(overview.stories) - 1
    ax.step(
        [*ids, end], [*best, best[-1]], where="post", color=_SKY, linewidth=1.6, label="best so far"
    )
    _mark_states(ax, overview, lambda story: story.id, lambda story: story.value or 0.0)
    found = overview.best
    if found is not None:
        _ring(ax, found.id, found.value or 0.0)
    ax.set_xlabel("trial")
    ax.set_ylabel("value")
    ax.locator_params(axis="x", integer=True)
    legend_above(ax)


def _mark_states(
    ax: Axes,
    overview: Overview,
    across: Callable[[TrialStory], float],
    up: Callable[[TrialStory], float],
) -> None:
    """A mark for each trial; those without a value at the bottom."""
    for state, (marker, color) in _LOOKS.items():
        own = overview.having(state)
        if state in ("told", "attached"):
            heights, where = [up(story) for story in own], {}
        else:
            heights = [0.0] * len(own)
            where = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        colored(ax, [across(story) for story in own], heights, marker, color, label=state, **where)


def _ring(ax: Axes, across: float, up: float) -> None:
    look: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.8, "markersize": 13}
    ax.plot(across, up, "o", color=_RED, linestyle="none", label="best", clip_on=False, **look)


# --- time -----------------------------------------------------------------------------------------


def _feedback(overview: Overview, now: float) -> Picture:
    waits = sorted(story.waited(now) for story in overview.having("told"))
    words = "One line for each trial, from when it was asked to when its value came."
    if waits:
        words += (
            f" Half of the values came within {duration(median(waits))}, the slowest took "
            f"{duration(waits[-1])}."
        )
    late = _overtaken(overview)
    if late:
        words += (
            f" {counted(late, 'value')} came after that of a trial which was asked later: feedback "
            "is out of order."
        )
    if overview.pending:
        words += " Lines of pending trials end now."
    height = min(6.0, 1.6 + 0.12 * len(overview.stories))
    title = "When trials were asked and told"
    return drawn(title, words, partial(_draw_feedback, overview, now), height)


def _overtaken(overview: Overview) -> int:
    """How many trials were told after one that was asked later, and not at the same time."""
    count, earliest = 0, float("inf")
    told = reversed(overview.having("told"))
    for _, together in groupby(told, key=lambda story: story.asked_at):
        ends = [story.ended_at for story in together if story.ended_at is not None]
        count += sum(end > earliest for end in ends)
        earliest = min([earliest, *ends])
    return count


def _draw_feedback(overview: Overview, now: float, ax: Axes) -> None:
    many = len(overview.stories) > MOST_MARKS
    width = min(3.0, max(0.6, 300 / len(overview.stories)))
    for state, (_, color) in _LOOKS.items():
        own = [story for story in overview.having(state) if story.asked_at is not None]
        if own:
            ids = [story.id for story in own]
            starts = _dates([story.asked_at or now for story in own])
            ends = _dates([story.ended_at or now for story in own])
            look: dict[str, Any] = {"linewidth": width, "rasterized": many}
            ax.hlines(ids, starts, ends, color=color, label=state, **look)
            look = {"markersize": width + 1.5, "rasterized": many, "markeredgewidth": 0}
            ax.plot(ends, ids, "o", color=color, **look)
    last = len(overview.stories) - 0.5
    ax.set_ylim(last, -0.5)
    ax.xaxis_date(UTC)
    ax.set_xlabel("time (UTC)")
    ax.set_ylabel("trial")
    ax.locator_params(axis="y", integer=True)
    legend_above(ax)


def _dates(times: Sequence[float]) -> Any:
    from matplotlib.dates import date2num

    return date2num([datetime.fromtimestamp(at, UTC) for at in times])


# --- places ---------------------------------------------------------------------------------------


def _plane(overview: Overview) -> Picture:
    words, best = [], overview.best
    if best is not None:
        words.append(
            "Each dot is a value where it was measured; its colour says how good it is, yellow is "
            f"best. The ring is the best trial, at {point(best.x)}."
        )
        if best.context:
            words.append("Trials had different contexts, so not all values can be compared.")
    words += [f"{name} are {state}." for state, name in _NAMES.items() if overview.having(state)]
    drawable, cut = _drawable(overview)
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
        bar = figure.colorbar(dots, ax=ax, label="value")
        bar.outline.set_visible(False)  # type: ignore[operator]
        bar.solids.set_rasterized(True)  # type: ignore[union-attr]
    for state in ("pending", "failed", "abandoned"):
        marker, color = _LOOKS[state]
        without = overview.having(state)
        xs = [[story.x[j] for story in without] for j in range(2)]
        colored(ax, xs[0], xs[1], marker, color, label=state)
    best = overview.best
    if best is not None:
        _ring(ax, best.x[0], best.x[1])
    known = scales(overview.description)
    for j, axis in enumerate((ax.xaxis, ax.yaxis)):
        axis.set_label_text(f"x{j}")
        scale_axis(axis, *_kind(known, f"x{j}", [story.x[j] for story in overview.stories]))
    legend_above(ax)


def _coordinates(overview: Overview) -> Picture:
    names = [name for group in columns(overview) for name in group]
    shown = names[:_MOST_PANELS]
    words = "Each trial against each coordinate alone. Marks at the bottom have no value."
    if len(shown) < len(names):
        words += f" The first {len(shown)} of {len(names)} coordinates are shown."
    panels = {"panels": len(shown), "in_a_row": _IN_A_ROW}
    drawable, cut = _drawable(overview)
    draw = partial(_draw_coordinates, drawable, shown)
    return drawn("Values against each coordinate", words + cut, draw, 2.5, **panels)


def _draw_coordinates(overview: Overview, names: Sequence[str], *axes: Axes) -> None:
    known = scales(overview.description)
    for j, (name, ax) in enumerate(zip(names, axes, strict=True)):
        numbers = [[*story.x, *story.context][j] for story in overview.stories]
        _mark_states(
            ax, overview, lambda story, of=numbers: of[story.id], lambda story: story.value or 0.0
        )
        ax.set_xlabel(name)
        scale_axis(ax.xaxis, *_kind(known, name, numbers))
        if not overview.observed:
            ax.set_yticks([])
        elif j % _IN_A_ROW:
            ax.tick_params(labelleft=False)
        else:
            ax.set_ylabel("value")


def _kind(known: Scales, name: str, numbers: Sequence[float]) -> tuple[bool, bool, Sequence[float]]:
    """Whether a coordinate has a logarithmic scale or whole numbers, and its codes."""
    log = name in known.log and min(numbers) > 0
    return log, name in known.integer, known.codes.get(name, ())


# --- what trials were asked for -------------------------------------------------------------------


def _part(overview: Overview, part: Part) -> Picture:
    height = 0.9 + 0.26 * len(part.members)
    return drawn(part.title, part.words, partial(_draw_part, overview, part), height)


def _draw_part(overview: Overview, part: Part, ax: Axes) -> None:
    for row, member in enumerate(part.members):
        rows = [row] * len(member.ids)
        colored(ax, member.ids, rows, "o", _BLUE)
    names = [f"{member.name} ({len(member.ids)})" for member in part.members]
    ax.set_yticks(range(len(part.members)), names)
    ax.set_ylim(len(part.members) - 0.5, -0.5)
    ax.set_xlim(-0.5, len(overview.stories) - 0.5)
    ax.set_xlabel("trial")
    ax.locator_params(axis="x", integer=True)
    ax.grid(axis="x", visible=False)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _enumerated(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
