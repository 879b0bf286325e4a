"""Runs with regret balancing."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from botorch_ext.problems import (
    LockOut,
    Perturbed,
    Problem,
    RKHSFunction,
    adversarial,
    lock_out,
    rough,
)
from botorch_ext.strategies import BalancingTest
from botorch_ext.studies.traces import Trace

EPSILONS = (0.0, 0.05, 0.1, 0.2)
# What the bases of the heuristic masters are told.
LEVELS = (0.4, 0.2, 0.1, 0.05)
NAMES = {
    "gp_ucb": "GP-UCB",
    "ec_gp_ucb": "EC-GP-UCB, told eps",
    "published": "balancing, published",
    "heuristic": "balancing, c1 = c2 = 0.1",
    "bolder": "balancing, c1 = c2 = 0.01, c = 0.1",
    "with_zero": "balancing, c1 = c2 = 0.1, a base told 0",
}
BALANCING = ("published", "heuristic", "bolder", "with_zero")
_CONSTANTS: dict[str, dict[str, Any]] = {
    "published": {},
    "heuristic": {"misspecifications": LEVELS, "c1": 0.1, "c2": 0.1},
    "bolder": {"misspecifications": LEVELS, "c1": 0.01, "c2": 0.01, "c": 0.1},
    "with_zero": {"misspecifications": (*LEVELS, 0.0), "c1": 0.1, "c2": 0.1},
}

_RKHS_BOUND = 2.0
_NOISE_STD = 0.1
# The noise is Gaussian, so any range can be left; rewards that do are refused and never clipped.
# Six standard deviations are exceeded once in 10^9 observations.
_NOISE_ROOM = 6


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        horizon: T, on generic perturbations; on the lock-out instance it is the instance's own.
        num_actions: How many actions there are at each step, new ones each time.
        dims: The dimensions d.
        instances: Functions for each d and eps, half of them with each kind of perturbation.
        lock_out_seeds: Seeds of the lock-out instance.
        epsilons: The true eps.
    """

    horizon: int = 300
    num_actions: int = 100
    dims: tuple[int, ...] = (1, 2, 4)
    instances: int = 10
    lock_out_seeds: int = 10
    epsilons: tuple[float, ...] = EPSILONS


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        problem: "generic" or "lock-out".
        method: One of `NAMES`.
        dim: d.
        misspecification: The true eps.
        instance: The number of the instance.
        seed: Of everything random in it.
        horizon: T.
        num_actions: How many there are at each step.
    """

    problem: str
    method: str
    dim: int
    misspecification: float
    instance: int
    seed: int
    horizon: int
    num_actions: int


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    Args:
        row: Its line in the CSV.
        regret: The regret of each step.
        tests: The tests of a master.
    """

    row: Row
    regret: list[float]
    tests: list[BalancingTest]


def cases(setting: Setting, seed: int) -> Iterator[Case]:
    """All runs, the lock-out instance first."""
    size = setting.num_actions
    instance = lock_out()
    for method in NAMES:
        for i in range(setting.lock_out_seeds):
            eps = instance.misspecification
            yield Case("lock-out", method, 2, eps, i, seed + i, instance.horizon, 3)
    for dim in setting.dims:
        for i in range(setting.instances):
            for eps in setting.epsilons:
                for method in NAMES:
                    yield Case("generic", method, dim, eps, i, seed + i, setting.horizon, size)


def run(case: Case) -> Outcome:
    """Plays one case."""
    if case.problem == "lock-out":
        return _run_lock_out(case)
    kernel, f, values = _function(case.dim, case.seed)
    eps = case.misspecification
    if case.instance % 2:
        kind, perturbation = "adversarial", adversarial(f, eps)
    else:
        kind, perturbation = "rough", rough(case.dim, eps, seed=case.seed)
    problem = Perturbed(f, perturbation, eps)
    # The same for every eps: f, the largest perturbation, and the noise.
    room = max(EPSILONS) + _NOISE_ROOM * _NOISE_STD
    reward_range = float(values.min()) - room, float(f.optimal_value or 0.0) + room
    generator = torch.Generator().manual_seed(case.seed)
    shape = (case.horizon, case.num_actions, case.dim)
    actions = torch.rand(shape, generator=generator, dtype=torch.float64)
    strategy = _strategy(
        case,
        problem.domain,
        kernel,
        reward_range,
        noise_variance=_NOISE_STD**2,
        noise_std=_NOISE_STD,
        rkhs_bound=_RKHS_BOUND,
        seed=case.seed,
    )
    return _outcome(case, kind, strategy, problem, actions, reward_range)


def _run_lock_out(case: Case) -> Outcome:
    problem: LockOut = lock_out()
    points = problem.domain.like  # all three arms, at every step
    values, room = problem(points), _NOISE_ROOM * problem.noise_std
    reward_range = float(values.min()) - room, float(values.max()) + room
    strategy = _strategy(
        case,
        problem.domain,
        problem.kernel,
        reward_range,
        noise_variance=problem.noise_variance,
        noise_std=problem.noise_std,
        rkhs_bound=problem.rkhs_bound,
        delta=problem.delta,
        seed=case.seed,
    )
    actions = points.expand(case.horizon, -1, -1)
    return _outcome(case, "lock-out", strategy, problem, actions, reward_range)


@functools.lru_cache(maxsize=1)
def _function(dim: int, seed: int) -> tuple[RBFKernel, RKHSFunction, Tensor]:
    """The kernel, f with its maximum known, and values of f all over the box."""
    kernel = RBFKernel().double()
    kernel.lengthscale = 0.3 * math.sqrt(dim)
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    f = RKHSFunction.random(box, kernel, norm=_RKHS_BOUND, noise_std=_NOISE_STD, seed=seed)
    return kernel, f, f(box.sample(8192, seed=0))


def _strategy(
    case: Case, domain: Any, kernel: Any, reward_range: tuple[float, float], **options: Any
) -> bx.Strategy:
    match case.method:
        case "gp_ucb":
            return bx.algorithms.gp_ucb(domain, kernel, **options)
        case "ec_gp_ucb":
            told = case.misspecification
            return bx.algorithms.ec_gp_ucb(domain, kernel, misspecification=told, **options)
    return bx.algorithms.regret_balancing(
        domain,
        kernel,
        horizon=case.horizon,
        reward_range=reward_range,
        **_CONSTANTS[case.method],
        **options,
    )


def _outcome(
    case: Case,
    kind: str,
    strategy: bx.Strategy,
    problem: Problem,
    actions: Tensor,
    reward_range: tuple[float, float],
) -> Outcome:
    trace = bx.simulate(strategy, problem, case.horizon, actions=list(actions), seed=case.seed)
    values = problem(actions.reshape(-1, case.dim)).view(len(actions), -1)
    row: Row = {
        "problem": case.problem,
        "dim": case.dim,
        "misspecification": case.misspecification,
        "perturbation": kind,
        "method": case.method,
        "seed": case.seed,
        "horizon": case.horizon,
        "cumulative_regret": float(trace.regret.sum()),
        "regret_per_step": float(trace.regret.mean()),
        "uniform_regret_per_step": float((values.amax(dim=-1) - values.mean(dim=-1)).mean()),
        "range_low": reward_range[0],
        "range_high": reward_range[1],
    }
    row |= _of_bases(trace)
    is_master = isinstance(strategy, bx.RegretBalancing)
    return Outcome(row, trace.regret.tolist(), strategy.tests if is_master else [])


def _of_bases(trace: Trace) -> Row:
    """What the bases of a master did, a number for each between blanks; empty for other methods.
    ``eliminated`` has "base:observations" for each that went."""
    strategy, empty = trace.strategy, ""
    if not isinstance(strategy, bx.RegretBalancing):
        names = ("max_information_gain", "told", "plays", "base_regret", "bound", "eliminated")
        return dict.fromkeys(names, empty)
    bounds: Any = strategy.bounds
    trials = [
        [trial.id for trial in strategy.history.trials if trial.info["base"] == base]
        for base in range(len(bounds))
    ]
    told = [f"{bound.misspecification:.4g}" for bound in bounds]
    plays = [str(len(ids)) for ids in trials]
    regret = [f"{float(trace.regret[ids].sum()):.4f}" for ids in trials]
    bound = [f"{of(len(ids)):.4f}" for of, ids in zip(bounds, trials, strict=True)]
    return {
        "max_information_gain": bounds[0].max_information_gain,
        "told": " ".join(told),
        "plays": " ".join(plays),
        "base_regret": " ".join(regret),
        "bound": " ".join(bound),
        "eliminated": " ".join(f"{base}:{step}" for base, step in strategy.eliminated.items()),
    }
