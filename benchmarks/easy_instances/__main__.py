"""Easy and hard instances: is one with a sharp maximum cheaper, as the theory of Shekhar and Javidi
2022 says, and what does breadthwise exploration make of it?

    python -m benchmarks.easy_instances [--smoke | --full] [--processes N]

Breadthwise exploration, BPE, GP-UCB and IGP-UCB on functions that fall from their maximum like a
power b of the distance, for Matern kernels of three smoothnesses, d = 1 and 2: regret against the
horizon on log axes, its slopes beside the exponents of propositions 1 and 2, and what each
instance should cost. Writes report.md, runs.csv.xz and four pictures.
"""

from __future__ import annotations

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import write_csv
from benchmarks.easy_instances.costs import cost_of
from benchmarks.easy_instances.figures import PICTURES, draw, to_draw
from benchmarks.easy_instances.report import report
from benchmarks.easy_instances.runs import Instance, Setting, cases, run

_FULL = Setting(10, (64, 1024), (128, 4096), (128, 65536), (128, 32768))
_SMOKE = Setting(
    2,
    (16, 32),
    (32, 128),
    (32, 256),
    (32, 256),
    (Instance(0.5, 0.75, 1), Instance(0.5, 4.0, 1), Instance(1.5, 2.0, 2)),
    (200, 40),
)


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    full = "GP-UCB to T = 1024, breadthwise exploration to 65536, 10 seeds: a day"
    options = parse_options(
        "easy_instances", "Easy and hard instances.", argv, full=full, processes=True
    )
    torch.set_num_threads(1)
    setting = _SMOKE if options.smoke else _FULL if options.full else Setting()
    to_run = list(cases(setting, options.seed))
    played = in_processes(run, to_run, options.processes, "easy instances")
    rows = [row for found in played for row in found]
    costs = [cost_of(rows, each, setting.grid[each.dim - 1]) for each in setting.instances]
    minutes = sum(row["seconds"] for row in rows if row["seconds"] != "") / 60
    took = f"{minutes:.0f} minutes of runs in all, in {options.processes} processes"
    longest = setting.breadthwise_plane[1]
    draw(rows, to_draw(setting.instances, longest, options.seed), options.output)
    write_report(options, report(rows, costs), f"{setting}, {took}", PICTURES)
    write_csv(options.output / "runs.csv.xz", rows)


if __name__ == "__main__":
    main()
