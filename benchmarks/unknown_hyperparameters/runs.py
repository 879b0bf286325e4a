"""Runs with unknown hyperparameters: the experiments, and one run of one method on one of them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems import (
    CorrelatedMode,
    HighestHill,
    HyperparameterProblem,
    LengthscalePeak,
    RepeatedSignal,
)
from botorch_ext.strategies import HyperparameterElimination, RandomSearch
from botorch_ext.widths import BayesFinite, Constant, Scaled, SelfNormalized, Width

# In all experiments of Ziomek et al. 2024.
DELTA = 0.1
# What theory is multiplied with where it is called scaled.
_FACTOR = 0.3

HE, MLE, EXPECTED = "HE-GP-UCB", "MLE-UCB", "ExpectedUCB"
A_GP, LB_GP, RANDOM = "A-GP-UCB", "LB-GP-UCB", "random"
_EVERYWHERE = (HE, MLE, EXPECTED, RANDOM)
METHODS: tuple[str, ...] = (HE, MLE, EXPECTED, A_GP, LB_GP, RANDOM)

# From the norm bound of a model, which A-GP-UCB changes, to its width.
_WidthOf = Callable[[float], Width]


def _theory(problem: HyperparameterProblem) -> _WidthOf:
    # As he_gp_ucb has it: half of delta is spent on its tests. The same for all methods.
    return lambda bound: SelfNormalized(bound, problem.noise_std, DELTA / 2)


def _bayesian(problem: HyperparameterProblem) -> Width:
    return BayesFinite(len(problem.domain.like), DELTA / 2)


@dataclass(frozen=True)
class Bound:
    """A confidence width by its name in the tables.

    Args:
        name: As it is called.
        of: From the problem and the factor by which a norm bound grew to the width.
    """

    name: str
    of: Callable[[HyperparameterProblem, float], Width]


def _constant() -> Bound:
    return Bound("constant 3", lambda problem, growth: Constant(3.0))


def _theoretical(rkhs_bound: float, factor: float = 1.0) -> Bound:
    def of(problem: HyperparameterProblem, growth: float) -> Width:
        width = _theory(problem)(rkhs_bound * growth)
        return width if factor == 1 else Scaled(width, factor)

    return Bound(f"{_times(factor)}theory, B = {rkhs_bound:g}", of)


def _of_sample(factor: float = 1.0) -> Bound:
    def of(problem: HyperparameterProblem, growth: float) -> Width:
        return _bayesian(problem) if factor == 1 else Scaled(_bayesian(problem), factor)

    return Bound(f"{_times(factor)}Bayesian", of)


def _times(factor: float) -> str:
    return "" if factor == 1 else f"{factor:g} x "


@dataclass(frozen=True)
class Experiment:
    """One of the experiments.

    Args:
        title: For tables and pictures.
        problem: From a seed.
        bounds: The widths, the main one first.
        methods: What is compared.
        horizon: T, after the initial points.
        seeds: In Ziomek et al. 2024.
        num_initial: Uniform i.i.d. points, the same for all methods.
        shuffled: Whether the candidate models, and the rows of the domain, are in another order for
            each seed: so ties are broken at random, for all methods in the same way.
    """

    title: str
    problem: Callable[[int], HyperparameterProblem]
    bounds: tuple[Bound, ...]
    methods: tuple[str, ...] = _EVERYWHERE
    horizon: int = 50
    seeds: int = 50
    num_initial: int = 0
    shuffled: bool = False

    @property
    def widths(self) -> list[str]:
        """The names of the widths."""
        return [bound.name for bound in self.bounds]


_IN_A: dict[str, Any] = {"methods": METHODS, "num_initial": 3}
_BOUNDS_OF_A = (_constant(), _theoretical(1), _theoretical(5), _theoretical(5, _FACTOR))
_BOUNDS_OF_B = (_constant(), _theoretical(5), _theoretical(5, _FACTOR))
_MODE = CorrelatedMode()
# The norm of the function, rounded up to one digit.
NORM_OF_C = math.ceil(10 * _MODE.norm) / 10
_HILLS = HighestHill(0).domain

EXPERIMENTS: Mapping[str, Experiment] = {
    "a": Experiment(
        "(a) lengthscale, noise 0.05", lambda seed: LengthscalePeak(), _BOUNDS_OF_A, **_IN_A
    ),
    "a, noise 0.01": Experiment(
        "(a) lengthscale, noise 0.01",
        lambda seed: LengthscalePeak(noise_std=0.01),
        _BOUNDS_OF_A,
        **_IN_A,
    ),
    "a, wide": Experiment(
        "(a) lengthscale, peak of variance 0.08",
        lambda seed: LengthscalePeak(peak_std=math.sqrt(0.08)),
        _BOUNDS_OF_A,
        **_IN_A,
    ),
    "b": Experiment("(b) period", lambda seed: RepeatedSignal(), _BOUNDS_OF_B, num_initial=5),
    "b, shared": Experiment(
        "(b) period, one lengthscale",
        lambda seed: RepeatedSignal(shared_lengthscale=True),
        _BOUNDS_OF_B,
        num_initial=5,
    ),
    "c": Experiment(
        "(c) decomposition",
        lambda seed: CorrelatedMode(_with_shuffled_rows(_MODE.domain, seed)),
        (_constant(), _theoretical(NORM_OF_C), _theoretical(NORM_OF_C, _FACTOR)),
        seeds=100,
        shuffled=True,
    ),
    "d": Experiment(
        "(d) prior mean, hill of 10",
        lambda seed: HighestHill(seed, _with_shuffled_rows(_HILLS, seed)),
        (_of_sample(), _of_sample(_FACTOR)),
        horizon=100,
        shuffled=True,
    ),
    "d, low": Experiment(
        "(d) prior mean, hill of 4",
        lambda seed: HighestHill(seed, _with_shuffled_rows(_HILLS, seed), height=4.0),
        (_of_sample(), _of_sample(_FACTOR)),
        horizon=100,
        shuffled=True,
    ),
}
# The four of Ziomek et al. 2024, figure 2.
OF_THE_PAPER = ("a", "b", "c", "d")


def _with_shuffled_rows(domain: bx.Domain, seed: int) -> bx.FiniteSet:
    order = np.random.default_rng([seed, 2]).permutation(len(domain.like))
    return bx.FiniteSet(domain.like[torch.from_numpy(order)])


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
