"""Samplers of Optuna compared: two strategies of the library beside Optuna's own.

    python -m benchmarks.optuna_samplers [--smoke] [--processes N] [--seeds N]
        [--only SAMPLER ...] [--problems NAME ...] [--together] [--report] [--output FOLDER]

On functions that `benchmarks.real` develops on, with the same budgets. Every run adds a line to a
file in the folder ``runs`` of the output; started again, the command runs only what is missing.
With ``--together`` four processes optimise one study on one SQLite storage instead, and the points
that came twice are counted; that row is kept in at_once.json. Writes report.md from all that is
there.
"""

from __future__ import annotations

import json
import sys

import torch

from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.resumable import REPORT, run_missing
from benchmarks.common.store import Store
from benchmarks.common.tables import Row
from benchmarks.optuna_samplers import at_once
from benchmarks.optuna_samplers.report import report
from benchmarks.optuna_samplers.runs import Case, cases, play
from benchmarks.optuna_samplers.samplers import OURS, SAMPLERS
from benchmarks.real.tasks.functions import FUNCTIONS

_PROBLEMS = list(FUNCTIONS)[: list(FUNCTIONS).index("Beale")]
_SMOKE_PROBLEMS = ("Branin",)
_MORE = {
    "only": {"nargs": "+", "choices": list(SAMPLERS), "help": "samplers (default: all)"},
    "problems": {"nargs": "+", "choices": _PROBLEMS, "help": "problems (default: all)"},
    "seeds": {"type": int, "default": 10, "help": "how many (default 10)"},
    **REPORT,
    "together": {"action": "store_true", "help": "only check processes at once on one storage"},
}


def main(argv: list[str] | None = None) -> None:
    """Runs what is missing and writes the report."""
    options = parse_options(
        "optuna_samplers", "Samplers of Optuna, compared.", argv, processes=True, more=_MORE
    )
    torch.set_num_threads(1)
    store, failures = Store(options.output / "runs"), 0
    all_cases = _cases(options)
    found, num_stale = store.rows(all_cases)
    if num_stale:
        print(f"{num_stale} rows are stale: of other settings than those of now", file=sys.stderr)
    if not (options.more["together"] or options.more["report"]):
        missing = [case for case in all_cases if case not in found and _is_chosen(case, options)]
        processes = 1 if options.smoke else options.processes
        failures = run_missing(play, missing, found, store, processes, "samplers")
    rows = [found[case] for case in all_cases if case in found]
    checks = _checks(options)
    text = report(rows, len(all_cases) - len(rows), checks)
    num_seeds = len({row["seed"] for row in rows})
    write_report(options, text, f"{num_seeds} seeds" if rows else "processes at once alone so far")
    if options.more["report"]:
        store.compress()
    if failures:
        sys.exit(f"{failures} runs failed")


def _checks(options: Options) -> list[Row]:
    """The rows of processes at once, those that are kept or new ones."""
    path = options.output / "at_once.json"
    if options.more["together"] or options.smoke:
        processes, num_trials = (2, 4) if options.smoke else (4, 50)
        chosen = [name for name in OURS if name in (options.more["only"] or OURS)]
        rows = [at_once.play(name, processes, num_trials) for name in chosen]
        path.write_text(json.dumps(rows, indent=1) + "\n")
    return json.loads(path.read_text()) if path.exists() else []


def _cases(options: Options) -> list[Case]:
    """All runs of these seeds; of a smoke run a few, which are short."""
    if options.smoke:
        return list(cases(_SMOKE_PROBLEMS, [options.seed], smoke=True))
    seeds = range(options.seed, options.seed + options.more["seeds"])
    return list(cases(_PROBLEMS, seeds))


def _is_chosen(case: Case, options: Options) -> bool:
    """Whether the command line asks for a run."""
    chosen = (case.method, options.more["only"]), (case.problem, options.more["problems"])
    return all(names is None or name in names for name, names in chosen)


if __name__ == "__main__":
    main()
