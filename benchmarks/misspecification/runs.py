"""Runs under misspecification: the lock-out instance and generic perturbations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpytorch.kernels import Kernel
from tqdm import tqdm

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from botorch_ext.problems import Perturbed, RKHSFunction, adversarial, lock_out, rough
from botorch_ext.studies.traces import Trace

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
        instances: Functions for each d and eps, half of them with each kind of perturbation.
        lock_out_seeds: Seeds of the lock-out instance.
    """

    horizon: int = 300
    num_candidates: int = 500
    dims: tuple[int, ...] = (1, 2, 4)
    instances: int = 10
    lock_out_seeds: int = 10


def lock_out_rows(
    setting: Setting, options: Options
) -> tuple[list[Row], dict[str, list[list[float]]]]:
    """A row for each run on the lock-out instance, and for each method its regret per step."""
    problem = lock_out()
    rows: list[Row] = []
    curves: dict[str, list[list[float]]] = {}
    for method, name in NAMES.items():
        for i in tqdm(range(setting.lock_out_seeds), desc=f"lock-out, {name}", leave=False):
            seed = options.seed + i
            strategy = _strategy(
                method,
                problem,
                problem.misspecification,
                problem.horizon,
                kernel=problem.kernel,
                noise_variance=problem.noise_variance,
                rkhs_bound=problem.rkhs_bound,
                delta=problem.delta,
                seed=seed,
            )
            trace = bx.simulate(strategy, problem, problem.horizon, seed=seed)
            curves.setdefault(name, []).append(trace.regret.tolist())
            told = problem.misspecification if method == "ec_gp_ucb" else 0.0
            row = _row("lock-out", 2, problem.misspecification, told, "lock-out", method, seed)
            rows.append(row | _scores(trace))
    return rows, curves


def generic_rows(setting: Setting, options: Options) -> list[Row]:
    """A row for each run on a generic perturbation."""
    cases = list(_cases(setting))
    rows = []
    for dim, epsilon, method, told, i in tqdm(cases, desc="generic perturbations", unit="run"):
        seed = options.seed + i
        problem, kernel = generic_problem(dim, epsilon, i, seed, setting.num_candidates)
        strategy = _strategy(
            method,
            problem,
            told,
            setting.horizon,
            kernel=kernel,
            noise_variance=NOISE_STD**2,
            rkhs_bound=RKHS_BOUND,
            seed=seed,
        )
        trace = bx.simulate(strategy, problem, setting.horizon, seed=seed)
        values = problem(problem.domain.like)
        kind = "adversarial" if i % 2 else "rough"
        row = _row("generic", dim, epsilon, told, kind, method, seed) | _scores(trace)
        rows.append(row | {"uniform_regret_per_step": float(values.max() - values.mean())})
    return rows


def generic_problem(
    dim: int,
    epsilon: float,
    number: int,
    seed: int,
    num_candidates: int = 500,
    noise_std: float = NOISE_STD,
) -> tuple[Perturbed, Kernel]:
    """A function of the RKHS plus a perturbation that was not made to defeat a method.

    Args:
        dim: d.
        epsilon: eps.
        number: Even ones have fast cosines, odd ones a dent at the maximiser.
        seed: Of the candidates, the function and the cosines.
        num_candidates: N, Sobol points of [0, 1]^d.
        noise_std: sigma.

    Returns:
        The problem, and the kernel of f.
    """
    kernel = rbf(0.3 * math.sqrt(dim))
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    domain = bx.FiniteSet(box.sample(num_candidates, seed))
    f = RKHSFunction.random(domain, kernel, norm=RKHS_BOUND, noise_std=noise_std, seed=seed)
    dent = number % 2 == 1
    perturbation = adversarial(f, epsilon) if dent else rough(dim, epsilon, seed=seed)
    return Perturbed(f, perturbation, epsilon), kernel


def _cases(setting: Setting) -> Iterator[tuple[int, float, str, float, int]]:
    """Dimension, true eps, method, the eps it is told, number of the instance."""
    for dim in setting.dims:
        for i in range(setting.instances):
            for epsilon in EPSILONS:
                yield dim, epsilon, "gp_ucb", 0.0, i
                yield dim, epsilon, "ec_gp_ucb", epsilon, i
                yield dim, epsilon, "phased", 0.0, i
            for told in EPSILONS[1:]:  # the model is right and the user is cautious
                yield dim, 0.0, "ec_gp_ucb", told, i


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


def _scores(trace: Trace) -> Row:
    return {
        "horizon": len(trace.regret),
        "cumulative_regret": float(trace.regret.sum()),
        "regret_per_step": float(trace.regret.mean()),
        "best_arm_played": int((trace.regret < 1e-9).sum()),
        "uniform_regret_per_step": "",
    }
