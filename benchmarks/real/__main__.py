"""The benchmark of real problems: tasks that this project did not invent, beside other packages.

    python -m benchmarks.real.environments
    python -m benchmarks.real [--smoke] [--processes N] [--half develop|report|confirm|large]
        [--only PEER ...] [--problems NAME ...] [--output FOLDER] [--report]

Tasks are there to develop on, or are only reported; these halves were chosen before the first run,
and functions with noise joined the first one later. Tasks to confirm are a second set that is only
reported: no method had been run on them when they were chosen, and changes of the default that were
chosen on the tasks to develop on are judged by them. Tasks of many inputs with many evaluations are
another half. Every run adds a line to a file in the folder ``runs`` of the output; started again,
the command runs only what is missing. Peers whose environment is not installed are left out. Writes
report.md from all lines that are there.
"""

from __future__ import annotations

from typing import get_args

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_and_report
from benchmarks.common.tables import Row
from benchmarks.real.environments import OURS, PEERS, is_installed
from benchmarks.real.report import report
from benchmarks.real.runs import FIRST_SEED, Case, attempt, cases
from benchmarks.real.tasks import TASKS, Half

_SMOKE_PEERS, _SMOKE_TASKS = (
    (OURS, "qLogNEI", "TPE", "Ax"),
    ("one of four learners on breast cancer", "Branin with 5 % noise"),
)
_MORE = {
    "half": {"choices": get_args(Half), "help": "of the tasks (default: all)"},
    "only": {"nargs": "+", "choices": list(PEERS), "help": "peers (default: all)"},
    "problems": {"nargs": "+", "choices": list(TASKS), "help": "tasks (default: all)"},
    **REPORT,
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options("real", "Real problems, compared.", argv, processes=True, more=_MORE)
    more = options.more
    if options.smoke:
        wanted = [
            Case(peer, task, FIRST_SEED, True) for task in _SMOKE_TASKS for peer in _SMOKE_PEERS
        ]
    else:
        wanted = list(cases(list(PEERS), list(TASKS), FIRST_SEED + options.seed))

    def is_chosen(case: Case) -> bool:
        return (
            is_installed(PEERS[case.method].environment)
            and (more["half"] is None or TASKS[case.problem].half == more["half"])
            and (more["only"] is None or case.method in more["only"])
            and (more["problems"] is None or case.problem in more["problems"])
        )

    def write(rows: list[Row]) -> None:
        write_report(options, report(rows, wanted), f"{len(rows)} of {len(wanted)} runs")

    run_and_report(options, wanted, is_chosen, attempt, write)


if __name__ == "__main__":
    main()
