"""The practice benchmark: what a user gets who has bounds and noisy results, and nothing else.

    python -m benchmarks.practice [--smoke] [--processes N] [--seeds N] [--only METHOD ...]
        [--settings NAME ...] [--problems NAME ...] [--output FOLDER] [--report]

The library's methods beside BoTorch's, Optuna's and random search, on functions in their own units
and on two real tuning tasks, with noise, one at a time and in parallel, with late results, failing
evaluations, outliers and coarse values, and on ten further functions. Every run adds a line to a
file in the folder ``runs`` of the output; started again, the command runs only what is missing.
Writes report.md and the pictures from all lines that are there.
"""

from __future__ import annotations

import sys

import torch

from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import run_missing
from benchmarks.common.store import Store
from benchmarks.practice.figures import PICTURES, draw
from benchmarks.practice.methods import METHODS
from benchmarks.practice.problems import problems
from benchmarks.practice.report import report
from benchmarks.practice.runs import FIRST_SEED, Case, attempt, cases
from benchmarks.practice.settings import NOISES, PRIMARY, SETTINGS

# One that is tuned on and one that is not.
_SMOKE_PROBLEMS = ("Branin", "Hartmann4")
_MORE = {
    "only": {"nargs": "+", "choices": list(METHODS), "help": "methods (default: all)"},
    "settings": {"nargs": "+", "choices": list(SETTINGS), "help": "settings (default: all)"},
    "problems": {"nargs": "+", "choices": list(problems()), "help": "problems (default: all)"},
    "seeds": {
        "type": int,
        "default": 10,
        "help": f"how many from {FIRST_SEED} + SEED (default 10)",
    },
    "report": {"action": "store_true", "help": "run nothing, write the report, compress the rows"},
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options(
        "practice", "The practical default, compared.", argv, processes=True, more=_MORE
    )
    torch.set_num_threads(1)
    store = Store(options.output / "runs")
    all_cases = _cases(options)
    found, num_stale = store.rows(all_cases)
    if num_stale:
        print(f"{num_stale} rows are stale: of other settings than those of now", file=sys.stderr)
    failures = 0
    if not options.more["report"]:
        missing = [case for case in all_cases if case not in found and _is_chosen(case, options)]
        processes = 1 if options.smoke else options.processes
        failures = run_missing(attempt, missing, found, store, processes, "practice")
    rows = [found[case] for case in all_cases if case in found]
    if rows:
        seeds = len({row["seed"] for row in rows})
        draw(rows, options.output)
        text = report(rows, len(all_cases) - len(rows))
        write_report(options, text, f"up to {seeds} seeds", PICTURES)
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


def _cases(options: Options) -> list[Case]:
    """All runs of these seeds; of a smoke run a few, which are short."""
    first = FIRST_SEED + options.seed
    if not options.smoke:
        seeds = range(first, first + options.more["seeds"])
        return list(cases(list(SETTINGS), list(problems()), list(METHODS), seeds))
    chosen = cases([PRIMARY], _SMOKE_PROBLEMS, list(METHODS), [first], smoke=True)
    return [case for case in chosen if case.noise == NOISES[0]]


def _is_chosen(case: Case, options: Options) -> bool:
    """Whether the command line asks for a run."""
    chosen = (
        (case.method, options.more["only"]),
        (case.setting, options.more["settings"]),
        (case.problem, options.more["problems"]),
    )
    return all(names is None or name in names for name, names in chosen)


if __name__ == "__main__":
    main()
