"""Easy instances: the speed of breadthwise exploration and of the complexities of an instance.

    python -m benchmarks.performance.easy [--smoke] [--device cuda]

One thread, float64. Writes easy.md and easy.csv (easy-cuda.* on a GPU).
"""

from __future__ import annotations

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.performance.breadthwise import breadthwise
from benchmarks.performance.complexity import complexities
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    options = parse_options(
        "performance", __doc__.splitlines()[0] if __doc__ else "", argv, device=True
    )
    torch.set_num_threads(1)
    parts = (complexities, breadthwise)
    measure("easy", "Speed of breadthwise exploration and of complexities", parts, options)


if __name__ == "__main__":
    main()
