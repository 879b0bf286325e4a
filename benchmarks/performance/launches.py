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
from benchmarks.performance.launch_paths import PATHS, Counted

_TITLE = "Launches and stops on a GPU, counted without one"


def main(argv: list[str] | None = None) -> None:
    """Counts every path, prints the table and writes it."""
    options = parse_options("performance", f"{_TITLE}.", argv)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    rows: list[Row] = []
    for name, count in tqdm(PATHS.items(), unit="path"):
        with PretendCUDA():
            rows.append(_row(name, count(options.smoke)))
    text = (
        f"# {_TITLE}\n\n"
        f"`python -m benchmarks.performance.launches`{' (smoke)' if options.smoke else ''}. "
        "Launches are of kernels, as many as PyTorch's operations take; a stop is a wait of the "
        "host, uploads included.\n\n" + markdown_table(rows)
    )
    print(text)
    (options.output / "launches.md").write_text(text)
    write_csv(options.output / "launches.csv", rows)


def _row(name: str, counted: Counted) -> Row:
    tally, steps = counted
    lines = (f"{count / steps:.3g} x {where}" for where, count in tally.stops.most_common(4))
    return {
        "path": name,
        "launches/step": counted.launches,
        "stops/step": counted.stops,
        "cdist entries/step": f"{tally.cdist_entries / steps:.3g}",
        "MB/step": tally.num_bytes / steps / 1e6,
        "stops most often": "; ".join(lines),
    }


if __name__ == "__main__":
    main()
