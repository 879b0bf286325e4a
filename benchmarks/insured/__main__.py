"""Insured methods: what their safety costs where nothing is wrong, and what it saves elsewhere.

    python -m benchmarks.insured [--smoke] [--processes N] [--only TABLE ...] [--report]

insured_ucb, credible_ucb, certified_bucb and safe_ucb beside the plain and the robust methods.
Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md and regret.png from all lines that are there.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.common.command_line import DATA_FOLDER, parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import run_missing
from benchmarks.common.store import Store
from benchmarks.insured.figures import PICTURES, draw
from benchmarks.insured.report import report
from benchmarks.insured.runs import KEY, attempt, cases
from benchmarks.insured.tables import TABLES

_COLUMNS = (*KEY, "regret", "late", "best", "lost", "wall")
_MORE = {
    "only": {"nargs": "+", "choices": list(TABLES), "help": "tables to run (default: all)"},
    "report": {"action": "store_true", "help": "run nothing, write the report, compress the rows"},
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("insured", "Insured methods.", argv, processes=True, more=_MORE)
    torch.set_num_threads(1)
    if not (options.smoke or DATA_FOLDER.is_dir()):
        sys.exit(f"f1 and f2 need {DATA_FOLDER}/delayed_feedback; only --smoke does without")
    store = Store(options.output / "runs")
    all_cases = cases(list(TABLES), options.seed, options.smoke)
    found, num_stale = store.rows(all_cases)
    if num_stale:
        print(f"{num_stale} rows are stale", file=sys.stderr)
    failures = 0
    if not options.more["report"]:
        tables = options.more["only"] or list(TABLES)
        missing = [case for case in all_cases if case not in found and case.table in tables]
        processes = 1 if options.smoke else options.processes
        failures = run_missing(attempt, missing, found, store, processes, "insured")
    found, _ = store.rows(all_cases)  # another process may have added some
    rows = [found[case] for case in all_cases if case in found]
    if rows:
        seeds = len({row["seed"] for row in rows})
        draw(rows, options.output)
        text = report(rows, len(all_cases) - len(rows))
        write_report(options, text, f"{seeds} seeds", PICTURES)
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


if __name__ == "__main__":
    main()
