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
    axis = torch.linspace(-_SIDE, _SIDE, side, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis), device=options.device)
    problem = RKHSFunction.random(domain, rbf(1.0), norm=3.0, noise_std=_NOISE_STD)
    minimum = float(problem(domain.points).min())
    common: dict[str, Any] = {"noise_variance": _NOISE_VARIANCE, "width": math.sqrt(6)}
    methods: list[tuple[str, float, Callable[[], bx.Strategy]]] = [
        ("BPE-Delay", 0.5, lambda: _bpe_delay(domain, horizon)),
        (
            "GP-UCB-SDF",
            5.0,
            lambda: bx.algorithms.gp_ucb_sdf(
                domain, rbf(1.0), minimum=minimum, timeout=100, **common
            ),
        ),
        ("GP-BUCB", 5.0, lambda: bx.algorithms.gp_bucb(domain, rbf(1.0), **common)),
    ]
    rows = []
    for name, limit, make in methods:
        taken = [
            bx.simulate(make(), problem, horizon, delay=_DELAY, seed=seed).seconds
            for seed in range(repeats)
        ]
        what = f"{name}, N={side**2}, T={horizon}, Poisson(50)"
        rows.append(ratio_row(what, f"{limit:g} s", statistics.median(taken), limit, at_most=1))
    return rows


def delayed_on_box(options: Options) -> list[Row]:
    """On the box, with the count of asked points outside the region of their round."""
    horizon = 60 if options.smoke else 1000
    box = bx.Box([[-_SIDE, -_SIDE], [_SIDE, _SIDE]], device=options.device)
    problem = RKHSFunction.random(box, rbf(1.0), norm=3.0, noise_std=_NOISE_STD)
    trace = bx.simulate(_bpe_delay(box, horizon), problem, horizon, delay=_DELAY)
    strategy = trace.strategy
    assert isinstance(strategy, bx.PhasedElimination)
    outside = 0
    for finished in strategy.rounds:
        assert isinstance(finished.survivors, bx.Region)
        outside += int((~finished.survivors.contains(finished.points)).sum())
    what = f"BPE-Delay, box [-5, 5]^2, T={horizon}, Poisson(50)"
    return [
        ratio_row(what, "30 s", trace.seconds, 30.0, at_most=1),
        fact_row(
            f"{what}: asked points outside the region of their round",
            "Region.contains",
            outside,
            "0",
            outside == 0,
        ),
    ]


def _bpe_delay(domain: bx.FiniteSet | bx.Box, horizon: int) -> bx.PhasedElimination:
    return bx.algorithms.bpe_delay(
        domain,
        rbf(1.0),
        noise_variance=_NOISE_VARIANCE,
        width=math.sqrt(6),
        horizon=horizon,
        delay=_DELAY,
        delta=_DELTA,
    )
