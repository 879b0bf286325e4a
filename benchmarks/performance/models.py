"""Models, many at once: the speed of strategies over them, beside BoTorch in the same run.

    python -m benchmarks.performance.models [--smoke] [--device cuda]

One thread, float64. Writes models.md and models.csv (models-cuda.* on a GPU).
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import InputDataWarning

from benchmarks.common.command_line import parse_options
from benchmarks.performance.many_models import asked_of_models, elimination_on_grid
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    options = parse_options(
        "performance", __doc__.splitlines()[0] if __doc__ else "", argv, device=True
    )
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    parts = (asked_of_models, elimination_on_grid)
    measure("models", "Speed of strategies over many models", parts, options)


if __name__ == "__main__":
    main()
