"""Where evaluations fail: what methods lose there, and how often they ask there.

    python -m benchmarks.failures.reference
    python -m benchmarks.failures [--smoke] [--processes N] [--seeds N] [--only METHOD ...]
        [--problems NAME ...] [--report] [--output FOLDER]

Every run adds a line to a file in the folder ``runs`` of the output; started again, the command
runs only what is missing. Writes report.md from all lines that are there.
"""

from __future__ import annotations

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row
from benchmarks.failures.methods import METHODS
from benchmarks.failures.report import report
from benchmarks.failures.runs import Case, cases, play
from benchmarks.failures.tasks import TASKS

_SMOKE_PROBLEMS = (*list(TASKS)[3:4], *list(TASKS)[-1:])
_MORE = {
    "only": {"nargs": "+", "choices": list(METHODS), "help": "methods (default: all)"},
    "problems": {"nargs": "+", "choices": list(TASKS), "help": "tasks (default: all)"},
    "seeds": {"type": int, "default": 10, "help": "how many (default 10)"},
    **REPORT,
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("failures", "Failing trials.", argv, processes=True, more=_MORE)
    problems = options.more["problems"]
    wanted = list(cases(options.more["seeds"], options.seed))
    if options.smoke:
        wanted = [case for case in cases(1, 0, smoke=True) if case.problem in _SMOKE_PROBLEMS]

    def is_chosen(case: Case) -> bool:
        chosen = (case.method, options.more["only"]), (case.problem, problems)
        return all(names is None or name in names for name, names in chosen)

    def write(rows: list[Row]) -> None:
        write_report(options, report(rows), f"{len(rows)} of {len(wanted)} runs")

    run_and_report(options, wanted, is_chosen, play, write)


if __name__ == "__main__":
    main()
