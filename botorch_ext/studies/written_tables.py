"""Written tables: what a command writes as CSV or as an Excel workbook."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botorch_ext.studies.sheets import harmless, require_openpyxl, written

# The widths of the columns of a workbook, in characters.
_LEAST_WIDTH, _MOST_WIDTH = 8, 40
# From here on a cell of a workbook does not hold each whole number.
_TOO_LARGE = 2**53


@dataclass(frozen=True)
class WrittenTable:
    """A table to write.

    Args:
        heads: The texts of the first row.
        rows: The rows below, with a cell for each head: numbers, truth values, texts, times in
            UTC, and None for empty cells.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Any]]

    def csv(self, decimal_comma: bool = False) -> str:
        """The table as CSV, with times as ISO 8601 has them.

        Args:
            decimal_comma: Whether numbers have decimal commas, with semicolons between the cells.

        Returns:
            The text of the file.
        """
        rows = [
            [_iso(cell) if isinstance(cell, datetime) else cell for cell in row]
            for row in self.rows
        ]
        return written(self.heads, rows, decimal_comma)

    def workbook(self) -> bytes:
        """The table as an Excel workbook of one sheet. Numbers and times are cells of their kinds,
        and texts are never formulas.

        Returns:
            The content of the ``.xlsx`` file.

        Raises:
            ImportError: openpyxl is not installed.
        """
        require_openpyxl()
        from openpyxl import Workbook
        from openpyxl.utils import get_column_letter

        book = Workbook()
        sheet: Any = book.active
        for i, row in enumerate([self.heads, *self.rows], start=1):
            for j, content in enumerate(row, start=1):
                _fill(sheet.cell(i, j), content)
        for j, column in enumerate(sheet.columns, start=1):
            longest = max((len(str(cell.value)) for cell in column if cell.value), default=0)
            width = min(max(longest + 2, _LEAST_WIDTH), _MOST_WIDTH)
            sheet.column_dimensions[get_column_letter(j)].width = width
        sheet.freeze_panes = "A2"
        content = io.BytesIO()
        book.save(content)
        return content.getvalue()


def is_workbook(path: str | os.PathLike[str]) -> bool:
    """Whether a file is to be a workbook, by its name."""
    return os.fspath(path).lower().endswith(".xlsx")


def time_cell(at: float | None) -> datetime | None:
    """A time in seconds since 1970 as a cell."""
    return None if at is None else datetime.fromtimestamp(at, UTC)


def _fill(cell: Any, content: Any) -> None:
    """Fills a cell of a workbook."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if isinstance(content, datetime):
        cell.value = content.astimezone(UTC).replace(tzinfo=None)
        cell.number_format = "yyyy-mm-dd hh:mm:ss"
    elif content is None or isinstance(content, bool) or _is_held(content):
        cell.value = content
    else:
        text = str(content)
        cell.value = ILLEGAL_CHARACTERS_RE.sub(lambda found: ascii(found[0])[1:-1], text)
        cell.data_type = "s"
        # So it stays a text after somebody has edited it.
        cell.quotePrefix = harmless(text) != text


def _is_held(content: Any) -> bool:
    """Whether a number cell of a workbook holds a value."""
    if isinstance(content, int):
        return abs(content) < _TOO_LARGE
    return isinstance(content, float) and math.isfinite(content)


def _iso(time: datetime) -> str:
    text = time.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
