"""What the benchmarks share: arguments, timing, and the files they write."""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import botorch
import gpytorch
import torch
from tqdm import tqdm

_BENCHMARKS = Path(__file__).parent

Row = dict[str, Any]
_Case = TypeVar("_Case")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Args:
        smoke: Only show that everything runs, in seconds.
        full: The large setting.
        seed: Of everything random.
        output: The folder for the files.
        device: Where the tensors live.
        data: The folder with the data files.
        processes: How many run at once.
    """

    smoke: bool
    full: bool
    seed: int
    output: Path
    device: torch.device
    data: Path
    processes: int


def parse_options(
    description: str,
    argv: Sequence[str] | None = None,
    *,
    full: str | None = None,
    device: bool = False,
    data: bool = False,
    processes: bool = False,
) -> Options:
    """Reads the command line.

    A smoke run writes to ``out/benchmarks`` unless told otherwise, never over committed results.

    Args:
        description: One sentence for ``--help``.
        argv: The arguments; None takes those of the process.
        full: What ``--full`` does; None leaves it out.
        device: Whether there is ``--device``.
        data: Whether there is ``--data``.
        processes: Whether there is ``--processes``.

    Returns:
        The options; the output folder exists.
    """
    parser = argparse.ArgumentParser(description=description)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--smoke", action="store_true", help="only show that it runs, in seconds")
    if full is not None:
        size.add_argument("--full", action="store_true", help=full)
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: 0)")
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for the files (default: benchmarks/results, or out/benchmarks with --smoke)",
    )
    if device:
        parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    data_folder = _BENCHMARKS.parent.parent / "shared" / "data"
    if data:
        parser.add_argument(
            "--data",
            type=Path,
            default=data_folder,
            help="folder of the data files (default: ../shared/data, beside the repository)",
        )
    if processes:
        parser.add_argument(
            "--processes", type=int, default=2, help="that run at once, one thread each (default 2)"
        )
    given = parser.parse_args(argv)
    output = given.output
    if output is None:
        results, scratch = _BENCHMARKS / "results", _BENCHMARKS.parent / "out" / "benchmarks"
        output = scratch if given.smoke else results
    output.mkdir(parents=True, exist_ok=True)
    return Options(
        smoke=given.smoke,
        full=getattr(given, "full", False),
        seed=given.seed,
        output=output,
        device=torch.device(getattr(given, "device", "cpu")),
        data=getattr(given, "data", data_folder),
        processes=getattr(given, "processes", 1),
    )


def in_processes(
    function: Callable[[_Case], _Result], cases: Sequence[_Case], processes: int, description: str
) -> list[_Result]:
    """The results of all cases, in their order, with a progress bar.

    Args:
        function: Of one case; it and the cases must be picklable.
        cases: What to run.
        processes: How many at once, with one thread each; 1 runs them in this process.
        description: Of the progress bar.

    Returns:
        A result for each case.
    """
    bar: dict[str, Any] = {"total": len(cases), "desc": description, "unit": "run"}
    if processes == 1:
        return list(tqdm(map(function, cases), **bar))
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,)) as pool:
        return list(tqdm(pool.map(function, cases), **bar))


def seconds(function: Callable[[], Any], device: torch.device) -> float:
    """How long one call takes, with all the work it started on the device."""
    _synchronize(device)
    start = time.perf_counter()
    function()
    _synchronize(device)
    return time.perf_counter() - start


def median_seconds(function: Callable[[], Any], repeats: int, device: torch.device) -> float:
    """The median over some calls, after one that is not counted."""
    function()
    return statistics.median(seconds(function, device) for _ in range(repeats))


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def describe_machine(device: torch.device | None = None) -> str:
    """Processor, threads, versions and, where one is used, the GPU; in one line."""
    parts = [
        _processor(),
        f"{torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''}",
        f"Python {platform.python_version()}",
        f"torch {torch.__version__}",
        f"gpytorch {gpytorch.__version__}",
        f"botorch {botorch.__version__}",
    ]
    if device is not None and device.type == "cuda":
        parts.insert(1, torch.cuda.get_device_name(device))
    return ", ".join(parts)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def markdown_table(rows: Sequence[Row]) -> str:
    """Rows with the same keys as a Markdown table; floats with three digits."""
    header = list(rows[0])
    lines = [header, ["---"] * len(header)]
    lines += [[_cell(row[name]) for name in header] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "**no**"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return str(value)


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Rows with the same keys as a CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
