"""Practical default: the speed of integrated_ei, beside BoTorch's best practice in the same run.

    python -m benchmarks.performance.practical [--smoke]

One thread, float64. Writes practical.md and practical.csv.
"""

from __future__ import annotations

from benchmarks.performance.practical_asks import asked_beside_botorch, growth, large
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    parts = (asked_beside_botorch, growth, large)
    measure("practical", "Speed of the practical default", parts, argv, device=False)


if __name__ == "__main__":
    main()
