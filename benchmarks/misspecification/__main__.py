"""Misspecification: what robustness to it buys, and what it costs.

    python -m benchmarks.misspecification [--smoke | --full]

GP-UCB against the two methods of Bogunovic and Krause 2021, EC-GP-UCB, which is told eps, and
Phased GP Uncertainty Sampling, which is not, with their theoretical widths, (1) on the lock-out
instance, made so that GP-UCB's confidence bounds exclude the best arm for ever, and (2) on generic
perturbations of functions whose RKHS norm is known. Writes report.md, runs.csv.xz and regret.png.
"""

from __future__ import annotations

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.reports import write_report
from benchmarks.common.tables import write_csv
from benchmarks.misspecification.figures import PICTURES, draw
from benchmarks.misspecification.report import report
from benchmarks.misspecification.runs import Setting, generic_rows, lock_out_rows


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its three files."""
    full = "T = 1000, 2500 candidates, d up to 6"
    options = parse_options(
        "misspecification", "Three methods under misspecification.", argv, full=full
    )
    torch.set_num_threads(1)
    setting = Setting()
    if options.smoke:
        setting = Setting(20, 50, (1, 2), 2, 2)
    elif options.full:
        setting = Setting(1000, 2500, (1, 2, 4, 6))
    locked, curves = lock_out_rows(setting, options)
    generic = generic_rows(setting, options)
    draw(curves, generic, options.output / "regret.png")
    write_report(options, report(locked, generic), setting, PICTURES)
    write_csv(options.output / "runs.csv.xz", [*locked, *generic])


if __name__ == "__main__":
    main()
