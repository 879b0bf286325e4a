"""Tables: all trials of a study, for programs and for the eye."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botorch_ext.aligned import aligned, free_names, printable
from botorch_ext.page.overview import Overview, TrialStory
from botorch_ext.page.parameters import Column, Columns
from botorch_ext.page.words import moment, number, short
from botorch_ext.studies.written_tables import WrittenTable, time_cell


def as_table(overview: Overview) -> WrittenTable:
    """All trials with all digits, under names with units in brackets.

    Times are UTC, values those of the user; ``first_value`` is what was told before a value was
    corrected; columns that begin with ``info_`` are what was known when a trial was asked, its mean
    in the sign of the values. ``note`` is there if a trial has a note.

    Characters that cannot be printed are escaped.
    """
    scalars, (columns, objective) = (
        list(map(overview.scalars, overview.stories)),
        overview.in_full(),
    )
    outcomes = overview.outcomes
    known_columns = [*columns.all, objective, *overview.outcome_columns]
    extra = list(dict.fromkeys(key for known in scalars for key in known))
    heads = [f"{each.name} [{each.unit}]" if each.unit else each.name for each in known_columns]
    own = ["trial", "state", "asked_at", "ended_at", "first_value", "corrected_at"]
    own += ["note"] * overview.has_notes
    own += [f"info_{key}" for key in extra]
    first, state, *last = free_names(own, [each.name for each in known_columns])
    names = [first, state, *heads, *last]
    rows = []
    for story, known in zip(overview.stories, scalars, strict=True):
        first = story.first_value if story.corrections else None
        corrected = story.corrections[-1].at if story.corrections else None
        times = list(map(time_cell, (story.asked_at, story.ended_at, corrected)))
        cells = [*_cells(story, columns, outcomes), *times[:2], first, times[2]]
        cells += [story.note] * overview.has_notes
        rows.append([_shown(cell) for cell in (*cells, *map(known.get, extra))])
    return WrittenTable([*map(printable, names)], rows)


def as_text(overview: Overview) -> str:
    """All trials in columns of one width. Times are UTC."""
    titles = [each.title for each in (*overview.columns.all, overview.objective)]
    titles += [short(each.title) for each in overview.outcome_columns]
    rare = ["was"] * bool(overview.corrected) + ["note"] * overview.has_notes
    rows = [["trial", "state", *titles, "asked", "told or given up", *rare]]
    for story in overview.stories:
        known = _cells(story, overview.columns, overview.outcomes)
        cells = [number(cell) if isinstance(cell, float) else cell for cell in known]
        was = ", ".join(number(correction.old) for correction in story.corrections)
        texts = {"was": was, "note": short(story.note)}
        row = [*cells, moment(story.asked_at), moment(story.ended_at), *map(texts.get, rare)]
        rows.append(["" if cell is None else str(cell) for cell in row])
    return "".join(f"{printable(line)}\n" for line in aligned(rows))


def _cells(story: TrialStory, columns: Columns, outcomes: Sequence[str]) -> list[Any]:
    """What a row says: the values of named parameters, nothing where one does not count, and the
    numbers of others; then what was measured."""
    cells = [
        _value(column, number) if columns.counts(j, story.x) else None
        for j, (column, number) in enumerate(zip(columns.x, story.x, strict=True))
    ]
    cells += map(_value, columns.context, story.context)
    return [story.id, story.state, *cells, story.value, *map(story.outcomes.get, outcomes)]


def _value(column: Column, number: float) -> Any:
    """A number of a column as what it stands for, in a named column."""
    if column.has_name and column.labels:
        return dict(column.labels).get(number, number)
    return int(number) if column.has_name and column.whole and number.is_integer() else number


def _shown(cell: Any) -> Any:
    """A cell that no terminal obeys; numbers stay numbers."""
    return printable(cell) if isinstance(cell, str) else cell
