"""Contexts: the best value so far in each of them."""

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

# Lines that can be told apart.
_MOST_LINES = 6


@dataclass(frozen=True)
class InContext:
    """The trials of one context that have a value.

    Args:
        context: ``d_z``.
        stories: Of the trials, by id.
        best: The one with the best value.
    """

    context: list[float]
    stories: list[TrialStory]
    best: TrialStory


def by_context(overview: Overview) -> list[InContext]:
    """The contexts, the one with the most values first; none where there is one at most, or none
    has come twice."""
    found: dict[tuple[float, ...], list[TrialStory]] = {}
    for story in overview.observed:
        if story.context:
            found.setdefault(tuple(story.context), []).append(story)
    if len(found) < 2 or len(found) == sum(map(len, found.values())):
        return []
    return [
        InContext(
            list(context),
            stories,
            max(stories, key=lambda story: overview.sign * (story.value or 0.0)),
        )
        for context, stories in sorted(found.items(), key=lambda item: -len(item[1]))
    ]


def best_per_context(overview: Overview) -> Picture | None:
    """The picture; None where no contexts can be told apart."""
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
    better, end = min if overview.minimize else max, len(overview.stories) - 1
    for own, color in zip(known, PALETTE, strict=False):
        ids = [story.id for story in own.stories]
        best = list(accumulate((story.value or 0.0 for story in own.stories), better))
        label = cut(overview.columns.context_in_words(own.context), 24)
        ax.step([*ids, end], [*best, best[-1]], where="post", color=color, label=label)
        ax.plot(ids, [story.value or 0.0 for story in own.stories], "o", color=color, markersize=3)
    ax.set_xlabel("trial")
    ax.set_ylabel(in_lines(ax, "y", overview.objective.title))
    ax.locator_params(axis="x", integer=True)
    legend_above(ax)
