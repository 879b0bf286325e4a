"""Runs on easy and hard instances."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from gpytorch.kernels import MaternKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from botorch_ext.problems import GrowthFunction
from botorch_ext.strategies import BreadthwiseExploration

NAMES = {
    "breadthwise_exploration": "breadthwise",
    "bpe": "BPE",
    "gp_ucb": "GP-UCB",
    "igp_ucb": "IGP-UCB",
}
# Their decisions need the horizon, so each horizon is a run of its own.
WITH_HORIZON = ("breadthwise_exploration", "bpe")

NORM, RKHS_BOUND, NOISE_STD, DELTA = 0.95, 1.0, 0.02, 0.1
# A box of 2.5 (d = 1) and 2.5 by 2 lengthscales.
_LOWER, _UPPER, _LENGTHSCALES = (2.0, -7.0), (3.0, -6.4), (0.4, 0.3)
# Where the maximiser can be, in shares of the sides.
_INNER = (0.3, 0.7)


class Instance(NamedTuple):
    """A kernel and how sharp the maximum is.

    Args:
        nu: The smoothness of the Matern kernel.
        growth: b, f(x*) - f(x) ~ |x - x*|^b.
        dim: d.
    """

    nu: float
    growth: float
    dim: int

    def __str__(self) -> str:
        return f"nu = {self.nu:g}, b = {self.growth:g}, d = {self.dim}"


GROWTHS = ((0.5, (0.75, 1.0, 2.0, 4.0)), (1.5, (2.0, 4.0)), (2.5, (2.0, 4.0)))
INSTANCES = tuple(
    Instance(nu, growth, dim) for dim in (1, 2) for nu, growths in GROWTHS for growth in growths
)


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        seeds: Runs of each method on each instance and horizon; each has a maximiser of its own.
        optimistic: The shortest and the longest horizon of GP-UCB and IGP-UCB; those between are
            twice as long each.
        bpe: The same for BPE.
        breadthwise: The same for breadthwise exploration, d = 1.
        breadthwise_plane: The same for d = 2.
        instances: Which.
        grid: How many points a side complexities are computed on, for d = 1 and d = 2.
    """

    seeds: int = 4
    optimistic: tuple[int, int] = (64, 512)
    bpe: tuple[int, int] = (128, 1024)
    breadthwise: tuple[int, int] = (128, 16384)
    breadthwise_plane: tuple[int, int] = (128, 8192)
    instances: tuple[Instance, ...] = field(default=INSTANCES, repr=False)
    grid: tuple[int, int] = (20000, 400)

    def horizons(self, method: str, dim: int) -> list[int]:
        """All horizons of a method."""
        match method, dim:
            case "breadthwise_exploration", 1:
                first, last = self.breadthwise
            case "breadthwise_exploration", _:
                first, last = self.breadthwise_plane
            case "bpe", _:
                first, last = self.bpe
            case _:
                first, last = self.optimistic
        return [first * 2**i for i in range((last // first).bit_length())]


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        instance: The kernel and the growth.
        method: One of `NAMES`.
        seed: Of everything random in it.
        horizons: Where the regret is read off; the run is as long as the last.
    """

    instance: Instance
    method: str
    seed: int
    horizons: tuple[int, ...]


def cases(setting: Setting, seed: int) -> Iterator[Case]:
    """All runs, longer ones first: what is left at the end is short."""
    for method in ("gp_ucb", "igp_ucb"):
        for instance in setting.instances:
            horizons = tuple(setting.horizons(method, instance.dim))
            for i in range(setting.seeds):
                yield Case(instance, method, seed + i, horizons)
    for method in WITH_HORIZON:
        for instance in setting.instances:
            for horizon in reversed(setting.horizons(method, instance.dim)):
                for i in range(setting.seeds):
                    yield Case(instance, method, seed + i, (horizon,))


def run(case: Case) -> list[Row]:
    """Plays one case: a row for each horizon."""
    start = time.perf_counter()
    strategy, problem, regret = play(case)
    seconds = time.perf_counter() - start
    total = regret.cumsum(dim=0)
    uniform = float(problem.gap(problem.domain.sample(4096, seed=0)).mean())
    return [
        case.instance._asdict()
        | {
            "method": case.method,
            "seed": case.seed,
            "horizon": horizon,
            "regret": float(total[horizon - 1]),
            "height": problem.height,
            "uniform_regret_per_step": uniform,
            "seconds": seconds if horizon == case.horizons[-1] else "",
        }
        | _of_levels(strategy, problem)
        for horizon in case.horizons
    ]


def play(case: Case) -> tuple[bx.Strategy, GrowthFunction, Tensor]:
    """The strategy at the end of a run, the function, and the regret of each step."""
    problem = problem_of(case.instance, case.seed)
    horizon = case.horizons[-1]
    options: dict[str, Any] = {
        "noise_variance": NOISE_STD**2,
        "noise_std": NOISE_STD,
        "rkhs_bound": RKHS_BOUND,
        "delta": DELTA,
        "seed": case.seed,
    }
    if case.method in WITH_HORIZON:
        options["horizon"] = horizon
    strategy = getattr(bx.algorithms, case.method)(problem.domain, problem.kernel, **options)
    trace = bx.simulate(strategy, problem, horizon, seed=case.seed)
    return strategy, problem, problem.gap(trace.X)


def problem_of(instance: Instance, seed: int) -> GrowthFunction:
    """The function of a seed, which has its own maximiser."""
    nu, growth, dim = instance
    kernel = MaternKernel(nu=nu, ard_num_dims=dim).double()
    kernel.lengthscale = torch.tensor(_LENGTHSCALES[:dim], dtype=torch.float64)
    box = bx.Box(lower=_LOWER[:dim], upper=_UPPER[:dim])
    place = torch.from_numpy(np.random.default_rng([seed, dim]).uniform(*_INNER, dim))
    center = box.lower + place * (box.upper - box.lower)
    return GrowthFunction(kernel, box, growth, NORM, center=center, noise_std=NOISE_STD)


def _of_levels(strategy: bx.Strategy, problem: GrowthFunction) -> Row:
    """What became of the levels of breadthwise exploration; empty for other methods."""
    names = ("before_elimination", "last_level", "last_cells", "last_evaluations", "best_cell_kept")
    if not isinstance(strategy, BreadthwiseExploration):
        return dict.fromkeys(names, "")
    last, best = strategy.levels[-1], problem.optimizer
    inside = (last.lower <= best).all(dim=-1) & (best <= last.upper).all(dim=-1)
    asked = len(strategy.history.trials)
    eliminating = [
        level.refinement.step - 1
        for level in strategy.levels
        if level.refinement is not None and not bool(level.refinement.kept.all())
    ]
    values = (
        eliminating[0] if eliminating else asked,
        last.depth,
        last.num_cells,
        last.num_evaluations,
        bool(inside.any()),
    )
    return dict(zip(names, values, strict=True))
