"""Complexities of instances in two dimensions, on a fine grid."""

from __future__ import annotations

from functools import partial

import torch
from gpytorch.kernels import Kernel, MaternKernel

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row
from benchmarks.common.timing import seconds
from benchmarks.performance.speed_table import ratio_row
from botorch_ext.analysis import lower_complexity, upper_complexity
from botorch_ext.problems import Problem, RKHSFunction

_NORM, _BOUND = 1.0, 2.0


def complexities(options: Options) -> list[Row]:
    """Both complexities of a random function, at the gaps of short and of long horizons: the
    smaller the gap, the more balls are packed."""
    side = 40 if options.smoke else 400
    rows = []
    for name, nu in (("1/2", 0.5), ("5/2", 2.5)):
        problem, kernel = instance(nu, options.seed, options.device)
        for gap in (0.1, 0.003):
            taken = seconds(partial(both, problem, kernel, gap, (side, side)), options.device)
            what = f"lower and upper complexity, Matern {name}, gap {gap:g}, {side} x {side} grid"
            rows.append(ratio_row(what, "10 s", taken, 10.0, at_most=1))
    return rows


def instance(nu: float, seed: int, device: torch.device) -> tuple[Problem, Kernel]:
    """A random function in two dimensions and its kernel."""
    kernel = MaternKernel(nu=nu).double()
    kernel.lengthscale = torch.tensor(0.5, dtype=torch.float64)
    box = bx.Box([[1.0, -1.0], [2.0, 0.5]], device=device)
    problem = RKHSFunction.random(box, kernel, norm=_NORM, seed=seed)
    _ = problem.optimal_value  # found once for each function, by a search
    return problem, kernel


def both(problem: Problem, kernel: Kernel, gap: float, shape: tuple[int, int]) -> None:
    """Both complexities of an instance, on a grid of this shape."""
    lower_complexity(problem, kernel, gap, _BOUND, _NORM, shape=shape)
    upper_complexity(problem, kernel, gap, _BOUND, shape=shape)
