"""Pictures of a study: values, feedback in time, asked points, and models or rounds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Any

from botorch_ext.reports.asked_points import coordinates, plane
from botorch_ext.reports.calibration import calibration
from botorch_ext.reports.contexts import best_per_context, best_so_far
from botorch_ext.reports.drawing import MOST_MARKS, Picture, colored, drawn, in_lines, legend_above
from botorch_ext.reports.model_numbers import ModelNumbers
from botorch_ext.reports.model_pictures import model_pictures
from botorch_ext.reports.models_and_rounds import Part
from botorch_ext.reports.overview import Overview
from botorch_ext.reports.parallel_coordinates import parallel_coordinates
from botorch_ext.reports.trial_markers import BLUE, LOOKS, PINK, SKY, mark_states, ring, with_room
from botorch_ext.reports.words import counted, duration

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def pictures(
    overview: Overview, parts: Sequence[Part], now: float, model: ModelNumbers
) -> list[Picture]:
    """All pictures for which the study has data.

    Args:
        overview: The overview of the study, with at least one trial.
        parts: The ways to sort the trials by model, level or round.
        now: The time, in seconds since 1970.
        model: The model numbers; empty if the strategy could not be made.

    Raises:
        ImportError: Matplotlib is not installed.
    """
    noise_std = 0.0 if model.next_batch is None else model.next_batch.noise_std
    shown = [
        _values(overview, model) if overview.observed else None,
        best_per_context(overview),
        *model_pictures(overview, model),
        calibration(overview, noise_std),
        plane(overview) if len(overview.stories[0].x) == 2 else None,
        coordinates(overview),
        parallel_coordinates(overview),
        _feedback(overview, now) if overview.num_asked else None,
        *(_part(overview, part) for part in parts),
    ]
    return [picture for picture in shown if picture is not None]


# --- values ---------------------------------------------------------------------------------------


def _values(overview: Overview, model: ModelNumbers) -> Picture:
    best = overview.best
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
    if model.next_batch is not None and model.recommended is not None:
        words += (
            " The dashed line begins at what is predicted at the recommended point, and "
            f"{'falls' if overview.minimize else 'rises'} by what the next batch is expected to "
            "gain."
        )
    drawable, cut = with_room(overview)
    draw = partial(_draw_values, drawable, model)
    return drawn("Values, and the best so far", words + cut, draw, 3.4)


def _draw_values(overview: Overview, model: ModelNumbers, ax: Axes) -> None:
    end = len(overview.stories) - 1
    ids, best = best_so_far(overview, overview.inside)
    ax.step(ids, best, where="post", color=SKY, linewidth=1.6, label="best so far")
    mark_states(ax, overview, lambda story: story.id, lambda story: story.value or 0.0)
    found = overview.best
    if found is not None:
        ring(ax, found.id, found.value or 0.0)
    if model.next_batch is not None and model.recommended is not None:
        begin, gain = model.recommended.prediction.mean, model.next_batch.gain
        ends = [begin, begin + overview.sign * gain]
        across = [end, end + max(1, len(model.next_batch.points))]
        ax.plot(across, ends, "--", color=PINK, linewidth=2, label="expected next")
    ax.set_xlabel("trial")
    ax.set_ylabel(in_lines(ax, "y", overview.objective.title))
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
    height = min(6.0, 1.6 + 0.12 * overview.num_asked)
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
    for state, (_, color) in LOOKS.items():
        own = [story for story in overview.having(state) if story.asked_at is not None]
        if own:
            ids = [story.id for story in own]
            starts = _dates([story.asked_at or now for story in own])
            ends = _dates([story.ended_at or now for story in own])
            look: dict[str, Any] = {"linewidth": width, "rasterized": many}
            ax.hlines(ids, starts, ends, color=color, label=state, **look)
            look = {"markersize": width + 1.5, "rasterized": many, "markeredgewidth": 0}
            ax.plot(ends, ids, "o", color=color, **look)
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
    height = 0.9 + 0.26 * len(part.members)
    return drawn(part.title, part.words, partial(_draw_part, overview, part), height)


def _draw_part(overview: Overview, part: Part, ax: Axes) -> None:
    for row, member in enumerate(part.members):
        rows = [row] * len(member.ids)
        colored(ax, member.ids, rows, "o", BLUE)
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
