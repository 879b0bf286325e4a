"""Contextual methods: the speed of questions in contexts, beside BoTorch in the same run.

    python -m benchmarks.performance.contextual [--smoke]

One thread, float64, on the CPU. Writes contextual.md and contextual.csv.
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import InputDataWarning

from benchmarks.common.command_line import parse_options
from benchmarks.performance.contextual_studies import peptides, sensors
from benchmarks.performance.questions_in_contexts import asked_in_context
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    options = parse_options("performance", __doc__.splitlines()[0] if __doc__ else "", argv)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    parts = (asked_in_context, sensors, peptides)
    measure("contextual", "Speed of questions in contexts", parts, options)


if __name__ == "__main__":
    main()
