"""Tight bounds: how often they fail, what they save, when the alarm comes, and their time.

    python -m benchmarks.tight [--smoke] [--processes N] [--only TABLE ...] [--report]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there.
"""

from __future__ import annotations

from benchmarks.common.tabled_runs import run_tables
from benchmarks.tight.report import report
from benchmarks.tight.runs import FIRST_SEED, TABLES, Case, play
from benchmarks.tight.times import times


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    run_tables("tight", "Tight bounds.", argv, TABLES, Case, FIRST_SEED, play, times, report)


if __name__ == "__main__":
    main()
