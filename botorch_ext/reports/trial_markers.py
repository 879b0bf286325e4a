"""Trial markers: how trials look in pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from botorch_ext.palette import PALETTE
from botorch_ext.reports.drawing import MOST_MARKS
from botorch_ext.reports.overview import Overview, State, TrialStory

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


def marks(
    ax: Axes, across: Sequence[float], up: Sequence[float], marker: str, color: Any, **look: Any
) -> None:
    """Draws marks, if there are any, smaller ones if there are many."""
    if len(across):
        many = len(across) > MOST_MARKS
        shown: dict[str, Any] = {"markersize": 3 if many else 5, "alpha": 0.6 if many else 0.9}
        ax.plot(across, up, marker, color=color, markeredgewidth=0, **shown | look)


def mark_states(ax: Axes, overview: Overview, across: Callable[[TrialStory], float]) -> None:
    """A mark for each trial at the height of its value; at the bottom if it has none."""
    for state, (marker, color) in LOOKS.items():
        own, where = overview.having(state), {}
        if state not in ("told", "attached"):
            where = {"transform": ax.get_xaxis_transform(), "clip_on": False}
        heights = [story.value or 0.0 for story in own]
        marks(ax, list(map(across, own)), heights, marker, color, label=state, **where)


def ring(ax: Axes, across: float, up: float) -> None:
    """A ring around the best trial."""
    look: dict[str, Any] = {"markerfacecolor": "none", "markeredgewidth": 1.8, "markersize": 13}
    ax.plot(across, up, "o", color=RED, linestyle="none", label="best", clip_on=False, **look)
