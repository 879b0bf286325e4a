"""Pictures of a study: values, feedback in time, asked points, and models or rounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from botorch_ext.aligned import cut
from botorch_ext.page.asked_points import coordinates, parallel_coordinates, plane
from botorch_ext.page.calibration import calibration
from botorch_ext.page.drawing import (
    BLUE,
    LOOKS,
    PINK,
    SKY,
    Picture,
    drawn,
    legend_above,
    mark_states,
    marks,
    ring,
)
from botorch_ext.page.groups import Part, by_context
from botorch_ext.page.model_summary import ModelSummary
from botorch_ext.page.overview import Overview, TrialStory
from botorch_ext.page.words import counted, duration
from botorch_ext.palette import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many lines of contexts can be told apart.
_MOST_LINES = 6


def pictures(
    overview: Overview, parts: Sequence[Part], now: float, model: ModelSummary
) -> list[Picture]:
    """All pictures for which the study has data.

    Args:
        overview: The overview of the study, with at least one trial.
        parts: The ways to sort the trials by model, level or round.
        now: The time, in seconds since 1970.
        model: What the model says; empty if the strategy could not be made.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    noise_std = 0.0 if model.gain is None else model.gain.noise_std
    shown = [
        _values(overview, model) if overview.observed else None,
        _best_per_context(overview),
        *_of_model(overview, model),
        calibration(overview, noise_std),
        plane(overview) if len(overview.stories[0].x) == 2 else None,
        coordinates(overview),
        parallel_coordinates(overview),
        _feedback(overview, now) if overview.num_asked else None,
        *(_part(overview, part) for part in parts),
    ]
    return [picture for picture in shown if picture is not None]


def _of_model(overview: Overview, model: ModelSummary) -> list[Picture]:
    if model.study is None or model.recommended is None:
        return []
    from botorch_ext.page.model_pictures import model_pictures

    return model_pictures(overview, model, model.study, model.recommended)


# --- values ---------------------------------------------------------------------------------------


def _values(overview: Overview, model: ModelSummary) -> Picture:
    best, expected = overview.best, None
    words = (
        "Each mark is a trial, from left to right in the order of asking. The line is the best "
        "value among the trials up to there."
    )
    if best is not None:
        value = overview.objective.amount(best.value)
        words += f" The ring is the best of all, {value}, of trial {best.id}."
    without = [state for state in ("pending", "failed", "abandoned") if overview.having(state)]
    if without:
        words += f" Marks at the bottom have no value: they are {_enumerated(without)}."
    if overview.stories[0].context:
        words += " Trials had different contexts, so not all values can be compared."
    if model.gain is not None and model.at_recommended is not None:
        words += (
            " The dashed line begins at what is predicted at the recommended point, and "
            f"{'falls' if overview.minimize else 'rises'} by what the next batch is expected to "
            "gain."
        )
        begin, across = model.at_recommended.mean, len(overview.stories) - 1
        end = begin + overview.sign * model.gain.gain
        expected = [across, across + len(model.gain.x)], [begin, end]

    def draw(ax: Axes) -> None:
        ids, values = _best_so_far(overview, overview.eligible)
        ax.step(ids, values, where="post", color=SKY, linewidth=1.6, label="best so far")
        mark_states(ax, overview, lambda story: story.id)
        if best is not None:
            ring(ax, best.id, best.value or 0.0)
        if expected is not None:
            ax.plot(*expected, "--", color=PINK, linewidth=2, label="expected next")
        _over_trials(ax, overview.objective.title)

    return drawn("Values, and the best so far", words, draw, 3.2)


def _best_so_far(
    overview: Overview, stories: Sequence[TrialStory]
) -> tuple[list[int], list[float]]:
    """The best values so far of some trials that have one, as a line up to the last trial: the ids
    along it, and the best value from each of them on."""
    if not stories:
        return [], []
    better = min if overview.minimize else max
    best = list(accumulate((story.value or 0.0 for story in stories), better))
    ids = [story.id for story in stories]
    return [*ids, len(overview.stories) - 1], [*best, best[-1]]


def _best_per_context(overview: Overview) -> Picture | None:
    """None if there are no several contexts with values."""
    known = by_context(overview)
    if not known:
        return None
    words = "Each line is a context, at the best value that was measured in it up to there."
    if len(known) > _MOST_LINES:
        words += f" The {_MOST_LINES} of {len(known)} contexts with the most values are shown."

    def draw(ax: Axes) -> None:
        for (context, stories), color in zip(known.items(), PALETTE[:_MOST_LINES], strict=False):
            label = cut(overview.columns.context_in_words(context), 24)
            ax.step(*_best_so_far(overview, stories), where="post", color=color, label=label)
            values = [story.value or 0.0 for story in stories]
            marks(ax, [story.id for story in stories], values, "o", color, markersize=3)
        _over_trials(ax, overview.objective.title)

    return drawn("Best so far in each context", words, draw)


def _over_trials(ax: Axes, title: str) -> None:
    ax.set_xlabel("trial")
    ax.set_ylabel(title)
    ax.locator_params(axis="x", integer=True)
    legend_above(ax)


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
    height = min(6.0, 1.6 + 0.1 * overview.num_asked)
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
    width = min(3.0, max(0.6, 300 / len(overview.stories)))
    for state, (_, color) in LOOKS.items():
        own = [story for story in overview.having(state) if story.asked_at is not None]
        if own:
            ids = [story.id for story in own]
            starts = _dates([story.asked_at or now for story in own])
            ends = _dates([story.ended_at or now for story in own])
            ax.hlines(ids, starts, ends, color=color, label=state, linewidth=width)
            marks(ax, ends, ids, "o", color, markersize=width + 1.5)
    asked = [story.id for story in overview.stories if story.asked_at is not None]
    ax.set_ylim(asked[-1] + 0.5, asked[0] - 0.5)
    ax.xaxis_date(UTC)
    ax.set_xlabel("time (UTC)")
    ax.set_ylabel("trial")
    ax.locator_params(axis="y", integer=True)
    legend_above(ax)


def _dates(times: Sequence[float]) -> Any:
    from matplotlib.dates import date2num

    return date2num([datetime.fromtimestamp(at, UTC) for at in times])


# --- what trials were asked for -------------------------------------------------------------------


def _part(overview: Overview, part: Part) -> Picture:
    def draw(ax: Axes) -> None:
        for row, (_, ids) in enumerate(part.members):
            marks(ax, ids, [row] * len(ids), "o", BLUE)
        names = [f"{cut(name, 24)} ({len(ids)})" for name, ids in part.members]
        ax.set_yticks(range(len(names)), names)
        ax.set_ylim(len(names) - 0.5, -0.5)
        ax.set_xlim(-0.5, len(overview.stories) - 0.5)
        ax.set_xlabel("trial")
        ax.locator_params(axis="x", integer=True)
        ax.grid(axis="x", visible=False)
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)

    return drawn(part.title, part.words, draw, 0.9 + 0.26 * len(part.members))


def _enumerated(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
