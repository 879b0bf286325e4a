"""Launches and stops of the host on a GPU, counted without one.

    python -m benchmarks.performance.launches [--smoke]

A pretended GPU counts what each hot path launches and how often the host waits for it, and names
the lines that wait most. Writes launches.md and launches.csv.
"""

from __future__ import annotations

import warnings

import torch
from botorch.exceptions.warnings import InputDataWarning
from tqdm import tqdm

from benchmarks.common.command_line import parse_options
from benchmarks.common.pretend_cuda import PretendCUDA
from benchmarks.common.tables import Row, markdown_table, write_csv
from benchmarks.performance.hot_paths import OF_BOTORCH, PATHS
from benchmarks.performance.meters import LaunchMeter

_TITLE = "Launches and stops on a GPU, counted without one"


def main(argv: list[str] | None = None) -> None:
    """Counts every path, prints the table and writes it."""
    options = parse_options("performance", f"{_TITLE}.", argv)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    rows: list[Row] = []
    paths = list(PATHS.items())[: 1 if options.smoke else None]  # tests count most of them
    paths += [(f"BoTorch for {name}", path) for name, path in OF_BOTORCH.items()]
    for name, path in tqdm(paths, unit="path"):
        meter = LaunchMeter()
        with PretendCUDA():
            path(meter, options.smoke)
        rows.append(_row(name, meter))
    text = (
        f"# {_TITLE}\n\n"
        f"`python -m benchmarks.performance.launches`{' (smoke)' if options.smoke else ''}. "
        "Launches are of kernels, as many as PyTorch's operations take. "
        "A stop is a wait of the host, uploads included. Planning on a box and rounds in a region "
        "wait most: the host decides each step of eight climbers, as a planner that never waited "
        "found less variance.\n\n" + markdown_table(rows)
    )
    print(text)
    (options.output / "launches.md").write_text(text)
    write_csv(options.output / "launches.csv", rows)


def _row(name: str, meter: LaunchMeter) -> Row:
    tally, steps = meter.tally, meter.steps
    lines = (f"{count / steps:.3g} x {where}" for where, count in tally.stops.most_common(4))
    return {
        "path": name,
        "launches/step": meter.launches,
        "stops/step": meter.stops,
        "cdist entries/step": f"{tally.cdist_entries / steps:.3g}",
        "MB/step": meter.num_bytes / 1e6,
        "stops most often": "; ".join(lines),
    }


if __name__ == "__main__":
    main()
