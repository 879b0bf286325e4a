"""Tables of rows, as Markdown and as CSV files."""

from __future__ import annotations

import csv
import io
import lzma
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]
# Each with what is said before it.
Tables = list[tuple[str, Sequence[Row]]]


def markdown_table(rows: Sequence[Row]) -> str:
    """Rows with the same keys as a Markdown table; floats with three digits."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header)]
    lines += [[_cell(row[name]) for name in header] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def judged(rows: Sequence[Row], column: str, most: float) -> list[Row]:
    """The rows, and whether what a column says is at most so much."""
    return [row | {f"{column} at most {most:g}": row[column] <= most} for row in rows]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Rows with the same keys as a CSV file, compressed where its name ends with ``.xz``."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    path.write_bytes(lzma.compress(content, preset=9) if path.suffix == ".xz" else content)
