"""Safe exploration: what is certified and how soon, unsafe trials, and the time of a step.

    python -m benchmarks.safety [--smoke] [--processes N] [--only TABLE ...] [--report]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there, and a picture.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import run_missing
from benchmarks.common.store import Store
from benchmarks.safety.figures import PICTURES, draw
from benchmarks.safety.report import report
from benchmarks.safety.runs import SEEDS, attempt, cases
from benchmarks.safety.times import times

_MORE = {
    "only": {"nargs": "+", "choices": [*SEEDS, "times"], "help": "tables to run (default: all)"},
    "report": {"action": "store_true", "help": "run nothing, write the report, compress the rows"},
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("safety", "Safe exploration.", argv, processes=True, more=_MORE)
    torch.set_num_threads(1)
    store = Store(options.output / "runs")
    tables = options.more["only"] or [*SEEDS, "times"]
    all_cases = cases(options.seed, options.smoke)
    found, _ = store.rows(all_cases)
    failures = 0
    if not options.more["report"]:
        missing = [case for case in all_cases if case not in found and case.table in tables]
        failures = run_missing(attempt, missing, found, store, options.processes, "safety")
        if "times" in tables:
            times(options)
    rows = [found[case] for case in all_cases if case in found]
    if rows:
        draw(options.output)
        left = f"{len(all_cases) - len(rows)} of {len(all_cases)} runs missing"
        write_report(options, report(rows, options), left, PICTURES)
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


if __name__ == "__main__":
    main()
