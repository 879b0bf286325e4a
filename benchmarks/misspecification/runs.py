"""Runs under misspecification: the lock-out instance and generic perturbations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

from gpytorch.kernels import Kernel
from torch import Tensor
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from botorch_ext.problems import Perturbed, RKHSFunction, adversarial, lock_out, rough

EPSILONS = (0.0, 0.05, 0.1, 0.2)
NAMES = {
    "gp_ucb": "GP-UCB",
    "ec_gp_ucb": "EC-GP-UCB",
    "phased": "Phased GP Uncertainty Sampling",
}

RKHS_BOUND = 2.0
NOISE_STD = 0.1


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        horizon: T, on generic perturbations.
        num_candidates: N, Sobol points of [0, 1]^d.
        dims: The dimensions d.
        instances: Functions for each d and eps, half of them with each kind of perturbation, and
            seeds.
        lock_out_seeds: Seeds of the lock-out instance.
    """

    horizon: int = 300
    num_candidates: int = 500
    dims: tuple[int, ...] = (1, 2, 4)
    instances: int = 100
    lock_out_seeds: int = 100


def lock_out_rows(setting: Setting, options: Options) -> tuple[list[Row], dict[str, Tensor]]:
    """A row for each run on the lock-out instance, and for each method its regret per step."""
    problem = lock_out()
    told = {method: problem.misspecification if method == "ec_gp_ucb" else 0.0 for method in NAMES}
    given: dict[str, Any] = {
        "kernel": problem.kernel,
        "noise_variance": problem.noise_variance,
        "rkhs_bound": problem.rkhs_bound,
        "delta": problem.delta,
    }
    methods = {
        method: _strategy(method, problem, problem.misspecification, problem.horizon, **given)
        for method in NAMES
    }
    seeds = range(options.seed, options.seed + setting.lock_out_seeds)
    found = bx.replicate(methods, problem, problem.horizon, seeds=seeds)
    rows = []
    for method, traces in found.items():
        case = "lock-out", 2, problem.misspecification, told[method]
        for seed, regret in zip(seeds, traces.regret, strict=True):
            rows.append(_row(*case, "lock-out", method, seed) | _scores(regret))
    return rows, {NAMES[method]: traces.regret for method, traces in found.items()}


def generic_rows(setting: Setting, options: Options) -> list[Row]:
    """A row for each run on a generic perturbation, whose candidates are the same in all runs."""
    seeds = range(options.seed, options.seed + setting.instances)
    rows = []
    for dim, epsilon in tqdm(list(product(setting.dims, EPSILONS)), desc="generic", unit="cell"):
        kernel, box = rbf(0.3 * math.sqrt(dim)), bx.Box([[0.0] * dim, [1.0] * dim])
        domain = bx.FiniteSet(box.sample(setting.num_candidates, options.seed))
        problems = [generic_problem(dim, epsilon, seed, seed, domain)[0] for seed in seeds]
        given: dict[str, Any] = {
            "kernel": kernel,
            "noise_variance": NOISE_STD**2,
            "rkhs_bound": RKHS_BOUND,
        }
        told = [0.0, *EPSILONS[1:]] if epsilon == 0 else [epsilon]
        cases = [("gp_ucb", 0.0), *(("ec_gp_ucb", own) for own in told), ("phased", 0.0)]
        for method, own in cases:
            strategy = _strategy(method, problems[0], own, setting.horizon, **given)
            traces = bx.replicate({method: strategy}, problems, setting.horizon, seeds=seeds)
            for seed, problem, regret in zip(seeds, problems, traces[method].regret, strict=True):
                kind, values = "adversarial" if seed % 2 else "rough", problem(domain.points)
                row = _row("generic", dim, epsilon, own, kind, method, seed) | _scores(regret)
                uniform = float(values.max() - values.mean())
                rows.append(row | {"uniform_regret_per_step": uniform})
    return rows


def generic_problem(
    dim: int,
    epsilon: float,
    number: int,
    seed: int,
    domain: bx.FiniteSet | None = None,
    noise_std: float = NOISE_STD,
) -> tuple[Perturbed, Kernel]:
    """A function of the RKHS plus a perturbation that was not made to defeat a method.

    Args:
        dim: d.
        epsilon: eps.
        number: Even ones have fast cosines, odd ones a dent at the maximiser.
        seed: Of the candidates, the function and the cosines.
        domain: The candidates; None takes 500 Sobol points of [0, 1]^d.
        noise_std: sigma.

    Returns:
        The problem, and the kernel of f.
    """
    kernel = rbf(0.3 * math.sqrt(dim))
    if domain is None:
        domain = bx.FiniteSet(bx.Box([[0.0] * dim, [1.0] * dim]).sample(500, seed))
    f = RKHSFunction.random(domain, kernel, norm=RKHS_BOUND, noise_std=noise_std, seed=seed)
    dent = number % 2 == 1
    perturbation = adversarial(f, epsilon) if dent else rough(dim, epsilon, seed=seed)
    return Perturbed(f, perturbation, epsilon), kernel


def _strategy(
    method: str, problem: Perturbed, told: float, horizon: int, **options: Any
) -> bx.Strategy:
    options |= {"noise_std": problem.noise_std}
    match method:
        case "gp_ucb":
            return bx.algorithms.gp_ucb(problem.domain, **options)
        case "ec_gp_ucb":
            return bx.algorithms.ec_gp_ucb(problem.domain, misspecification=told, **options)
    return bx.algorithms.phased_uncertainty_sampling(problem.domain, horizon=horizon, **options)


def _row(
    problem: str, dim: int, epsilon: float, told: float, kind: str, method: str, seed: int
) -> Row:
    return {
        "problem": problem,
        "dim": dim,
        "misspecification": epsilon,
        "told": told,
        "perturbation": kind,
        "method": method,
        "seed": seed,
    }


def _scores(regret: Tensor) -> Row:
    return {
        "horizon": len(regret),
        "cumulative_regret": float(regret.sum()),
        "regret_per_step": float(regret.mean()),
        "best_arm_played": int((regret < 1e-9).sum()),
        "uniform_regret_per_step": "",
    }
