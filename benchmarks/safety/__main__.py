"""Safe exploration: what is certified and how soon, unsafe trials, and the time of a step.

    python -m benchmarks.safety [--smoke] [--processes N] [--only TABLE ...] [--report]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there, and a picture.
"""

from __future__ import annotations

from benchmarks.common.tabled_runs import run_tables
from benchmarks.safety.figures import PICTURES
from benchmarks.safety.report import report
from benchmarks.safety.runs import FIRST_SEED, TABLES, play
from benchmarks.safety.times import times
from benchmarks.tight.runs import Case


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    run_tables(
        "safety", "Safe exploration.", argv, TABLES, Case, FIRST_SEED, play, times, report, PICTURES
    )


if __name__ == "__main__":
    main()
