"""Runs with unknown hyperparameters: one run of one method on one experiment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
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
    LB_GP,
    METHODS,
    RANDOM,
)
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems import HyperparameterProblem
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


def run_cases(cases: Sequence[Case]) -> list[Row]:
    """Plays one method with several seeds.

    All seeds are moved forward together where they share the order of rows and models, and the
    models do not grow; else they are simulated one by one.

    Args:
        cases: Cases that differ in their seeds alone.

    Returns:
        For each case what `run_case` returns.
    """
    start, case = time.perf_counter(), cases[0]
    experiment = EXPERIMENTS[case.experiment]
    if experiment.shuffled or case.method == LB_GP:
        return [run_case(case) for case in cases]
    problem = experiment.problem(case.seed)
    strategy = _strategy(case, problem, list(range(len(problem.names))), None)
    initial = [_initial(problem, experiment.num_initial, case.seed) for case in cases]
    rows, values = (torch.stack(each) for each in zip(*initial, strict=True))
    options: dict[str, Any] = {"seeds": [case.seed for case in cases], "initial": (rows, values)}
    with warnings.catch_warnings():
        # Counted below.
        warnings.simplefilter("ignore", AllModelsRejectedWarning)
        traces = bx.replicate({"a": strategy}, problem, case.horizon, **options)["a"]
    seconds, found = (time.perf_counter() - start) / len(cases), []
    for run, case in enumerate(cases):
        played = None if traces.models is None else traces.models[run].tolist()
        gone, all_rejected = None, False
        if traces.eliminated is not None and traces.all_rejected_at is not None:
            counts = enumerate(traces.eliminated[run].tolist())
            gone = {model: count - rows.shape[1] for model, count in counts if count >= 0}
            all_rejected = int(traces.all_rejected_at[run]) >= 0
        of_models = _of_models(case, problem, played, gone, all_rejected)
        found.append(_row(case, problem, traces.regret[run], rows[run], seconds, of_models))
    return found


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
    order = list(range(len(problem.names)))
    if experiment.shuffled:
        order = np.random.default_rng([case.seed, 1]).permutation(len(order)).tolist()
    rows, values = _initial(problem, experiment.num_initial, case.seed)
    initial = (problem.domain.like[rows], values) if len(rows) else None
    with warnings.catch_warnings():
        # Counted below.
        warnings.simplefilter("ignore", AllModelsRejectedWarning)
        strategy = _strategy(case, problem, order, initial)
        trace = bx.simulate(strategy, problem, case.horizon, seed=case.seed)
    played = gone = None
    if len(getattr(strategy, "names", ())) == len(order):
        played = [order[trial.info["model"]] for trial in strategy.history.trials]
    if isinstance(strategy, HyperparameterElimination):
        gone = {order[id]: count - len(rows) for id, count in strategy.rejected.items()}
    all_rejected = getattr(strategy, "all_rejected_at", None) is not None
    of_models = _of_models(case, problem, played, gone, all_rejected)
    return _row(case, problem, trace.regret, rows, time.perf_counter() - start, of_models)


def _initial(problem: HyperparameterProblem, num_points: int, seed: int) -> tuple[Tensor, Tensor]:
    """The rows of uniform i.i.d. members of the set, and their noisy values."""
    rng = np.random.default_rng([seed, 0])
    points = problem.domain.like
    rows = torch.from_numpy(rng.integers(len(points), size=num_points))
    noise = problem.noise_std * torch.from_numpy(rng.standard_normal(num_points))
    return rows, problem(points[rows]) + noise


def _row(
    case: Case,
    problem: HyperparameterProblem,
    regret: Tensor,
    initial: Tensor,
    seconds: float,
    of_models: Row,
) -> Row:
    """The row of a run from its regret and the rows of its initial points."""
    best = regret.cummin(dim=0).values
    if len(initial):
        values = problem(problem.domain.like)
        best = best.clamp_max(float(values.max() - values[initial].max()))
    row: Row = {name: getattr(case, name) for name in Case.__annotations__}
    row |= {
        "cumulative_regret": float(regret.sum()),
        "regret_of_first_half": float(regret[: case.horizon // 2].sum()),
        "best_regret": float(best[-1]),
        "seconds": round(seconds, 4),
    }
    return row | of_models | {"curve": regret.tolist(), "best_curve": best.tolist()}


def _strategy(
    case: Case,
    problem: HyperparameterProblem,
    order: list[int],
    initial: tuple[Tensor, Tensor] | None,
) -> bx.Strategy:
    bounds = EXPERIMENTS[case.experiment].bounds
    (bound,) = [bound for bound in bounds if bound.name == case.width]
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
    case: Case,
    problem: HyperparameterProblem,
    played: list[int] | None,
    gone: dict[int, int] | None,
    all_rejected: bool,
) -> Row:
    """What became of the models.

    Args:
        case: The run.
        problem: Its problem.
        played: The model of each step; None if the method has none of these models.
        gone: The last step of each eliminated model; None if the method eliminates none.
        all_rejected: Whether the model that is left was refuted too.
    """
    row: Row = {
        "true_model_rejected": "",
        "wrong_models_rejected": "",
        "first_rejection": "",
        "all_rejected": "",
        "true_model_played": "",
        "played": played or [],
        "rejected": [],
    }
    true = problem.true_model
    if played is not None and true is not None:
        row["true_model_played"] = played.count(true) / case.horizon
    if gone is None:
        return row
    row["rejected"] = [gone.get(model, case.horizon) for model in range(len(problem.names))]
    row["wrong_models_rejected"] = len(gone.keys() - {true})
    row["first_rejection"] = min(gone.values(), default="")
    row["all_rejected"] = all_rejected
    if true is not None:
        row["true_model_rejected"] = true in gone
    return row
