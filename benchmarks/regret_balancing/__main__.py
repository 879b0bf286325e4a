"""Regret balancing: EC-GP-UCB for action sets that change, when nobody knows eps.

    python -m benchmarks.regret_balancing [--smoke | --full] [--processes N]

GP-UCB, EC-GP-UCB, which is told eps, and masters that balance EC-GP-UCB strategies told different
eps by their regret bounds (Bogunovic and Krause 2021, algorithm 3), with the published constants
and with heuristic ones, (1) on generic perturbations of functions whose RKHS norm is known, with
new action sets at each step, and (2) on the lock-out instance. Writes report.md, runs.csv.xz
and two pictures.
"""

from __future__ import annotations

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import write_csv
from benchmarks.regret_balancing.figures import PICTURES, draw_regret, draw_tests
from benchmarks.regret_balancing.report import report
from benchmarks.regret_balancing.runs import Case, Outcome, Setting, cases, run

# Whose tests are drawn: problem, method.
_SHOWN = (
    ("generic", "published"),
    ("generic", "heuristic"),
    ("generic", "bolder"),
    ("lock-out", "with_zero"),
)


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    full = "T = 1000, d up to 6, 30 instances"
    options = parse_options(
        "regret_balancing",
        "Regret-bound balancing under misspecification.",
        argv,
        full=full,
        processes=True,
    )
    torch.set_num_threads(1)
    setting = Setting()
    if options.smoke:
        setting = Setting(15, 20, (1, 2), 2, 1, (0.0, 0.2))
    elif options.full:
        setting = Setting(1000, 100, (1, 2, 4, 6), 30, 10)
    to_run = list(cases(setting, options.seed))
    played = list(
        zip(to_run, in_processes(run, to_run, options.processes, "balancing"), strict=True)
    )
    rows = [outcome.row for _, outcome in played]
    draw_regret(played, options.output / "regret.png")
    draw_tests(_shown(played), options.output / "tests.png")
    write_report(options, report(rows), setting, PICTURES)
    write_csv(options.output / "runs.csv.xz", rows)


def _shown(played: list[tuple[Case, Outcome]]) -> list[tuple[Case, Outcome]]:
    """The first run of each kind, generic ones of the least dimension and the largest eps."""
    largest = max(case.misspecification for case, _ in played if case.problem == "generic")
    found = []
    for problem, method in _SHOWN:
        runs = [
            (case, outcome)
            for case, outcome in played
            if (case.problem, case.method) == (problem, method)
            and (problem == "lock-out" or case.misspecification == largest)
        ]
        found.append(min(runs, key=lambda pair: (pair[0].dim, pair[0].instance)))
    return found


if __name__ == "__main__":
    main()
