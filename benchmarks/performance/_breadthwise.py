"""Breadthwise exploration over 10,000 steps in two dimensions: its time and its memory."""

from __future__ import annotations

import math
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor

import torch

import botorch_ext as bx
from benchmarks._harness import Options, Row
from benchmarks.performance._models import matern
from benchmarks.performance._rows import ratio_row
from botorch_ext.problems import RKHSFunction
from botorch_ext.simulation import Trace

_LENGTHSCALE = 0.5
_NOISE_STD = 0.03


def breadthwise(options: Options) -> list[Row]:
    """Where nothing is ever eliminated, the worst case, and on a random function of norm 1."""
    horizon = 200 if options.smoke else 10_000
    rows = []
    for what, norm in (("f = 0", 1e-9), ("random f of norm 1", 1.0)):
        seconds, peak, cells, evaluations = _in_a_fresh_process(norm, horizon, str(options.device))
        what = f"breadthwise exploration, d=2, Matern 5/2, T={horizon}, {what}"
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


def _in_a_fresh_process(norm: float, horizon: int, device: str) -> tuple[float, int, int, int]:
    """Where nothing before has raised the peak of the memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context) as pool:
        return pool.submit(_play, norm, horizon, device).result()


def _play(norm: float, horizon: int, device: str) -> tuple[float, int, int, int]:
    """Seconds of the strategy alone, bytes by which the peak grew, cells and evaluations of the
    level with the largest product of both."""
    torch.set_num_threads(1)
    _study(norm, min(horizon, 50), device)  # what is loaded on first use
    before = _peak(device)
    trace = _study(norm, horizon, device)
    grown = _peak(device) - before
    assert isinstance(trace.strategy, bx.BreadthwiseExploration)
    sizes = [(level.num_cells, level.num_evaluations) for level in trace.strategy.levels]
    return trace.seconds, grown, *max(sizes, key=math.prod)


def _study(norm: float, horizon: int, device: str) -> Trace:
    box = bx.Box([[1.0, -1.0], [2.0, 0.5]], device=device)
    kernel = matern(_LENGTHSCALE)
    problem = RKHSFunction.random(box, kernel, norm=norm, noise_std=_NOISE_STD, seed=3)
    strategy = bx.algorithms.breadthwise_exploration(
        box,
        kernel,
        noise_variance=_NOISE_STD**2,
        horizon=horizon,
        rkhs_bound=1.0,
        noise_std=_NOISE_STD,
    )
    return bx.simulate(strategy, problem, horizon)


def _peak(device: str) -> int:
    """The most memory used so far, in bytes."""
    if torch.device(device).type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    # Linux counts in KiB.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
