"""Experiments of Ziomek et al. 2024: problems, widths and methods, and variants of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import botorch_ext as bx
from botorch_ext.problems import (
    CorrelatedMode,
    HighestHill,
    HyperparameterProblem,
    LengthscalePeak,
    RepeatedSignal,
)
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
        num_initial: Uniform i.i.d. points, the same for all methods.
        shuffled: Whether the candidate models, and the rows of the domain, are in another order for
            each seed: so ties are broken at random, for all methods in the same way.
    """

    title: str
    problem: Callable[[int], HyperparameterProblem]
    bounds: tuple[Bound, ...]
    methods: tuple[str, ...] = _EVERYWHERE
    horizon: int = 50
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
