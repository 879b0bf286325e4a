"""Designs whose constraints are told as limits on measured outcomes, beside other packages.

    python -m benchmarks.limits [--smoke] [--processes N] [--seeds N] [--only METHOD ...]
        [--problems NAME ...] [--report] [--output FOLDER]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there.
"""

from __future__ import annotations

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row
from benchmarks.limits.methods import METHODS
from benchmarks.limits.report import report
from benchmarks.limits.runs import Case, cases, play
from benchmarks.limits.tasks import TASKS

_SMOKE_PROBLEMS = ("three-bar truss",)
_MORE = {
    "only": {"nargs": "+", "choices": list(METHODS), "help": "methods (default: all)"},
    "problems": {"nargs": "+", "choices": list(TASKS), "help": "tasks (default: all)"},
    "seeds": {"type": int, "default": 5, "help": "how many (default 5)"},
    **REPORT,
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("limits", "Limits on outcomes.", argv, processes=True, more=_MORE)
    wanted = list(cases(options.more["seeds"], options.seed))
    if options.smoke:
        wanted = [case for case in cases(1, 0, smoke=True) if case.problem in _SMOKE_PROBLEMS]

    def is_chosen(case: Case) -> bool:
        only = (case.method, options.more["only"]), (case.problem, options.more["problems"])
        return all(names is None or name in names for name, names in only)

    def write(rows: list[Row]) -> None:
        write_report(options, report(rows), f"{len(rows)} of {len(wanted)} runs")

    run_and_report(options, wanted, is_chosen, play, write)


if __name__ == "__main__":
    main()
