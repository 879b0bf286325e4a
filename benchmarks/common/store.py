"""Store of rows: one file of JSON lines for each method, to which lines are only added, and one
compressed file of all rows of before."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from benchmarks.common.tables import Row


class Case(Protocol):
    """A run to come, hashable.

    Attributes:
        method: What plays.
        problem: What it is played on.
        key: What names it among the rows, by column.
        digest: Of everything that decides its outcome.
    """

    @property
    def method(self) -> str: ...

    @property
    def problem(self) -> str: ...

    @property
    def key(self) -> Row: ...

    @property
    def digest(self) -> str: ...


_Case = TypeVar("_Case", bound=Case)


# The file of the rows that `Store.compress` has put together.
_COMPRESSED = "rows.jsonl.xz"


class Store:
    """Rows of finished runs in a folder.

    A process that is killed leaves whole lines and at most a part of one, which counts for nothing.
    Several processes may add rows at the same time.

    Args:
        folder: Of the files; it is made when the first row is added.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def add(self, row: Row) -> None:
        """Adds the row of a run."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{row['method']}.jsonl"
        # The line break comes first too: what a killed process left unfinished ends there.
        with path.open("a") as file:
            file.write(f"\n{json.dumps(row)}\n")

    def rows(self, cases: Iterable[_Case]) -> tuple[dict[_Case, Row], int]:
        """The rows of these cases, and how many cases have stale rows alone: of other settings."""
        wanted = {tuple(case.key.items()): case for case in cases}
        names = [name for name, _ in next(iter(wanted), ())]
        found: dict[_Case, Row] = {}
        stale: set[_Case] = set()
        for row in self._all():
            case = wanted.get(tuple((name, row[name]) for name in names))
            if case is None:
                continue
            if row["digest"] == case.digest:
                found[case] = row
            else:
                stale.add(case)
        return found, len(stale - found.keys())

    def compress(self) -> None:
        """Puts all rows into one compressed file, once nobody adds rows."""
        lines = "".join(f"{json.dumps(row)}\n" for row in self._all())
        new = self._folder / f"new_{_COMPRESSED}"
        new.write_bytes(lzma.compress(lines.encode(), preset=9))
        new.replace(self._folder / _COMPRESSED)
        for path in self._folder.glob("*.jsonl"):
            path.unlink()

    def _all(self) -> Iterable[Row]:
        compressed = self._folder / _COMPRESSED
        texts = [lzma.decompress(compressed.read_bytes()).decode()] if compressed.exists() else []
        texts += [path.read_text() for path in sorted(self._folder.glob("*.jsonl"))]
        for line in (line for text in texts for line in text.splitlines()):
            try:
                row = json.loads(line or "null")
            except json.JSONDecodeError:
                continue  # a part of a line
            if isinstance(row, dict):
                yield row
