"""Unknown hyperparameters: HE-GP-UCB and its rivals.

    python -m benchmarks.unknown_hyperparameters [--smoke | --full]

The four experiments of Ziomek et al. 2024, section 7 and appendix J, over several widths, and a
robust problem for StableOpt and HE-StableOpt. Writes report.md, runs.csv.xz, robust.csv and four
pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, write_csv
from benchmarks.unknown_hyperparameters.experiments import EXPERIMENTS
from benchmarks.unknown_hyperparameters.figures import PICTURES, draw
from benchmarks.unknown_hyperparameters.report import report
from benchmarks.unknown_hyperparameters.robust import robust_cases, run_robust
from benchmarks.unknown_hyperparameters.runs import Case, run_cases

# No columns of a table.
_LISTS = ("curve", "best_curve", "played", "rejected", "centers")


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        seeds: Runs of each method and width.
        timed_seeds: Runs of each method and width in (a), which is timed.
        horizon: T of all experiments; None for those of Ziomek et al. 2024.
        robust_seeds: Runs of each method and width on each robust problem.
        robust_horizons: T on each of them.
    """

    seeds: int = 10
    timed_seeds: int = 50
    horizon: int | None = None
    robust_seeds: Mapping[str, int] = field(
        default_factory=lambda: {"line": 10, "square": 5, "box": 2}
    )
    robust_horizons: Mapping[str, int] = field(
        default_factory=lambda: {"line": 100, "square": 300, "box": 50}
    )


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    options = parse_options(
        "unknown_hyperparameters",
        "Unknown hyperparameters: HE-GP-UCB and its rivals.",
        argv,
        full="as Ziomek et al. 2024, with 100 seeds",
        processes=True,
    )
    torch.set_num_threads(1)
    setting = Setting()
    if options.smoke:
        few = {"line": 2, "square": 2, "box": 1}
        setting = Setting(2, 2, 6, few, {"line": 8, "square": 8, "box": 6})
    elif options.full:
        setting = Setting(seeds=100, robust_seeds={"line": 50, "square": 20, "box": 3})
    groups = list(_groups(setting, options.seed))
    of_groups = in_processes(run_cases, groups, options.processes, "unknown hyperparameters")
    rows = [row for rows in of_groups for row in rows]
    robust = in_processes(
        run_robust,
        list(robust_cases(setting.robust_horizons, setting.robust_seeds, options.seed)),
        options.processes,
        "robust",
    )
    draw(rows, robust, options.output)
    write_report(options, report(rows, robust), setting, PICTURES)
    write_csv(options.output / "runs.csv.xz", _columns(rows))
    write_csv(options.output / "robust.csv", _columns(robust))


def _groups(setting: Setting, first_seed: int) -> Iterator[list[Case]]:
    """Cases that differ in their seeds alone."""
    for name, experiment in EXPERIMENTS.items():
        for width in experiment.widths:
            seeds = max(setting.seeds, setting.timed_seeds) if name == "a" else setting.seeds
            horizon = setting.horizon or experiment.horizon
            for method in experiment.methods:
                own = range(first_seed, first_seed + seeds)
                yield [Case(name, width, method, seed, horizon) for seed in own]


def _columns(rows: list[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key not in _LISTS} for row in rows]


if __name__ == "__main__":
    main()
