"""Problems of the insured benchmark: each by its name and a seed, with what methods are told."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from gpytorch.kernels import Kernel, LinearKernel

import botorch_ext as bx
from benchmarks.common.command_line import DATA_FOLDER
from benchmarks.common.kernels import matern, rbf
from benchmarks.delayed_feedback import objectives, runs
from benchmarks.insured.lock_outs import LockOutBox, LockOutInContexts
from benchmarks.misspecification.runs import NOISE_STD, RKHS_BOUND, generic_problem
from botorch_ext.problems import (
    ContextualRKHSFunction,
    LinearArms,
    LockOut,
    NoisyLockOut,
    Perturbed,
    RKHSFunction,
    hidden_arm,
    random_linear,
    rough,
    white,
)


@dataclass(frozen=True)
class Instance:
    """A problem, and what its methods are told of it.

    Args:
        problem: To be maximised.
        kernel: Of the model.
        noise_variance: lambda.
        rkhs_bound: B.
        misspecification: eps, which EC-GP-UCB alone is told.
        delta: Of all guarantees.
        models: The candidates, where there are several.
    """

    problem: Any
    kernel: Kernel
    noise_variance: float
    rkhs_bound: float
    misspecification: float = 0.0
    delta: float = 0.1
    models: bx.CandidateModels | None = None


def _generic(seed: int, dim: int, epsilon: float = 0.0, noise_std: float = NOISE_STD) -> Instance:
    problem, kernel = generic_problem(dim, epsilon, seed, seed, noise_std=noise_std)
    return Instance(problem, kernel, noise_std**2, RKHS_BOUND, epsilon)


def _linear(seed: int, make: Callable[[int], LinearArms]) -> Instance:
    return _locked(make(seed))


def _locked(problem: Any) -> Instance:
    """Of a problem with all that is needed to run it."""
    told = problem.noise_variance, problem.rkhs_bound, problem.misspecification, problem.delta
    return Instance(problem, problem.kernel, *told)


def _white(seed: int, epsilon: float = 0.5) -> Instance:
    f, kernel = generic_problem(2, 0.0, seed, seed)
    domain = f.domain
    assert isinstance(domain, bx.FiniteSet)
    problem = Perturbed(f, white(domain, epsilon, seed), epsilon)
    return Instance(problem, kernel, NOISE_STD**2, RKHS_BOUND, epsilon)


def _hidden(seed: int) -> Instance:
    """Hidden from GP-UCB's own run of 300 steps with the seed, and from others."""
    kernel = rbf(0.2)
    axis = torch.linspace(0, 1, 100, dtype=torch.float64).unsqueeze(-1)
    f = RKHSFunction.random(bx.FiniteSet(axis), kernel, RKHS_BOUND, noise_std=NOISE_STD, seed=seed)
    told: dict[str, Any] = {
        "rkhs_bound": RKHS_BOUND,
        "noise_std": NOISE_STD,
        "noise_variance": NOISE_STD**2,
    }
    played = []
    for run in (seed, *range(4)):
        strategy = bx.algorithms.gp_ucb(f.domain, kernel, seed=run, **told)
        played.append(bx.simulate(strategy, f, 300, seed=run).X)
    problem = hidden_arm(f, torch.cat(played), gap=0.5, misspecification=RKHS_BOUND)
    return Instance(problem, kernel, NOISE_STD**2, RKHS_BOUND, problem.misspecification)


def _scales(seed: int) -> Instance:
    """The lock-out with three linear kernels; the first one is f's."""
    arms = LockOut()
    kernels = []
    for scales in ((1.0, 1.0), (1.0, 0.3), (0.3, 1.0)):
        kernel = LinearKernel(ard_num_dims=2).double()
        kernel.variance = torch.tensor([scales])
        kernels.append(kernel)
    models = bx.CandidateModels(kernels, arms.noise_variance)
    told = arms.noise_variance, arms.rkhs_bound, arms.misspecification, arms.delta
    return Instance(arms, arms.kernel, *told, models=models)


def _delayed(seed: int, name: str) -> Instance:
    """f1 and f2 of the delayed-feedback benchmark; drawn as they were where there is no data."""
    found = objectives.load(DATA_FOLDER) if DATA_FOLDER.is_dir() else objectives.generate(0)
    (objective,) = [one for one in found if one.name == name]
    bound, noise_variance = runs.rkhs_bound(objective), objectives.NOISE_STD**2
    kernel = rbf(objectives.MODEL_LENGTHSCALE)
    return Instance(objective.on_grid(50), kernel, noise_variance, bound, delta=runs.DELTA)


def _own(seed: int, kernel: Callable[[float], Kernel], bound: float) -> Instance:
    """A random function of the model's own space, on the same grid with the same noise."""
    axis = torch.linspace(-5, 5, 50, dtype=torch.float64)
    domain, k = bx.FiniteSet(torch.cartesian_prod(axis, axis)), kernel(1.0)
    noise_std = objectives.NOISE_STD
    f = RKHSFunction.random(domain, k, bound, noise_std=noise_std, seed=seed)
    return Instance(f, k, noise_std**2, bound, delta=runs.DELTA)


def _short(seed: int, delta: float = 0.1) -> Instance:
    """A function on 200 points, for many runs that count whether the maximiser is lost."""
    domain = bx.FiniteSet(bx.Box([[0.0, 0.0], [1.0, 1.0]]).sample(200, seed))
    problem, kernel = generic_problem(2, 0.0, seed, seed, domain)
    return Instance(problem, kernel, NOISE_STD**2, RKHS_BOUND, delta=delta)


def _box(seed: int, dim: int, epsilon: float = 0.0) -> Instance:
    kernel = rbf(0.3 * math.sqrt(dim))
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    f = RKHSFunction.random(box, kernel, RKHS_BOUND, noise_std=NOISE_STD, seed=seed)
    problem = Perturbed(f, rough(dim, epsilon, seed=seed), epsilon)
    return Instance(problem, kernel, NOISE_STD**2, RKHS_BOUND, epsilon)


def _contextual(seed: int) -> Instance:
    """One column of actions, one of contexts."""
    kernel, line = rbf(0.4), bx.Box([[0.0], [1.0]])
    actions = bx.FiniteSet(line.sample(100, seed))
    f = ContextualRKHSFunction.random(
        actions, line, kernel, RKHS_BOUND, noise_std=NOISE_STD, seed=seed
    )
    return Instance(f, kernel, NOISE_STD**2, RKHS_BOUND)


DIMS, EPSILONS = (1, 2, 4, 6), (0.05, 0.1, 0.2)
BOX_LOCK_OUT, CONTEXTS_LOCK_OUT = "box, lock-out", "contexts, lock-out"
DELAYED = ("f1", "f2", "RBF", "Matern")
PROBLEMS: dict[str, Callable[[int], Instance]] = {
    **{f"d = {d}": partial(_generic, dim=d) for d in DIMS},
    "d = 1, noise 0.02": partial(_generic, dim=1, noise_std=0.02),
    **{
        f"d = {d}, eps = {eps:g}": partial(_generic, dim=d, epsilon=eps)
        for d in DIMS[:3]
        for eps in EPSILONS
    },
    **{
        f"lock-out, d = {d}": partial(_linear, make=lambda seed, d=d: LockOut(d)) for d in (2, 3, 6)
    },
    **{
        f"noisy lock-out, gap {gap:g}": partial(
            _linear, make=lambda seed, gap=gap: NoisyLockOut(gap)
        )
        for gap in (0.5, 1.0, 2.0)
    },
    "random linear": partial(_linear, make=random_linear),
    "random linear, d = 6": partial(_linear, make=partial(random_linear, dim=6, num_arms=30)),
    "white": _white,
    "hidden arm": _hidden,
    "wrong scales": _scales,
    **{name: partial(_delayed, name=name) for name in DELAYED[:2]},
    "RBF": partial(_own, kernel=rbf, bound=5.0),
    "Matern": partial(_own, kernel=matern, bound=5.0),
    "200 points": _short,
    **{f"box, d = {d}": partial(_box, dim=d) for d in (1, 2, 4)},
    **{f"box, d = {d}, eps = 0.1": partial(_box, dim=d, epsilon=0.1) for d in (1, 2)},
    "contexts": _contextual,
    BOX_LOCK_OUT: lambda seed: _locked(LockOutBox()),
    CONTEXTS_LOCK_OUT: lambda seed: _locked(LockOutInContexts()),
}
