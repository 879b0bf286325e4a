"""Tight bounds: how often they fail, what they save, when the alarm comes, and their time.

    python -m benchmarks.tight [--smoke] [--processes N] [--only TABLE ...] [--report]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import run_missing
from benchmarks.common.store import Store
from benchmarks.tight.report import report
from benchmarks.tight.runs import SEEDS, attempt, cases
from benchmarks.tight.times import times

_MORE = {
    "only": {"nargs": "+", "choices": [*SEEDS, "times"], "help": "tables to run (default: all)"},
    "report": {"action": "store_true", "help": "run nothing, write the report, compress the rows"},
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("tight", "Tight bounds.", argv, processes=True, more=_MORE)
    torch.set_num_threads(1)
    store = Store(options.output / "runs")
    tables = options.more["only"] or [*SEEDS, "times"]
    all_cases = cases(options.seed, options.smoke)
    found, _ = store.rows(all_cases)
    failures = 0
    if not options.more["report"]:
        missing = [case for case in all_cases if case not in found and case.table in tables]
        failures = run_missing(attempt, missing, found, store, options.processes, "tight")
        if "times" in tables:
            times(options)
    rows = [found[case] for case in all_cases if case in found]
    if rows:
        write_report(options, report(rows, options), f"{len(rows)} of {len(all_cases)} runs")
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


if __name__ == "__main__":
    main()
