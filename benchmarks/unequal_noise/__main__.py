"""Results that differ in noise: what it is worth to tell their standard errors.

    python -m benchmarks.unequal_noise [--smoke] [--processes N] [--seeds N] [--only METHOD ...]
        [--report] [--output FOLDER]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there.
"""

from __future__ import annotations

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row
from benchmarks.unequal_noise.report import report
from benchmarks.unequal_noise.runs import METHODS, PROBLEMS, Case, cases, play

_MORE = {
    "only": {"nargs": "+", "choices": list(METHODS), "help": "methods (default: all)"},
    "seeds": {"type": int, "default": 10, "help": "how many (default 10)"},
    **REPORT,
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    title = "Results that differ in noise."
    options = parse_options("unequal_noise", title, argv, processes=True, more=_MORE)
    wanted = list(cases(PROBLEMS, options.more["seeds"], options.seed))
    if options.smoke:
        wanted = list(cases(PROBLEMS[:1], 1, 0, smoke=True))

    def is_chosen(case: Case) -> bool:
        return options.more["only"] is None or case.method in options.more["only"]

    def write(rows: list[Row]) -> None:
        write_report(options, report(rows), f"{len(rows)} of {len(wanted)} runs")

    run_and_report(options, wanted, is_chosen, play, write)


if __name__ == "__main__":
    main()
