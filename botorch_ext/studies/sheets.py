"""Sheets: tables that spreadsheets read and write, as CSV or as workbooks."""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botorch_ext.exceptions import TableError

_SEPARATORS = (";", "\t", ",")
# Excel names the separator in a line above the table, which it does not count as a row.
_TITLE = re.compile(r"\s*sep=([^\"\r\n])[ \t]*(?:\r\n|\r|\n|$)", re.IGNORECASE)
_UNIT = re.compile(r"[\[(](.+)[\])]")
# The signs that begin a formula in a spreadsheet, also as full-width characters.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_SPECIAL = re.compile(r'[;,\t\r\n"]')
# What a number format of a workbook shows as it stands.
_LITERAL = re.compile(r'"[^"]*"|\\.')


@dataclass(frozen=True)
class Origin:
    """Where the rows of a table come from, for messages.

    Args:
        file: The name of the file; empty for a table in memory.
        counting: What the numbers of rows mean; empty for a file, whose rows count from 1.
    """

    file: str = ""
    counting: str = ""

    def message(self, words: str) -> str:
        """A message about the table, which begins with the file."""
        return f"{self.file}: {words}" if self.file else words

    def message_of_rows(self, words: str) -> str:
        """A message with numbers of rows, which says how they are counted."""
        return self.message(f"{words} ({self.counting})" if self.counting else words)


#: A table in memory, whose rows have no numbers in messages.
IN_MEMORY = Origin()


class NumberCell(str):
    """The text of a cell that is a number in a workbook, with a decimal point, and with ``%`` where
    the workbook shows it as a percentage."""


@dataclass(frozen=True)
class Row:
    """A row of a sheet.

    Args:
        number: Its number as spreadsheets count rows: from 1 on, empty rows included.
        cells: Its texts, one for each head; a number of a workbook is a `NumberCell`.
    """

    number: int
    cells: list[str]


@dataclass(frozen=True)
class Sheet:
    """A table of texts.

    Args:
        name: The name of the file.
        heads: The texts of the first row that is not empty, with units from the row below if all
            of its cells are in brackets. A head may be empty.
        rows: The rows below that are not empty.
        separator: The sign between cells; empty for a workbook.
        decimal: The decimal sign of numbers that are texts, ``"."`` or ``","``. None: found from
            its cells.
    """

    name: str
    heads: list[str]
    rows: list[Row]
    separator: str
    decimal: str | None = None

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        separator: str | None = None,
        decimal: str | None = None,
    ) -> Sheet:
        """Reads a CSV file, or the first sheet of an Excel workbook (``.xlsx``). The encoding of
        CSV may be UTF-8, UTF-16 with a byte order mark, or cp1252. Empty rows and empty columns at
        the end are left out.

        Args:
            path: The path of the file.
            separator: The sign between the cells of a CSV file. None: the one of semicolon, tab and
                comma by which most rows have as many cells as the heading.
            decimal: The decimal sign of the numbers, ``"."`` or ``","``. None: found from them.

        Returns:
            The sheet, whose cells are texts.

        Raises:
            ImportError: The file is a workbook, and openpyxl is not installed.
            OSError: The file cannot be read.
            TableError: The file is empty, no text, or no table.
            ValueError: The separator is not one character, or the decimal sign is none.
        """
        if separator is not None and (len(separator) != 1 or separator in '"\r\n'):
            raise ValueError(f"separator must be one character such as ';', got {separator!r}")
        if decimal not in (None, ".", ","):
            raise ValueError(f"decimal must be '.' or ',', got {decimal!r}")
        name = os.fspath(path)
        content = Path(path).read_bytes()
        if content.startswith(b"PK\x03\x04"):
            records, separator = _workbook(content, name), ""
        else:
            records, separator = _records(_decoded(content, name), name, separator)
        stripped = [list(map(_stripped, cells)) for cells in records]
        rows = [Row(i, cells) for i, cells in enumerate(stripped, start=1) if any(cells)]
        if not rows:
            raise TableError(f"{name} is empty: its first row must have the names of the columns")
        heading, *rows = rows
        width = _width(heading.cells)
        for row in rows:
            if _width(row.cells) > width:
                hint = ": is there a decimal comma?" if separator == "," else ""
                raise TableError(
                    f"{name}: row {row.number} has {_width(row.cells)} cells, and the heading "
                    f"{width}{hint}; the first row must name all columns, with their units as in "
                    "'time [s]', so delete the lines above the names"
                )
            row.cells[:] = [*row.cells, *[""] * width][:width]
        heads = heading.cells[:width]
        if rows and all(_UNIT.fullmatch(cell) for cell in rows[0].cells if cell):
            heads = list(map(_with_unit, heads, rows[0].cells))
            rows = rows[1:]
        return cls(name, heads, rows, separator, decimal)

    @property
    def origin(self) -> Origin:
        """The file, for messages."""
        return Origin(self.name)


def written(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], decimal_comma: bool = False
) -> str:
    """Writes a table as CSV. No text in it is a formula.

    Args:
        heads: The texts of the first row.
        rows: The rows below: numbers, texts, and None for empty cells.
        decimal_comma: Whether numbers have decimal commas and semicolons separate cells.
    """
    separator = ";" if decimal_comma else ","
    lines = [separator.join(_as_cell(value, decimal_comma) for value in row) for row in rows]
    return "".join(f"{line}\r\n" for line in (separator.join(map(_as_text, heads)), *lines))


def harmless(text: str) -> str:
    """A text with an apostrophe before it where it begins as a formula does, as OWASP
    recommends."""
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) else text


def original(text: str) -> str:
    """The text of which `harmless` made another."""
    return text[1:] if text[:1] == "'" and harmless(text[1:]) == text else text


def _as_cell(value: Any, decimal_comma: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace(".", ",") if decimal_comma else repr(value)
    return str(value) if isinstance(value, int) else _as_text(str(value))


def _as_text(text: str) -> str:
    """A text as one cell whatever separates cells: quoted where it has a separator of any sheet."""
    text = harmless(text)
    return '"{}"'.format(text.replace('"', '""')) if _SPECIAL.search(text) else text


def _with_unit(head: str, unit: str) -> str:
    """A head with the unit of the row below, unless it has that already."""
    unit = _UNIT.sub(r"[\1]", unit)
    return f"{head} {unit}" if unit and not head.endswith(unit) else head


def _stripped(cell: str) -> str:
    return cell if isinstance(cell, NumberCell) else cell.strip()


def require_openpyxl() -> None:
    """Raises an ImportError that says what to install where workbooks cannot be read or written."""
    try:
        import openpyxl  # noqa: F401 - which reads and writes workbooks
    except ImportError as error:
        raise ImportError("workbooks need openpyxl: pip install 'botorch-ext[studies]'") from error


def _workbook(content: bytes, name: str) -> list[list[str]]:
    """The rows of the first sheet of a workbook. Its numbers are `NumberCell`."""
    require_openpyxl()
    from openpyxl import load_workbook

    try:
        book = load_workbook(io.BytesIO(content), read_only=True, data_only=True, keep_links=False)
        sheet: Any = book.worksheets[0]
        sheet.reset_dimensions()  # which some programs write wrong
        return [list(map(_workbook_cell, row)) for row in sheet.rows]
    except (IndexError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise TableError(
            f"{name} is a workbook or an archive that cannot be read: save the sheet as CSV or "
            "as .xlsx"
        ) from error


def _workbook_cell(cell: Any) -> str:
    """The text of a cell of a workbook; a percentage is as it is shown, ``60.1%`` for 0.601."""
    if type(cell.value) not in (int, float):
        return "" if cell.value is None else str(cell.value)
    if "%" in _LITERAL.sub("", cell.number_format):
        return NumberCell(f"{100 * cell.value:.15g}%")
    return NumberCell(cell.value)


def _decoded(content: bytes, name: str) -> str:
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise TableError(f"{name} is a workbook of an old kind: save the sheet as CSV or as .xlsx")
    if content.startswith(b"SQLite format 3\0"):
        raise TableError(f"{name} is a database, as of a study, and no sheet")
    encodings = ["utf-16"] if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise TableError(f"{name} is no text: save the sheet as CSV, in UTF-8")


def _records(text: str, name: str, separator: str | None) -> tuple[list[list[str]], str]:
    """The rows of a CSV text, and the sign between their cells.

    `pandas.read_csv` is not used. Its search for the separator reads the first line alone, which
    splits ``trial;a, b;value`` at the commas, and it takes rows that are longer than the heading
    for rows with an index.
    """
    if title := _TITLE.match(text):
        text, separator = text[title.end() :], separator or title[1]
    if separator is None:
        separator = max(_SEPARATORS, key=lambda sign: _fit(text, sign))
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return list(reader), separator
    except csv.Error as error:
        raise TableError(f"{name} is no CSV: line {reader.line_num}: {error}") from error


def _fit(text: str, separator: str) -> tuple[int, int]:
    """How many rows of a text have as many cells as its heading, and how many the heading has."""
    records = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    heading, *widths = [len(cells) for cells in records if any(map(str.strip, cells))] or [1]
    return (widths.count(heading) if heading > 1 else 0), heading


def _width(cells: Sequence[str]) -> int:
    """The number of cells without the empty ones at the end."""
    return max(place for place, cell in enumerate(cells, start=1) if cell)
