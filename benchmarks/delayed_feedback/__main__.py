"""Delayed feedback: BPE-Delay and its rivals.

    python -m benchmarks.delayed_feedback [--smoke | --full] [--data ../shared/data]

The experiments of Vakili et al. 2023, section 7, on a 50 x 50 grid, with their constant width and
a GP-UCB-SDF that censors what is pending; and what the paper has not: GP-BUCB, the theoretical
width, heavy-tailed delays, the continuous box. Writes report.md, runs.csv.xz and five pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import write_csv
from benchmarks.delayed_feedback.figures import PICTURES, draw
from benchmarks.delayed_feedback.objectives import OBJECTIVES, generate, load
from benchmarks.delayed_feedback.report import report
from benchmarks.delayed_feedback.runs import (
    BOX_METHODS,
    LEARNING,
    OPTIMISTIC,
    POISSON,
    POISSON_METHODS,
    TAIL_METHODS,
    TAILS,
    Case,
    run_cases,
)


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        horizon: T, on the grid.
        side: Points along each axis of the grid.
        seeds: Runs of each method on the grid.
        box_horizon: T, on the box.
        box_seeds: Runs of each method on the box.
    """

    horizon: int = 1000
    side: int = 50
    seeds: int = 2
    box_horizon: int = 250
    box_seeds: int = 1


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    options = parse_options(
        "delayed_feedback",
        "Delayed feedback: BPE-Delay and its rivals.",
        argv,
        full="as Vakili et al. 2023, with 100 seeds, and 3 of T = 1000 on the box",
        data=True,
        processes=True,
    )
    torch.set_num_threads(1)
    setting = Setting()
    if options.smoke:
        setting = Setting(horizon=100, side=8, seeds=1, box_horizon=40)
    elif options.full:
        setting = Setting(seeds=100, box_horizon=1000, box_seeds=3)
    if options.smoke and not options.data.is_dir():
        objectives = tuple(generate(options.seed))
    else:
        objectives = tuple(load(options.data))
    play = partial(run_cases, objectives=objectives)
    groups = list(_groups(setting, options.seed))
    played = in_processes(play, groups, options.processes, "delayed feedback")
    rows = [row for rows in played for row in rows]
    draw(rows, options.output)
    for row in rows:
        del row["curve"]
    write_report(options, report(rows, objectives), setting, PICTURES)
    write_csv(options.output / "runs.csv.xz", rows)


def _groups(setting: Setting, first_seed: int) -> Iterator[list[Case]]:
    """Cases that differ in their seeds alone."""
    box, grid = (setting.box_horizon, 0), (setting.horizon, setting.side)
    last = ["Poisson(50)"]
    box_seeds, seeds = (
        range(first_seed, first_seed + count) for count in (setting.box_seeds, setting.seeds)
    )
    # The long ones first, so that no process is left alone with one at the end.
    yield from _product(BOX_METHODS, "sqrt(6)", last, box_seeds, box)
    for width in ("theory", "rigorous"):
        yield from _product(["BPE-Delay"], width, last, box_seeds, box)
    yield from _product(["BPE-Delay", *OPTIMISTIC], "theory", last, seeds, grid)
    yield from _product(POISSON_METHODS, "sqrt(6)", POISSON, seeds, grid)
    yield from _product(LEARNING, "sqrt(6)", last, seeds, grid)
    yield from _product(TAIL_METHODS, "sqrt(6)", TAILS[1:], seeds, grid)


def _product(
    methods: Sequence[str],
    width: str,
    delays: Sequence[str],
    seeds: Sequence[int],
    size: tuple[int, int],
) -> Iterator[list[Case]]:
    for method, delay, objective in product(methods, delays, OBJECTIVES):
        yield [Case(objective, delay, method, width, seed, *size) for seed in seeds]


if __name__ == "__main__":
    main()
