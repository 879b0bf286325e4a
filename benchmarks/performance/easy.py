"""Easy instances: the speed of breadthwise exploration and of the complexities of an instance.

    python -m benchmarks.performance.easy [--smoke] [--device cuda]

One thread, float64. Writes easy.md and easy.csv (easy-cuda.* on a GPU).
"""

from __future__ import annotations

from benchmarks.performance.breadthwise import breadthwise
from benchmarks.performance.complexity import complexities
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    parts = (complexities, breadthwise)
    measure("easy", "Speed of breadthwise exploration and of complexities", parts, argv)


if __name__ == "__main__":
    main()
