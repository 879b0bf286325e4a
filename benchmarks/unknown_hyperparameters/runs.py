"""Runs with unknown hyperparameters: one run of one method on one experiment."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.unknown_hyperparameters.experiments import (
    DELTA,
    EXPERIMENTS,
    METHODS,
    RANDOM,
    Bound,
)
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems import (
    HyperparameterProblem,
)
from botorch_ext.strategies import HyperparameterElimination, RandomSearch


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        experiment: A key of `EXPERIMENTS`.
        width: The name of one of its widths.
        method: One of its methods.
        seed: Of noise, initial points, order of the models and, in (d), the function.
        horizon: T, after the initial points.
    """

    experiment: str
    width: str
    method: str
    seed: int
    horizon: int


def run_case(case: Case) -> Row:
    """Plays one method.

    Returns:
        The case, its scores, and three lists that are no columns of a table: ``curve`` and
        ``best_curve``, the regret of each step and the least one so far, initial points included;
        ``played`` and ``rejected``, the model of each step, and each model's last step (T where it
        stays), by their positions in the paper's order.
    """
    start = time.perf_counter()
    experiment = EXPERIMENTS[case.experiment]
    problem = experiment.problem(case.seed)
    (bound,) = [bound for bound in experiment.bounds if bound.name == case.width]
    order = list(range(len(problem.names)))
    if experiment.shuffled:
        order = np.random.default_rng([case.seed, 1]).permutation(len(order)).tolist()
    initial = _initial(problem, experiment.num_initial, case.seed)
    with warnings.catch_warnings():
        # Counted below.
        warnings.simplefilter("ignore", AllModelsRejectedWarning)
        strategy = _strategy(case, problem, bound, order, initial)
        trace = bx.simulate(strategy, problem, case.horizon, seed=case.seed)
    best = trace.simple_regret
    if initial is not None:
        values = problem(problem.domain.like)
        best = best.clamp_max(float(values.max() - problem(initial[0]).max()))
    row: Row = {name: getattr(case, name) for name in Case.__annotations__}
    row |= {
        "cumulative_regret": float(trace.regret.sum()),
        "regret_of_first_half": float(trace.regret[: case.horizon // 2].sum()),
        "best_regret": float(best[-1]),
        "seconds": round(time.perf_counter() - start, 3),
    }
    return (
        row
        | _of_models(strategy, problem, order, case.horizon)
        | {
            "curve": trace.regret.tolist(),
            "best_curve": best.tolist(),
        }
    )


def _initial(
    problem: HyperparameterProblem, num_points: int, seed: int
) -> tuple[Tensor, Tensor] | None:
    """Uniform i.i.d. members of the set and their noisy values."""
    if num_points == 0:
        return None
    rng = np.random.default_rng([seed, 0])
    points = problem.domain.like
    X = points[torch.from_numpy(rng.integers(len(points), size=num_points))]
    return X, problem(X) + problem.noise_std * torch.from_numpy(rng.standard_normal(num_points))


def _strategy(
    case: Case,
    problem: HyperparameterProblem,
    bound: Bound,
    order: list[int],
    initial: tuple[Tensor, Tensor] | None,
) -> bx.Strategy:
    domain, noise_std = problem.domain, problem.noise_std
    if case.method == RANDOM:
        return RandomSearch(domain, case.seed, initial=initial)
    models = problem.candidates(order=order)
    common: dict[str, Any] = {"delta": DELTA, "seed": case.seed, "initial": initial}
    width = bound.of(problem, 1.0)
    match case.method:
        case "HE-GP-UCB":
            return bx.algorithms.he_gp_ucb(
                domain, models, noise_std=noise_std, width=width, **common
            )
        case "credible":
            return bx.algorithms.credible_ucb(domain, models, width=width, **common)
        case "MLE-UCB":
            return bx.algorithms.mle_ucb(domain, models, width=width, **common)
        case "ExpectedUCB":
            return bx.algorithms.expected_ucb(domain, models, width=width, **common)
        case "A-GP-UCB":
            scales = models.lengthscales_of
            assert scales is not None
            longest = float(scales.max())
            widths = [
                bound.of(problem, (longest / scale) ** domain.dim) for scale in scales.tolist()
            ]
            return bx.algorithms.a_gp_ucb(domain, models, width=widths, **common)
        case "LB-GP-UCB":
            scales = models.lengthscales_of
            assert scales is not None
            growing = CandidateModels.growing(
                models.single(0).kernel, float(scales.max()), noise_std**2, dim=domain.dim
            )
            return bx.algorithms.lb_gp_ucb(
                domain, growing, noise_std=noise_std, width=width, **common
            )
    raise ValueError(f"method must be one of {METHODS}, got {case.method!r}")


def _of_models(
    strategy: bx.Strategy, problem: HyperparameterProblem, order: list[int], horizon: int
) -> Row:
    row: Row = {
        "true_model_rejected": "",
        "wrong_models_rejected": "",
        "first_rejection": "",
        "all_rejected": "",
        "true_model_played": "",
        "played": [],
        "rejected": [],
    }
    own = len(getattr(strategy, "names", ())) == len(order)
    if isinstance(strategy, RandomSearch) or not own:
        return row
    played = [order[trial.info["model"]] for trial in strategy.history.trials]
    row["played"] = played
    if problem.true_model is not None:
        row["true_model_played"] = played.count(problem.true_model) / horizon
    if not isinstance(strategy, HyperparameterElimination):
        return row
    before = 0 if strategy.initial is None else len(strategy.initial[0])
    last = [horizon] * len(order)
    for id, t in strategy.rejected.items():
        last[order[id]] = t - before
    gone = {i for i, step in enumerate(last) if order.index(i) in strategy.rejected}
    row["rejected"] = last
    row["wrong_models_rejected"] = len(gone - {problem.true_model})
    row["first_rejection"] = min((last[i] for i in gone), default="")
    row["all_rejected"] = strategy.all_rejected_at is not None
    if problem.true_model is not None:
        row["true_model_rejected"] = problem.true_model in gone
    return row
