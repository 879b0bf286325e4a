"""Foundation: its speed, as ratios to BoTorch and to plain loops measured in the same run.

    python -m benchmarks.performance.foundation [--smoke] [--device cuda]

One thread, float64. Writes foundation.md and foundation.csv (foundation-cuda.* on a GPU).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import warnings

import torch
from botorch.exceptions.warnings import InputDataWarning

from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.tables import Row
from benchmarks.performance.box import added_point, asked_point
from benchmarks.performance.finite_study import finite_posterior
from benchmarks.performance.speed_table import fact_row, measure, ratio_row

IMPORT = """
import sys, time
import botorch
before = set(sys.modules)
start = time.perf_counter()
import botorch_ext
print(time.perf_counter() - start)
botorch_ext.algorithms, botorch_ext.run, botorch_ext.simulate
print(time.perf_counter() - start)
for name in botorch_ext.__all__:
    getattr(botorch_ext, name)
print(",".join({"matplotlib", "ax", "optuna", "dask", "distributed"} & set(sys.modules) - before))
"""


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    options = parse_options(
        "performance", __doc__.splitlines()[0] if __doc__ else "", argv, device=True
    )
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    parts = (finite_posterior, added_point, asked_point, imported)
    measure("foundation", "Speed of the foundation", parts, options)


def imported(options: Options) -> list[Row]:
    """What `import botorch_ext` adds to `import botorch`, in fresh processes."""
    at_once, in_use, loaded = [], [], set()
    for _ in range(1 if options.smoke else 7):
        command = [sys.executable, "-c", IMPORT]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        first, second, modules, *_ = [*output.splitlines(), ""]
        at_once.append(float(first))
        in_use.append(float(second))
        loaded |= set(modules.split(",")) - {""}
    what = "import botorch_ext"
    return [
        ratio_row(
            f"{what} after import botorch", "0.3 s", statistics.median(at_once), 0.3, at_most=1
        ),
        ratio_row(
            f"{what}, then first use of algorithms, run and simulate (half of it scipy, which "
            "BoTorch's models need)",
            "0.3 s",
            statistics.median(in_use),
            0.3,
        ),
        fact_row(
            f"{what} and every name in it: optional packages that loads "
            f"({', '.join(sorted(loaded)) or 'none'})",
            "matplotlib, ax, optuna, dask, distributed",
            len(loaded),
            "0",
            not loaded,
        ),
    ]


if __name__ == "__main__":
    main()
