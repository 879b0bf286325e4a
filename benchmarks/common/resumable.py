"""Resumable runs: what is missing is run, and every row is kept as soon as it is there."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import TypeVar

from tqdm import tqdm

from benchmarks.common.processes import as_they_finish
from benchmarks.common.remaining import Remaining
from benchmarks.common.store import Case, Store
from benchmarks.common.tables import Row

_Case = TypeVar("_Case", bound=Case)


def run_missing(
    attempt: Callable[[_Case], Row | str],
    missing: Sequence[_Case],
    found: dict[_Case, Row],
    store: Store,
    processes: int,
    description: str,
) -> int:
    """Runs cases, with a progress bar, and adds their rows.

    Args:
        attempt: The row of a case with its ``wall`` seconds, or how it failed; picklable.
        missing: The cases, in the order in which they are started.
        found: The rows there are; those of the missing cases are added.
        store: They are added here too.
        processes: How many run at once.
        description: Of the progress bar.

    Returns:
        How many failed.
    """
    remaining = Remaining(found, missing, processes)
    failures = 0
    with tqdm(total=len(missing), desc=description, unit="run") as bar:
        for case, outcome in as_they_finish(attempt, missing, processes):
            if isinstance(outcome, str):
                failures += 1
                bar.write(f"{case}\n{outcome}", file=sys.stderr)
            else:
                store.add(outcome)
                remaining.add(case, outcome["wall"])
                found[case] = outcome
            bar.update()
            bar.set_postfix_str(remaining.text(), refresh=False)
    return failures


def attempted(play: Callable[[_Case], Row], case: _Case) -> Row | str:
    """The row of a run, or how it failed: one run must not end all others."""
    try:
        return play(case)
    except Exception:  # noqa: BLE001
        return traceback.format_exc()
