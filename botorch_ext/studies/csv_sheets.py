"""CSV sheets: tables that spreadsheets read and write."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botorch_ext.exceptions import TableError

# The first bytes of workbooks: zip archives (xlsx, ods, numbers) and old Excel files.
_WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
_DELIMITERS = (";", "\t", ",")
# Excel names the separator in a line above the table.
_TITLE = re.compile(r"\s*sep=([^\"\r\n])[ \t]*(?:[\r\n]|$)", re.IGNORECASE)
_LINE_END = re.compile(r"\r\n|\r|\n")
# A quoted cell, in which separators and line ends are text.
_QUOTED = re.compile(r'(?:^|(?<=[;,\t\r\n]))"(?:[^"]|"")*+"')
_SPECIAL = re.compile(r'[;,\t\r\n"]')
# The signs that begin a formula in a spreadsheet, also as full-width characters.
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@dataclass(frozen=True)
class Origin:
    """Where the rows of a table come from, for messages.

    Args:
        file: The name of the file; empty for a table in memory.
        counting: What the numbers of rows mean; empty for a file, whose lines count from 1.
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


@dataclass(frozen=True)
class Row:
    """A row of a sheet.

    Args:
        line: The number of its last line in the file, from 1 on.
        cells: Its texts, one for each head.
    """

    line: int
    cells: list[str]


@dataclass(frozen=True)
class Sheet:
    """A table of texts.

    Args:
        name: The name of the file.
        heads: The texts of the first row. A head may be empty.
        rows: The rows below that are not empty.
        delimiter: The sign between cells.
    """

    name: str
    heads: list[str]
    rows: list[Row]
    delimiter: str

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Sheet:
        """Reads a CSV file. Commas, semicolons or tabs may separate cells. The encoding may be
        UTF-8, UTF-16 with a byte order mark, or cp1252. Empty rows and empty columns at the end are
        left out.

        Args:
            path: The path of the file.

        Returns:
            The sheet, whose cells are texts.

        Raises:
            OSError: The file cannot be read.
            TableError: The file is empty, no text, or no table.
        """
        name = os.fspath(path)
        text = _decoded(Path(path).read_bytes(), name)
        title = _TITLE.match(text)
        delimiter = _delimiter_of(text) if title is None else title[1]
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        found = []
        try:
            for cells in reader:
                stripped = [cell.strip().strip("\u00a0") for cell in cells]
                if any(stripped):
                    found.append(Row(reader.line_num, stripped))
        except csv.Error as error:
            raise TableError(f"{name} is no CSV: line {reader.line_num}: {error}") from error
        if title is not None:
            del found[0]
        if not found:
            raise TableError(f"{name} is empty: its first line must have the names of the columns")
        return cls._checked(name, found[0].cells, found[1:], delimiter)

    @property
    def origin(self) -> Origin:
        """The file, for messages."""
        return Origin(self.name)

    @classmethod
    def _checked(cls, name: str, heads: list[str], rows: list[Row], delimiter: str) -> Sheet:
        while not heads[-1]:
            heads = heads[:-1]
        padded = []
        for row in rows:
            num = max(j + 1 for j, cell in enumerate(row.cells) if cell)
            if num > len(heads):
                hint = ": is there a decimal comma?" if delimiter == "," else ""
                raise TableError(
                    f"{name}: line {row.line} has {num} cells, and the heading {len(heads)}{hint}"
                )
            cells = [*row.cells, *[""] * (len(heads) - len(row.cells))]
            padded.append(Row(row.line, cells[: len(heads)]))
        return cls(name, heads, padded, delimiter)


def written(
    heads: Sequence[str], rows: Iterable[Sequence[Any]], decimal_comma: bool = False
) -> str:
    """Writes a table as CSV. No text in it is a formula.

    Args:
        heads: The texts of the first row.
        rows: The rows below: numbers, texts, and None for empty cells.
        decimal_comma: Whether numbers have decimal commas and semicolons separate cells.

    Returns:
        The text of the file.
    """
    delimiter = ";" if decimal_comma else ","
    lines = [delimiter.join(map(_as_text_cell, heads))]
    lines += [delimiter.join(_as_cell(value, decimal_comma) for value in row) for row in rows]
    return "".join(f"{line}\r\n" for line in lines)


def harmless(text: str) -> str:
    """A text with an apostrophe before it where it begins as a formula does, as OWASP
    recommends."""
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) else text


def _as_cell(value: Any, decimal_comma: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return repr(value).replace(".", ",") if decimal_comma else repr(value)
    return str(value) if isinstance(value, int) else _as_text_cell(str(value))


def _as_text_cell(text: str) -> str:
    """A text as one cell whatever separates cells: quoted where it has a separator of any sheet."""
    text = harmless(text)
    return '"{}"'.format(text.replace('"', '""')) if _SPECIAL.search(text) else text


def _decoded(content: bytes, name: str) -> str:
    if content.startswith(_WORKBOOKS):
        raise TableError(f"{name} is a workbook or an archive: save the sheet as CSV")
    if content.startswith(b"SQLite format 3\0"):
        raise TableError(f"{name} is a database, as of a study, and no CSV file")
    encodings = ["utf-16"] if content[:2] in (b"\xff\xfe", b"\xfe\xff") else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            return text
    raise TableError(f"{name} is no text: save the sheet as CSV, in UTF-8")


def _delimiter_of(text: str) -> str:
    """The sign between the cells of a table: the one by which most rows have as many cells as the
    heading, which has several; of these the one by which it has most."""
    lines = [line for line in _LINE_END.split(_QUOTED.sub("", text)) if line.strip()]

    def fit(delimiter: str) -> tuple[int, int]:
        head, *rows = [line.count(delimiter) for line in lines or [""]]
        return (rows.count(head) if head else 0), head

    delimiter = max(_DELIMITERS, key=fit)
    is_one_column = not any(fit(delimiter))
    # Its numbers have decimal commas, if there are commas.
    return "," if is_one_column and "," not in text else delimiter
