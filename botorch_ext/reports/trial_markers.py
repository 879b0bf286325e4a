"""Trial markers: how trials look in pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botorch_ext.palette import PALETTE
from botorch_ext.reports.drawing import colored
from botorch_ext.reports.overview import Overview, State, TrialStory
from botorch_ext.reports.words import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, RED, GREEN, PINK, _ORANGE, SKY, _ = PALETTE
_GREY = "#7f7f7f"
LOOKS: dict[State, tuple[str, str]] = {
    "told": ("o", BLUE),
    "attached": ("D", GREEN),
    "pending": ("^", _ORANGE),
    "failed": ("X", RED),
    "abandoned": ("s", _GREY),
}
# Numbers that are larger have no room on an axis.
_LARGEST = 1e300


def with_room(overview: Overview) -> tuple[Overview, str]:
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


def mark_states(
    ax: Axes,
    overview: Overview,
    across: Callable[[TrialStory], float],
    up: Callable[[TrialStory], float],
) -> None:
    """A mark for each trial; those without a value at the bottom."""
    for state, (marker, color) in LOOKS.items():
        own = overview.having(state)
        if state in ("told", "attached"):
            heights, where = [up(story) for story in own], {}
        else:
            heights = [0.0] * len(own)
            where = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        colored(ax, [across(story) for story in own], heights, marker, color, label=state, **where)


def ring(ax: Axes, across: float, up: float) -> None:
    """A ring around the best trial."""
    look: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.8, "markersize": 13}
    ax.plot(across, up, "o", color=RED, linestyle="none", label="best", clip_on=False, **look)
