"""The status of a study, in a few lines."""

from __future__ import annotations

from collections import Counter

from botorch_ext.aligned import printable
from botorch_ext.page.overview import Overview, State, TrialStory
from botorch_ext.page.strategy_description import called
from botorch_ext.page.words import counted, duration, in_words, moment, short

_STATES: tuple[State, ...] = ("told", "pending", "failed", "abandoned")
_MOST_PENDING = 10


def as_text(overview: Overview, now: float, warning: str | None = None) -> str:
    """The strategy, the pending trials, the best value so far and the last result, as text.

    Args:
        overview: The overview of the study.
        now: The time, in seconds since 1970.
        warning: A last line, such as that data refuted the model. None: there is none.
    """
    goal = "smallest" if overview.minimize else "largest"
    rows = [
        ("strategy", called(overview.description)),
        ("looks for", f"the {goal} {overview.objective.title}"),
        *_known(overview, now),
        *([] if warning is None else [("warning", warning)]),
    ]
    width = max(len(key) for key, _ in rows)
    head = f"study {overview.name!r} in {printable(overview.place)}\n"
    return head + "".join(f"  {key.ljust(width)}  {words}\n" for key, words in rows)


def counts(overview: Overview) -> str:
    """How many trials there are of each kind."""
    asked = Counter(story.state for story in overview.stories if story.asked_at is not None)
    others = Counter(story.state for story in overview.stories if story.asked_at is None)
    of_asked = ", ".join(f"{asked[state]} {state}" for state in _STATES if asked[state])
    words = f"{overview.num_asked} asked" + (f": {of_asked}" if of_asked else "")
    names = {"attached": "attached", "failed": "attached as failed", "withdrawn": "withdrawn"}
    words += "".join(f"; {others[state]} {name}" for state, name in names.items() if others[state])
    if corrected := len(overview.corrected):
        words += f"; {corrected} corrected"
    return words


def seen_or_not(gain: float, noise_std: float) -> str:
    """Whether one measurement shows a gain, beside its noise."""
    if gain > noise_std:
        return "a gain like this can be seen."
    return "a gain like this is hard to see in a single measurement."


def _known(overview: Overview, now: float) -> list[tuple[str, str]]:
    if overview.began_at is None:
        return [("trials", "none yet")]
    rows = [
        ("began", _when(overview.began_at, now)),
        ("trials", counts(overview)),
    ]
    for place, (at, _, parameters) in enumerate(overview.widened):
        words = ", ".join(f"{short(name)} {in_words(each)}" for name, each in parameters.items())
        rows.append(("" if place else "widened", f"{words}, {_when(at, now)}"))
    pending = overview.pending
    for place, story in enumerate(pending[:_MOST_PENDING]):
        since = f"for {duration(story.waited(now))}"
        rows.append(
            ("" if place else "pending", f"trial {story.id} {_at(overview, story)}, {since}")
        )
    if len(pending) > _MOST_PENDING:
        rows.append(("", f"and {counted(len(pending) - _MOST_PENDING, 'more trial')}"))
    rows += _best(overview)
    for name, limit in overview.limits.items():
        words = f"{short(name)} {limit}"
        rows.append(("" if rows[-1][0] == "limits" else "limits", words))
    if overview.limits:
        num, of = len(overview.within_limits), len(overview.observed)
        rows.append(("", f"all kept in {num} of {counted(of, 'result')}"))
    last = overview.last
    if last is not None and last.ended_at is not None:
        amount = overview.objective.amount
        words = f"{amount(last.first_value)}, trial {last.id}, {_when(last.ended_at, now)}"
        if last.corrections:
            words += f"; corrected to {amount(last.value)}, {_when(last.corrections[-1].at, now)}"
        rows.append(("last result", words))
    else:
        rows.append(("last result", "none yet"))
    return rows


def _best(overview: Overview) -> list[tuple[str, str]]:
    rows = []
    best, given, amount = overview.best, overview.given, overview.objective.amount
    if overview.best_given is not None:
        value, place = overview.best_given
        words = f"{amount(value)}, of the data given at the start"
        words += "" if place is None else f", at {overview.columns.at(place)}"
        rows.append(("best so far", words))
    if best is not None:
        words = f"{amount(best.value)}, trial {best.id} {_at(overview, best)}"
        if best.context:
            words += ", over all contexts"
        rows.append(("best trial" if rows else "best so far", words))
    if given is not None and not given.values:
        words = f"without the {counted(given.count, 'value')} given at the start: they are not kept"
        rows.append(("", words))
    return rows


def _when(at: float, now: float) -> str:
    return f"{moment(at)} UTC, {duration(now - at)} ago"


def _at(overview: Overview, story: TrialStory) -> str:
    return f"at {overview.columns.at(story.x, story.context)}"
