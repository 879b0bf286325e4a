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
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row
from benchmarks.insured.figures import PICTURES, draw
from benchmarks.insured.report import report
from benchmarks.insured.runs import cases, play
from benchmarks.insured.tables import TABLES

_MORE = {
    "only": {"nargs": "+", "choices": list(TABLES), "help": "tables to run (default: all)"},
    **REPORT,
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("insured", "Insured methods.", argv, processes=True, more=_MORE)
    torch.set_num_threads(1)
    if not (options.smoke or DATA_FOLDER.is_dir()):
        sys.exit(f"f1 and f2 need {DATA_FOLDER}/delayed_feedback; only --smoke does without")
    all_cases = cases(list(TABLES), options.seed, options.smoke)
    tables = options.more["only"] or list(TABLES)

    def write(rows: list[Row]) -> None:
        draw(rows, options.output)
        text = report(rows, len(all_cases) - len(rows))
        write_report(options, text, f"{len({row['seed'] for row in rows})} seeds", PICTURES)

    run_and_report(options, all_cases, lambda case: case.table in tables, play, write)


if __name__ == "__main__":
    main()
