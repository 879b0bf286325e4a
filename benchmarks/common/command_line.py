"""The command line of a benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

_BENCHMARKS = Path(__file__).parent.parent
# Beside the repository.
DATA_FOLDER = _BENCHMARKS.parent.parent / "shared" / "data"


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Args:
        name: Of the command below ``benchmarks`` and of the folder of its files.
        smoke: Only show that everything runs, in seconds.
        full: The large setting.
        seed: Of everything random.
        output: The folder for the files.
        device: Where the tensors live.
        data: The folder with the data files.
        processes: How many run at once.
        more: What a benchmark asks for itself, by name.
    """

    name: str
    smoke: bool
    full: bool
    seed: int
    output: Path
    device: torch.device
    data: Path
    processes: int
    more: Mapping[str, Any] = field(default_factory=dict)


def parse_options(
    name: str,
    description: str,
    argv: Sequence[str] | None = None,
    *,
    full: str | None = None,
    device: bool = False,
    data: bool = False,
    processes: bool = False,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> Options:
    """Reads the command line.

    A smoke run writes below ``out/benchmarks`` unless told otherwise, never over committed results.

    Args:
        name: Of the command below ``benchmarks`` and of the folder of its files.
        description: One sentence for ``--help``.
        argv: The arguments; None takes those of the process.
        full: What ``--full`` does; None leaves it out.
        device: Whether there is ``--device``.
        data: Whether there is ``--data``.
        processes: Whether there is ``--processes``.
        more: Further options of this benchmark: from their names, without dashes, to what argparse
            is told of them.

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
        help=f"folder for the files (default: benchmarks/results/{name}, or out/benchmarks/{name} "
        "with --smoke)",
    )
    if device:
        parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    if data:
        parser.add_argument(
            "--data",
            type=Path,
            default=DATA_FOLDER,
            help="folder of the data files (default: ../shared/data, beside the repository)",
        )
    if processes:
        help = "that run at once, one thread each (default 2, 1 of --smoke)"
        parser.add_argument("--processes", type=int, help=help)
    for option, told in (more or {}).items():
        parser.add_argument(f"--{option}", **told)
    given = parser.parse_args(argv)
    output = given.output
    if output is None:
        results, scratch = _BENCHMARKS / "results", _BENCHMARKS.parent / "out" / "benchmarks"
        output = (scratch if given.smoke else results) / name
    output.mkdir(parents=True, exist_ok=True)
    return Options(
        name=name,
        smoke=given.smoke,
        full=getattr(given, "full", False),
        seed=given.seed,
        output=output,
        device=torch.device(getattr(given, "device", "cpu")),
        data=getattr(given, "data", DATA_FOLDER),
        processes=getattr(given, "processes", None) or (2 if processes and not given.smoke else 1),
        more={option: getattr(given, option) for option in more or {}},
    )
