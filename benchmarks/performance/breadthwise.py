"""Breadthwise exploration over 10,000 steps in two dimensions: its time and its memory."""

from __future__ import annotations

import math
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row
from benchmarks.performance.speed_table import ratio_row
from botorch_ext.problems import RKHSFunction

if TYPE_CHECKING:
    from botorch_ext.studies.traces import Trace

_LENGTHSCALE = 0.5
_NOISE_STD = 0.03


class Setting(NamedTuple):
    """A study that is played.

    Args:
        what: Its name.
        norm: Of f.
        rkhs_bound: B.
        sides: Of the box.
    """

    what: str
    norm: float
    rkhs_bound: float
    sides: tuple[float, float]


SETTINGS = (
    Setting("f of norm 1, B = 1", 1.0, 1.0, (1.0, 1.5)),
    Setting("f = 0, B = 1, nothing eliminated", 1e-9, 1.0, (1.0, 1.5)),
    Setting("f = 0, B = 10, as many cells as allowed", 1e-9, 10.0, (3.0, 1.5)),
)


def breadthwise(options: Options) -> list[Row]:
    """An ordinary study, and two that keep all cells."""
    horizon = 200 if options.smoke else 10_000
    rows = []
    for setting in SETTINGS:
        seconds, peak, cells, evaluations = _in_a_fresh_process(
            setting, horizon, str(options.device)
        )
        what = f"breadthwise exploration, d=2, Matern 5/2, T={horizon}, {setting.what}"
        rows += [
            ratio_row(what, "60 s", seconds, 60.0, at_most=1),
            ratio_row(
                f"its memory, largest level {cells} cells x {evaluations} evaluations",
                "8 bytes for each cell and evaluation",
                peak / 2**20,
                8 * cells * evaluations / 2**20,
                unit="MiB",
                at_most=4,
            ),
        ]
    return rows


def _in_a_fresh_process(setting: Setting, horizon: int, device: str) -> tuple[float, int, int, int]:
    """Where nothing before has raised the peak of the memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_play, setting, horizon, device).result()


def _play(setting: Setting, horizon: int, device: str) -> tuple[float, int, int, int]:
    """Seconds of the strategy alone, bytes by which the peak grew, cells and evaluations of the
    level with the largest product of both."""
    torch.set_num_threads(1)
    simulate(setting, min(horizon, 50), device)  # what is loaded on first use
    before = _peak(device)
    trace = simulate(setting, horizon, device)
    grown = _peak(device) - before
    assert isinstance(trace.strategy, bx.BreadthwiseExploration)
    sizes = [(level.num_cells, level.num_evaluations) for level in trace.strategy.levels]
    return trace.seconds, grown, *max(sizes, key=math.prod)


def simulate(setting: Setting, horizon: int, device: str) -> Trace:
    """A whole study."""
    width, height = setting.sides
    box = bx.Box([[1.0, -1.0], [1.0 + width, -1.0 + height]], device=device)
    kernel = matern(_LENGTHSCALE)
    problem = RKHSFunction.random(box, kernel, norm=setting.norm, noise_std=_NOISE_STD, seed=3)
    strategy = bx.algorithms.breadthwise_exploration(
        box,
        kernel,
        noise_variance=_NOISE_STD**2,
        horizon=horizon,
        rkhs_bound=setting.rkhs_bound,
        noise_std=_NOISE_STD,
    )
    return bx.simulate(strategy, problem, horizon)


def _peak(device: str) -> int:
    """The most memory used so far, in bytes."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    status = Path("/proc/self/status")
    if not status.exists():  # macOS, which counts in bytes
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Not ru_maxrss, which on Linux starts with that of the process that started this one.
    (peak,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
    return 1024 * int(peak.split()[1])
