"""The status of a study, in a few lines."""

from __future__ import annotations

from botorch_ext.reports.described import called
from botorch_ext.reports.overview import Overview, State, TrialStory
from botorch_ext.reports.words import counted, duration, moment, number, point, printable

_STATES: tuple[State, ...] = ("told", "pending", "failed", "abandoned")
_MOST_PENDING = 10


def as_text(overview: Overview, now: float) -> str:
    """What runs, what is pending, the best so far and when the last result came.

    Args:
        overview: Of the study.
        now: In seconds since 1970.
    """
    rows = [
        ("strategy", called(overview.description)),
        ("looks for", "the smallest value" if overview.minimize else "the largest value"),
        *_known(overview, now),
    ]
    width = max(len(key) for key, _ in rows)
    head = f"study {overview.name!r} in {printable(overview.place)}\n"
    return head + "".join(f"  {key.ljust(width)}  {words}\n" for key, words in rows)


def counts(overview: Overview) -> str:
    """How many trials there are of each kind."""
    parts = [(len(overview.having(state)), state) for state in _STATES]
    of_asked = ", ".join(f"{count} {state}" for count, state in parts if count)
    words = f"{overview.num_asked} asked" + (f": {of_asked}" if of_asked else "")
    if attached := len(overview.having("attached")):
        words += f"; {attached} attached"
    if corrected := len(overview.corrected):
        words += f"; {corrected} corrected"
    return words


def _known(overview: Overview, now: float) -> list[tuple[str, str]]:
    if overview.began_at is None:
        return [("trials", "none yet")]
    rows = [
        ("began", _when(overview.began_at, now)),
        ("trials", counts(overview)),
    ]
    pending = overview.pending
    for place, story in enumerate(pending[:_MOST_PENDING]):
        since = f"for {duration(story.waited(now))}"
        rows.append(("" if place else "pending", f"trial {story.id} {_at(story)}, {since}"))
    if len(pending) > _MOST_PENDING:
        rows.append(("", f"and {counted(len(pending) - _MOST_PENDING, 'more trial')}"))
    if overview.best is not None:
        best = overview.best
        rows.append(("best so far", f"{number(best.value)}, trial {best.id} {_at(best)}"))
    if overview.last is not None and overview.last.ended_at is not None:
        last = overview.last
        came = _when(overview.last.ended_at, now)
        rows.append(("last result", f"{number(last.value)}, trial {last.id}, {came}"))
    else:
        rows.append(("last result", "none yet"))
    return rows


def _when(at: float, now: float) -> str:
    return f"{moment(at)} UTC, {duration(now - at)} ago"


def _at(story: TrialStory) -> str:
    where = f"at {point(story.x)}"
    return f"{where} in context {point(story.context)}" if story.context else where
