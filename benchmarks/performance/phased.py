"""Phased methods: the speed of batch planning and of delayed feedback, beside BoTorch.

    python -m benchmarks.performance.phased [--smoke] [--device cuda]

One thread, float64. Writes phased.md and phased.csv (phased-cuda.* on a GPU).
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import InputDataWarning

from benchmarks.common.command_line import parse_options
from benchmarks.performance.delayed_studies import delayed_on_box, delayed_on_grid
from benchmarks.performance.planner import box_planner, finite_planner, million_points
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    options = parse_options(
        "performance", __doc__.splitlines()[0] if __doc__ else "", argv, device=True
    )
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    parts = (delayed_on_grid, finite_planner, box_planner, million_points, delayed_on_box)
    measure("phased", "Speed of batch planning and of delayed feedback", parts, options)


if __name__ == "__main__":
    main()
