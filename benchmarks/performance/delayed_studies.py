"""Delayed studies: 1,000 steps each, Poisson delays with mean 50."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.performance.speed_table import fact_row, ratio_row
from botorch_ext.problems import RKHSFunction

_SIDE = 5.0
_NOISE_VARIANCE = 4e-4
_NOISE_STD = 0.02
_DELTA = 0.01
_DELAY = bx.delays.Poisson(50)


def delayed_on_grid(options: Options) -> list[Row]:
    """On a 50 x 50 grid, the time of the strategy alone (ask and tell together)."""
    side, horizon, repeats = (10, 60, 1) if options.smoke else (50, 1000, 5)
    play = studies_on_grid(side, horizon, options.device)
    rows = []
    for name, limit in (("BPE-Delay", 0.5), ("GP-UCB-SDF", 5.0), ("GP-BUCB", 5.0)):
        taken = [play(name, seed) for seed in range(repeats)]
        what = f"{name}, N={side**2}, T={horizon}, Poisson(50)"
        rows.append(ratio_row(what, f"{limit:g} s", statistics.median(taken), limit, at_most=1))
    return rows


def studies_on_grid(side: int, horizon: int, device: torch.device) -> Callable[[str, int], float]:
    """The seconds that a method, by its name, takes with a seed."""
    axis = torch.linspace(-_SIDE, _SIDE, side, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis), device=device)
    problem = RKHSFunction.random(domain, rbf(1.0), norm=3.0, noise_std=_NOISE_STD)
    minimum = float(problem(domain.points).min())
    common: dict[str, Any] = {"noise_variance": _NOISE_VARIANCE, "width": math.sqrt(6)}

    def method(name: str) -> bx.Strategy:
        match name:
            case "BPE-Delay":
                return bpe_delay(domain, horizon)
            case "GP-UCB-SDF":
                return bx.algorithms.gp_ucb_sdf(
                    domain, rbf(1.0), minimum=minimum, timeout=100, **common
                )
        return bx.algorithms.gp_bucb(domain, rbf(1.0), **common)

    def play(name: str, seed: int) -> float:
        return bx.simulate(method(name), problem, horizon, delay=_DELAY, seed=seed).seconds

    return play


def delayed_on_box(options: Options) -> list[Row]:
    """On the box, with the count of asked points outside the region of their round."""
    horizon = 60 if options.smoke else 1000
    strategy, taken = study_on_box(horizon, options.device)
    outside = 0
    for finished in strategy.rounds:
        assert isinstance(finished.survivors, bx.Region)
        outside += int((~finished.survivors.contains(finished.points)).sum())
    what = f"BPE-Delay, box [-5, 5]^2, T={horizon}, Poisson(50)"
    return [
        ratio_row(what, "30 s", taken, 30.0, at_most=1),
        fact_row(
            f"{what}: asked points outside the region of their round",
            "Region.contains",
            outside,
            "0",
            outside == 0,
        ),
    ]


def study_on_box(horizon: int, device: torch.device) -> tuple[bx.PhasedElimination, float]:
    """BPE-Delay at the end of a study on the box, and the seconds it took."""
    problem = problem_on_box(device)
    strategy = bpe_delay(problem.domain, horizon)
    return strategy, bx.simulate(strategy, problem, horizon, delay=_DELAY).seconds


def problem_on_box(device: torch.device) -> RKHSFunction:
    """A function in two dimensions."""
    box = bx.Box([[-_SIDE, -_SIDE], [_SIDE, _SIDE]], device=device)
    return RKHSFunction.random(box, rbf(1.0), norm=3.0, noise_std=_NOISE_STD)


def bpe_delay(
    domain: bx.FiniteSet | bx.Box, horizon: int, delay: Any = _DELAY
) -> bx.PhasedElimination:
    """BPE-Delay before its first question."""
    return bx.algorithms.bpe_delay(
        domain,
        rbf(1.0),
        noise_variance=_NOISE_VARIANCE,
        width=math.sqrt(6),
        horizon=horizon,
        delay=delay,
        delta=_DELTA,
    )
