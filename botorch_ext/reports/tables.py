"""Tables: all trials of a study, as CSV and for the eye."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from botorch_ext.reports.overview import Overview, TrialStory
from botorch_ext.reports.words import iso, moment, number, printable
from botorch_ext.studies.csv_sheets import harmless


def as_csv(overview: Overview) -> str:
    """All trials as comma-separated values with a row of names. Times are UTC, values those of the
    user; ``first_value`` is what was told before a value was corrected; columns that begin with
    ``info_`` are what was known when a trial was asked, its mean in the sign of the values.

    Text that begins as a formula does has an apostrophe before it, as OWASP recommends, and
    characters that cannot be printed are escaped.
    """
    scalars = [overview.scalars(story) for story in overview.stories]
    extra = list(dict.fromkeys(key for known in scalars for key in known))
    names = [*_names(overview), "asked_at", "ended_at", "first_value", "corrected_at"]
    buffer = io.StringIO()
    # Quoted, a text is one cell whatever separates cells where it is read.
    writer = csv.writer(buffer, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([*names, *(_harmless(f"info_{key}") for key in extra)])
    for story, known in zip(overview.stories, scalars, strict=True):
        first = story.first_value if story.corrections else None
        last = story.corrections[-1].at if story.corrections else None
        times = [iso(at) for at in (story.asked_at, story.ended_at, last)]
        cells = [*_cells(story), *times[:2], first, times[2]]
        writer.writerow([_harmless(cell) for cell in (*cells, *(known.get(key) for key in extra))])
    return buffer.getvalue()


def as_text(overview: Overview) -> str:
    """All trials in columns of one width. Times are UTC."""
    rows = [[*_names(overview), "asked", "told or given up", "was"]]
    for story in overview.stories:
        cells = [number(cell) if isinstance(cell, float) else cell for cell in _cells(story)]
        was = ", ".join(number(correction.old) for correction in story.corrections)
        row = [*cells, moment(story.asked_at), moment(story.ended_at), was]
        rows.append(["" if cell is None else str(cell) for cell in row])
    if not overview.corrected:
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "".join(f"{printable(line)}\n" for line in lines)


def columns(overview: Overview) -> tuple[list[str], list[str]]:
    """What coordinates of points and of contexts are called."""
    first = overview.stories[0] if overview.stories else None
    dims = (len(first.x), len(first.context)) if first else (0, 0)
    return [f"x{j}" for j in range(dims[0])], [f"context{j}" for j in range(dims[1])]


def _names(overview: Overview) -> list[str]:
    xs, contexts = columns(overview)
    return ["id", "state", *xs, *contexts, "value"]


def _cells(story: TrialStory) -> Sequence[Any]:
    return [story.id, story.state, *story.x, *story.context, story.value]


def _harmless(cell: Any) -> Any:
    """A cell that no spreadsheet computes and no terminal obeys; numbers stay numbers."""
    return harmless(printable(cell)) if isinstance(cell, str) else cell
