"""Resumable runs: what is missing is run, and every row is kept as soon as it is there."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from tqdm import tqdm

from benchmarks.common.command_line import Options
from benchmarks.common.processes import as_they_finish
from benchmarks.common.remaining import Remaining
from benchmarks.common.store import Case, Store
from benchmarks.common.tables import Row

_Case = TypeVar("_Case", bound=Case)

#: The option of `run_and_report`, for `parse_options`.
REPORT = {
    "report": {"action": "store_true", "help": "run nothing, write the report, compress the rows"}
}


def run_and_report(
    options: Options,
    cases: Sequence[_Case],
    is_chosen: Callable[[_Case], bool],
    play: Callable[[_Case], Row],
    write: Callable[[list[Row]], None],
) -> None:
    """Runs the cases that are chosen and missing, unless ``--report`` is given, and reports.

    Args:
        options: The command line, with `REPORT`.
        cases: All cases, in the order of their rows.
        is_chosen: Whether the command line asks for a case.
        play: As for `run_missing`.
        write: Writes the report of the rows that are there, if there are any.
    """
    store, failures = Store(options.output / "runs"), 0
    found, num_stale = store.rows(cases)
    if num_stale:
        print(f"{num_stale} rows are stale: of other settings than those of now", file=sys.stderr)
    if not options.more["report"]:
        missing = [case for case in cases if case not in found and is_chosen(case)]
        failures = run_missing(play, missing, found, store, options.processes, options.name)
    found, _ = store.rows(cases)  # another process may have added some
    rows = [found[case] for case in cases if case in found]
    if rows:
        write(rows)
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


def run_missing(
    play: Callable[[_Case], Row],
    missing: Sequence[_Case],
    found: dict[_Case, Row],
    store: Store,
    processes: int,
    description: str,
) -> int:
    """Runs cases, with a progress bar, and adds their rows.

    Args:
        play: The row of a case with its ``wall`` seconds; picklable. A case whose error is raised
            counts as failed.
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
        for case, outcome in as_they_finish(partial(_attempted, play), missing, processes):
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


def _attempted(play: Callable[[_Case], Row], case: _Case) -> Row | str:
    """The row of a run, or how it failed: one run must not end all others."""
    try:
        return play(case)
    except Exception:  # noqa: BLE001
        return traceback.format_exc()
