"""Predictions: are the bands of `predict` as wide as they say, is the expected gain what is gained,
and are the parameters that matter found?

    python -m benchmarks.predictions [--smoke | --full] [--processes N] [--report]

The default, `integrated_ei`, plays functions in batches of four. After each batch from 20
trials on, its predictions of the space, of the points it asks next and of what they will gain are
compared with the truth. Importance is compared with known Sobol indices of three functions. Writes
report.md, studies.csv and importance.csv; ``--report`` writes report.md again from the others.
"""

from __future__ import annotations

import csv
from itertools import chain
from pathlib import Path

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, write_csv
from benchmarks.predictions.report import report
from benchmarks.predictions.runs import (
    Case,
    ImportanceCase,
    importance_functions,
    play,
    play_importance,
)

# Chosen before the runs: of each kind of dimension one that the default was tuned on, and one that
# it was not.
PROBLEMS = ("Branin", "Goldstein-Price", "Levy4", "Styblinski-Tang4", "Ackley5", "Hartmann6")
NOISES = (0.0, 0.05)
_MORE = {"report": {"action": "store_true", "help": "write report.md again from the CSV files"}}


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    description = "Are predictions, expected gains and importances right?"
    options = parse_options(
        "predictions", description, argv, full="10 seeds", processes=True, more=_MORE
    )
    torch.set_num_threads(1)
    names, noises, num_trials, num_seeds = PROBLEMS, NOISES, 60, 10 if options.full else 3
    if options.smoke:
        names, noises, num_trials, num_seeds = ("Branin",), (0.05,), 20, 2
    files = [options.output / f"{name}.csv" for name in ("studies", "importance")]
    if not options.more["report"]:
        seeds = range(options.seed, options.seed + num_seeds)
        studies = [Case(p, noise, s, num_trials) for s in seeds for p in names for noise in noises]
        functions = list(importance_functions())[: 1 if options.smoke else None]
        known = [
            ImportanceCase(function, s, num_trials, asked)
            for s in list(seeds)[:2]
            for function in functions
            for asked in (True, False)
        ]
        found = in_processes(play, studies, options.processes, "predictions")
        write_csv(files[0], list(chain.from_iterable(found)))
        found = in_processes(play_importance, known, options.processes, "importance")
        write_csv(files[1], list(chain.from_iterable(found)))
    setting = f"{num_seeds} seeds of {len(names)} problems and {len(noises)} noises"
    write_report(options, report(*map(_read, files)), setting)


def _read(path: Path) -> list[Row]:
    """The rows of a CSV file, numbers as such."""
    with path.open(newline="") as file:
        return [{name: _number(cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def _number(cell: str) -> float | str:
    try:
        return float(cell)
    except ValueError:
        return cell


if __name__ == "__main__":
    main()
