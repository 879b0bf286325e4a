"""Result columns: what the columns of earlier results mean, for the proposal of a space."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from botorch_ext.checks import did_you_mean, named, short
from botorch_ext.exceptions import TableError
from botorch_ext.studies.cell_values import decimal_of, number
from botorch_ext.studies.column_heads import TRIAL, is_written, name_and_unit, state_place
from botorch_ext.studies.result_tables import has_failed, says_failed
from botorch_ext.studies.sheets import Row, Sheet

# Names of columns that number the rows, and of remarks.
_RUNNING = re.compile(
    r"(lfd\.?[ -]*)?((versuch|experiment|exp|run|entry|sample|probe)s?[ .-]*)?"
    r"(nr|no|num|nummer|number|id|#)?\.?"
)
_REMARKS = re.compile(
    r"(bemerkung|anmerkung|notiz|beobachtung)(en)?|kommentare?|(remark|comment|note|observation)s?"
)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T]\d.*)?|\d{1,2}([./-])\d{1,2}\2(\d{2}|\d{4})")
# From so many rows on, 1, 2, 3 and so on number the rows.
_LEAST_RUNNING = 4
# Texts that differ are remarks if they are so many, or have so many words.
_MANY_TEXTS, _MANY_WORDS = 6, 3


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table of results."""

    head: str
    place: int
    name: str
    unit: str | None

    def cells(self, rows: Sequence[Row]) -> list[tuple[int, str]]:
        """The numbers of the rows in which the column is filled, with its texts."""
        return [(row.number, row.cells[self.place]) for row in rows if row.cells[self.place]]


@dataclass(frozen=True)
class ResultColumns:
    """The columns of a table of results.

    Args:
        parameters: The columns of parameters. The cells of each are numbers, or texts of a choice.
        objective: The column of the results.
        outcomes: The columns that are measured with it.
        left_out: What the columns hold that are neither, by their names.
        rows: The rows that have a result or failed.
        without_result: The numbers of the rows whose result is empty.
        decimal: The decimal sign of numbers that are texts.
    """

    parameters: list[ResultColumn]
    objective: ResultColumn
    outcomes: list[ResultColumn]
    left_out: dict[str, str]
    rows: list[Row]
    without_result: list[int]
    decimal: str


def result_columns(sheet: Sheet, objective: str | None, outcomes: Sequence[str]) -> ResultColumns:
    """Finds what the columns of a sheet mean.

    Args:
        sheet: The sheet.
        objective: The name of the column of the results. None: the last column of numbers.
        outcomes: The names of columns that are measured with it.

    Raises:
        TableError: A name is missing, unknown or there twice; a column is of numbers and has other
            cells, or has some dates; or there is no result, or no parameter. The message names
            cells.
    """
    columns = _named_columns(sheet)
    decimal = decimal_of(sheet, {each.head: each.place for each in columns}, {})
    left_out, known = {}, []
    for column in columns:
        if what := _what_else(column, sheet.rows, decimal):
            left_out[column.name] = what
        elif column.cells(sheet.rows):
            known.append(column)
    beside = [_named(sheet, columns, name, "an outcome") for name in outcomes]
    known = [column for column in known if column not in beside]
    found = _objective(sheet, columns, known, objective, decimal)
    for column in (found, *beside):
        left_out.pop(column.name, None)
    state = state_place(sheet.heads, ())
    failed = {row.number for row in sheet.rows if has_failed(row.cells, found.place, state)}
    told = [row for row in sheet.rows if row.cells[found.place] and row.number not in failed]
    counting = {row.number for row in told} | failed
    rows = [row for row in sheet.rows if row.number in counting]
    without = [row.number for row in sheet.rows if row.number not in counting]
    parameters = [each for each in known if each is not found and each.cells(rows)]
    if not parameters or not told:
        raise TableError(
            sheet.origin.message("there must be a column of a parameter, and a row with a result")
        )
    doubtful = [
        f"{column.name}: {cell}"
        for own, columns in ((rows, parameters), (told, (found, *beside)))
        for column in columns
        for cell in _doubtful(column, own, decimal, columns is not parameters)
    ]
    if doubtful:
        raise TableError(
            sheet.origin.message(
                f"{named(doubtful)}. Write numbers alone, their unit in the heading, dates that "
                "were numbers as numbers again, and a choice in words"
            )
        )
    return ResultColumns(parameters, found, beside, left_out, rows, without, decimal)


def _named_columns(sheet: Sheet) -> list[ResultColumn]:
    """The columns that this library does not add to tables."""
    columns: list[ResultColumn] = []
    for place, head in enumerate(sheet.heads):
        if head.casefold() == TRIAL or is_written(head):
            continue
        name, unit = name_and_unit(head)
        column = ResultColumn(head, place, name, unit)
        cells = column.cells(sheet.rows)
        if head and name in [each.name for each in columns]:
            raise TableError(sheet.origin.message(f"column {name} is there twice"))
        if head:
            columns.append(column)
        elif cells and place > 0:  # a first one has the index of a data frame
            raise TableError(
                sheet.origin.message(
                    f"row {cells[0][0]} has {short(cells[0][1])} in a column without a name: the "
                    "first row must name all columns, so delete the lines above the names"
                )
            )
    return columns


def _what_else(column: ResultColumn, rows: Sequence[Row], decimal: str) -> str:
    """What a column holds that is neither a parameter nor a result; empty where it may be one."""
    texts = [text for _, text in column.cells(rows)]
    name, different = column.name.casefold(), len(set(texts))
    counted = [_number(text, decimal) for text in texts] == [*range(1, len(texts) + 1)]
    if (different > 1 and different == len(texts) and _RUNNING.fullmatch(name)) or (
        len(texts) >= _LEAST_RUNNING and counted
    ):
        return "running numbers"
    if texts and all(map(_DATE.fullmatch, texts)):
        return "dates"
    if _REMARKS.fullmatch(name):
        return "texts"
    if not texts or _is_of_numbers(texts, decimal):
        return ""
    if 2 * len(texts) < len(rows):
        return "texts, mostly empty"
    has_words = sum(len(text.split()) for text in texts) >= _MANY_WORDS * len(texts)
    is_free = 2 * different > len(texts) and (len(texts) >= _MANY_TEXTS or has_words)
    return "texts" if is_free else ""


def _objective(
    sheet: Sheet,
    columns: Sequence[ResultColumn],
    known: Sequence[ResultColumn],
    wanted: str | None,
    decimal: str,
) -> ResultColumn:
    """The column of the results."""
    if wanted is not None:
        return _named(sheet, columns, wanted, "the objective")
    found = [
        column
        for column in known
        if _is_of_numbers([text for _, text in column.cells(sheet.rows)], decimal)
    ]
    if not found:
        message = "one column must be the objective, got no column of numbers"
        raise TableError(sheet.origin.message(message))
    return found[-1]


def _named(sheet: Sheet, columns: Sequence[ResultColumn], name: str, what: str) -> ResultColumn:
    """The column that a name or a head means, if need be without regard to case."""
    for wanted, key in ((name, str), (name.casefold(), str.casefold)):
        for column in columns:
            if wanted in (key(column.name), key(column.head)):
                return column
    hint = did_you_mean(name, [each.name for each in columns])
    raise TableError(sheet.origin.message(f"one column must be {what}, got {name!r}{hint}"))


def _doubtful(
    column: ResultColumn, rows: Sequence[Row], decimal: str, is_result: bool
) -> list[str]:
    """What is wrong with the cells of a column of numbers, and with the dates of any column."""
    cells = column.cells(rows)
    is_of_numbers = is_result or _is_of_numbers([text for _, text in cells], decimal)
    doubtful = []
    for row, text in cells:
        if _DATE.fullmatch(text):
            doubtful.append(f"row {row} is the date {short(text)}")
        elif is_of_numbers and _number(text, decimal, column.unit) is None:
            is_with_other_sign = _number(text, None, None) is not None
            hint = " with the decimal sign of the others" if is_with_other_sign else ""
            doubtful.append(f"row {row} is {short(text)}, which is no number{hint}")
    return doubtful


def _is_of_numbers(texts: Sequence[str], decimal: str) -> bool:
    """Whether at least half of the texts are numbers, apart from failed results."""
    told = [text for text in texts if not says_failed(text)]
    numbers = [text for text in told if _number(text, decimal) is not None]
    return bool(numbers) and 2 * len(numbers) >= len(told)


def _number(text: str, decimal: str | None, unit: str | None = "%") -> float | None:
    """The finite number of a text; None where it is none."""
    try:
        value = number(text, decimal, unit)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
