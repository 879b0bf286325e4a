"""Remaining time of a table, from the runs that are there."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from benchmarks.common.store import Case
from benchmarks.common.tables import Row

_Case = TypeVar("_Case", bound=Case)


class Remaining:
    """An estimate of the time that the missing runs take.

    A run takes as long as those of the same method on the same problem did, else as those of its
    method did, else as all did.

    Args:
        found: The rows there are.
        missing: The runs that are to come.
        processes: How many go on at once.
    """

    def __init__(
        self, found: Mapping[_Case, Row], missing: Sequence[_Case], processes: int
    ) -> None:
        self._processes = processes
        self._missing = Counter((case.method, case.problem) for case in missing)
        self._taken: dict[tuple[str, ...], list[float]] = defaultdict(list)
        for case, row in found.items():
            self._note(case, row["wall"])

    def add(self, case: Case, wall: float) -> None:
        """A missing run is there, and took so many seconds."""
        self._missing[case.method, case.problem] -= 1
        self._note(case, wall)

    def seconds(self) -> float:
        """Until all are there; 0 while nothing is known."""
        total = 0.0
        for (method, problem), count in self._missing.items():
            known = self._taken[method, problem] or self._taken[method,] or self._taken[()]
            total += count * statistics.fmean(known) if known else 0.0
        return total / self._processes

    def text(self) -> str:
        """The same for the progress bar."""
        return f"{self.seconds() / 3600:.1f} h remaining"

    def _note(self, case: Case, wall: float) -> None:
        for key in ((case.method, case.problem), (case.method,), ()):
            self._taken[key].append(wall)
