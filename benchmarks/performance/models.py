"""Models, many at once: the speed of strategies over them, beside BoTorch in the same run.

    python -m benchmarks.performance.models [--smoke] [--device cuda]

One thread, float64. Writes models.md and models.csv (models-cuda.* on a GPU).
"""

from __future__ import annotations

from benchmarks.performance.many_models import asked_of_models, elimination_on_grid
from benchmarks.performance.speed_table import measure


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    parts = (asked_of_models, elimination_on_grid)
    measure("models", "Speed of strategies over many models", parts, argv)


if __name__ == "__main__":
    main()
