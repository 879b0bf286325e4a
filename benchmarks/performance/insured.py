"""Insured methods: the time of their steps, beside the plain methods in the same run.

    python -m benchmarks.performance.insured [--smoke]

One thread, float64, CPU time of whole studies played by turns. Writes insured.md and insured.csv.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.performance.speed_table import measure, ratio_row
from botorch_ext.domains import Domain
from botorch_ext.problems import RKHSFunction

_NUMBERS: dict[str, Any] = {"rkhs_bound": 2.0, "noise_std": 0.1}
_LATE, _LENGTHSCALE, _RIDGE, _NUM_MODELS = 10, 0.2, 0.01, 16
Make = Callable[[Domain, int], bx.Strategy]


def _one(method: str, **more: Any) -> Make:
    def make(domain: Domain, seed: int) -> bx.Strategy:
        options = _NUMBERS | {"noise_variance": _RIDGE, "seed": seed} | more
        return getattr(bx.algorithms, method)(domain, rbf(_LENGTHSCALE), **options)

    return make


def _several(method: str) -> Make:
    def make(domain: Domain, seed: int) -> bx.Strategy:
        scales = torch.logspace(-1.5, 0.5, _NUM_MODELS, dtype=torch.float64).tolist()
        models = bx.CandidateModels.lengthscales(rbf(1.0), scales, _RIDGE)
        return getattr(bx.algorithms, method)(domain, models, **_NUMBERS, seed=seed)

    return make


def _seconds(make: Make, domain: Domain, horizon: int, late: int, seed: int) -> float:
    """CPU time of a study whose results come so many questions late, a step."""
    kernel = rbf(_LENGTHSCALE)
    f = RKHSFunction.random(domain, kernel, norm=2.0, noise_std=0.1, seed=seed)
    strategy, waiting = make(domain, seed), deque()
    noise = torch.Generator().manual_seed(seed)
    taken = 0.0
    for _ in range(horizon):
        started = time.process_time()
        waiting.append(strategy.ask())
        taken += time.process_time() - started
        if len(waiting) <= late:
            continue
        trial = waiting.popleft()
        value = float(f(trial.x)) + 0.1 * float(torch.randn((), generator=noise))
        started = time.process_time()
        strategy.tell(trial.id, value)
        taken += time.process_time() - started
    return taken / horizon


def _compared(
    ours: tuple[str, Make],
    plain: tuple[str, Make],
    domain: Domain,
    where: str,
    horizon: int,
    options: Options,
    at_most: float,
    late: int = 0,
) -> Row:
    pairs = [
        tuple(_seconds(make, domain, horizon, late, options.seed + i) for _, make in (ours, plain))
        for i in range(1 if options.smoke else 3)
    ]
    medians = [statistics.median(column) for column in zip(*pairs, strict=True)]
    name = f"{ours[0]}: a step, {where}, T = {horizon}"
    if late:
        name += f", {late} pending"
    return ratio_row(name, plain[0], *medians, at_most=at_most)


def on_sets(options: Options) -> list[Row]:
    """On a grid of the square."""
    side, long, short = (8, 14, 12) if options.smoke else (50, 1000, 300)
    axis = torch.linspace(0, 1, side, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis))
    where = f"N = {side**2}"
    gp_ucb, gp_bucb = (("gp_ucb", _one("gp_ucb")), ("gp_bucb", _one("gp_bucb")))
    insured = "insured_ucb", _one("insured_ucb")
    certified = "certified_bucb", _one("certified_bucb", horizon=long)
    credible, he = (
        ("credible_ucb", _several("credible_ucb")),
        ("he_gp_ucb", _several("he_gp_ucb")),
    )
    models = f"{where}, {_NUM_MODELS} models"
    return [
        _compared(insured, gp_ucb, domain, where, long, options, 3.0),
        _compared(insured, gp_bucb, domain, where, long, options, 3.0, _LATE),
        _compared(certified, gp_bucb, domain, where, long, options, 1.5, _LATE),
        _compared(credible, he, domain, models, short, options, 1.1),
    ]


def on_boxes(options: Options) -> list[Row]:
    """In a box of two dimensions."""
    horizon = 10 if options.smoke else 150
    box, where = bx.Box([[0.0, 0.0], [1.0, 1.0]]), "box, d = 2"
    gp_ucb = "gp_ucb", _one("gp_ucb")
    gp_bucb = "gp_bucb", _one("gp_bucb")
    certified = "certified_bucb", _one("certified_bucb", horizon=horizon)
    insured = "insured_ucb", _one("insured_ucb")
    return [
        _compared(insured, gp_ucb, box, where, horizon, options, 2.0),
        _compared(insured, gp_bucb, box, where, horizon, options, 2.0, _LATE),
        _compared(certified, gp_bucb, box, where, horizon, options, 2.0, _LATE),
    ]


def main(argv: list[str] | None = None) -> None:
    """Measures everything, prints the table and writes it."""
    measure("insured", "Speed of the insured methods", (on_sets, on_boxes), argv, device=False)


if __name__ == "__main__":
    main()
