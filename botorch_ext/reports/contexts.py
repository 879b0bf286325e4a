"""Contexts: the best value so far in each context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from botorch_ext.palette import PALETTE
from botorch_ext.reports.drawing import Picture, drawn, in_lines, legend_above
from botorch_ext.reports.overview import Overview, TrialStory
from botorch_ext.reports.trial_markers import with_room
from botorch_ext.reports.words import cut

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many lines can be told apart.
_MOST_LINES = 6


@dataclass(frozen=True)
class InContext:
    """The trials of one context that have a value.

    Args:
        context: The ``d_z`` coordinates.
        stories: The trials, by id.
        best: The trial with the best value.
    """

    context: list[float]
    stories: list[TrialStory]
    best: TrialStory


def by_context(overview: Overview) -> list[InContext]:
    """The contexts, the one with the most values first. There are none if fewer than two contexts
    have values, or no context has two values."""
    found: dict[tuple[float, ...], list[TrialStory]] = {}
    for story in overview.inside:
        if story.context:
            found.setdefault(tuple(story.context), []).append(story)
    if len(found) < 2 or len(found) == sum(map(len, found.values())):
        return []
    return [
        InContext(list(context), stories, overview.best_of(stories))
        for context, stories in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def best_so_far(overview: Overview, stories: Sequence[TrialStory]) -> tuple[list[int], list[float]]:
    """The best values so far of some trials that have one, as a line up to the last trial.

    Args:
        overview: The study.
        stories: The trials, by id.

    Returns:
        The ids along the line, and the best value from each of them on.
    """
    if not stories:
        return [], []
    better = min if overview.minimize else max
    best = list(accumulate((story.value or 0.0 for story in stories), better))
    ids = [story.id for story in stories]
    return [*ids, len(overview.stories) - 1], [*best, best[-1]]


def best_per_context(overview: Overview) -> Picture | None:
    """The picture of the best values in each context; None if `by_context` gives no contexts."""
    known = by_context(overview)
    if not known:
        return None
    words = "Each line is a context, at the best value that was measured in it up to there."
    if len(known) > _MOST_LINES:
        words += f" The {_MOST_LINES} of {len(known)} contexts with the most values are shown."
    drawable, limited = with_room(overview)
    draw = partial(_draw, drawable, by_context(drawable)[:_MOST_LINES])
    return drawn("Best so far in each context", words + limited, draw, 3.2)


def _draw(overview: Overview, known: Sequence[InContext], ax: Axes) -> None:
    for own, color in zip(known, PALETTE, strict=False):
        label = cut(overview.columns.context_in_words(own.context), 24)
        ax.step(*best_so_far(overview, own.stories), where="post", color=color, label=label)
        ids, values = zip(*((story.id, story.value) for story in own.stories), strict=True)
        ax.plot(ids, values, "o", color=color, markersize=3)
    ax.set_xlabel("trial")
    ax.set_ylabel(in_lines(ax, "y", overview.objective.title))
    ax.locator_params(axis="x", integer=True)
    legend_above(ax)
