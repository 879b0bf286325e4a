"""Sets of models, methods over them, and sessions that are driven through them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import Kernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_ext import CandidateModels, algorithms
from botorch_ext.domains import Domain
from botorch_ext.strategies import Strategy
from tests.oracles.models import Candidate
from tests.strategies.sessions import LAMBDA, POLICIES, Action, box, f, plain, play

# The observations of `sessions.f` lie between -1.9 and 0.1: far from what such a B allows, so that
# models are rejected. Nothing here asks for widths that hold.
B, SIGMA, DELTA = 0.25, 0.03, 0.1
NUMBERS = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}


def rbf(lengthscale: Any) -> RBFKernel:
    values = torch.as_tensor(lengthscale, dtype=torch.float64)
    kernel = RBFKernel(ard_num_dims=values.numel() if values.ndim else None).double()
    kernel.lengthscale = values
    return kernel


def matern(lengthscale: float, nu: float = 1.5) -> MaternKernel:
    kernel = MaternKernel(nu=nu).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def periodic(period: float, lengthscale: float = 1.5) -> PeriodicKernel:
    kernel = PeriodicKernel().double()
    kernel.period_length = torch.tensor(period, dtype=torch.float64)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def scaled(kernel: Kernel, outputscale: float) -> ScaleKernel:
    outer = ScaleKernel(kernel).double()
    outer.outputscale = torch.tensor(outputscale, dtype=torch.float64)
    return outer


def averaged(kernel: Kernel, groups: list[tuple[int, ...]]) -> Callable[[Tensor], Tensor]:
    """The sum of a kernel over groups of columns, divided by their number."""
    return lambda X: sum(kernel(X[:, list(group)]).to_dense() for group in groups) / len(groups)


def level(value: float) -> ConstantMean:
    mean = ConstantMean().double()
    mean.initialize(constant=value)
    return mean


def slope(X: Tensor) -> Tensor:
    return 0.8 * (X[..., 0] - 3.5)


# name: the models, and for each what the oracle makes a `Candidate` from
Described = tuple[Any, float, Any]
# A prior mean above f, so that its models err.
HIGH = 0.7
HEIGHTS = [-0.5, 3.5, 4.5, 6.0]
SCALES = [0.3, 0.8, 2.5, 6.0]
NOISES = [0.02, 0.1, 0.4]
ARD = [[0.4, 0.4], [1.5, 0.3], [0.5, 2.0]]
PARTS = [[(0,), (1,)], [(0, 1)]]
MIXED: list[Described] = [
    (rbf(0.8), 0.02, None),
    (matern(0.7), 0.05, None),
    (rbf(0.4), 0.02, slope),
    (scaled(periodic(1.7), 0.9), 0.01, level(0.4)),
    (matern(2.0), 0.02, None),
    (rbf(2.5), 0.04, None),
]


SETS: dict[str, tuple[Callable[..., CandidateModels], list[Described]]] = {
    "lengthscales": (
        lambda **kind: CandidateModels.lengthscales(
            rbf(1.0), SCALES, LAMBDA, means=level(HIGH), **kind
        ),
        [(rbf(value), LAMBDA, level(HIGH)) for value in SCALES],
    ),
    "ard": (
        lambda **kind: CandidateModels.lengthscales(
            scaled(rbf([1.0, 1.0]), 0.8), ARD, LAMBDA, means=level(HIGH), **kind
        ),
        [(scaled(rbf(value), 0.8), LAMBDA, level(HIGH)) for value in ARD],
    ),
    "periods": (
        lambda **kind: CandidateModels.periods(periodic(1.0), [0.7, 1.3, 4.0], LAMBDA, **kind),
        [(periodic(value), LAMBDA, None) for value in (0.7, 1.3, 4.0)],
    ),
    "additive": (
        lambda **kind: CandidateModels.additive(rbf(0.7), PARTS, LAMBDA, dim=2, **kind),
        [(averaged(rbf(0.7), groups), LAMBDA, None) for groups in PARTS],
    ),
    "means": (
        lambda **kind: CandidateModels.prior_means(
            rbf(0.7), [None, level(0.5), slope], LAMBDA, **kind
        ),
        [(rbf(0.7), LAMBDA, mean) for mean in (None, level(0.5), slope)],
    ),
    "noise": (
        lambda **kind: CandidateModels.noise_variances(
            matern(0.9), NOISES, means=level(HIGH), **kind
        ),
        [(matern(0.9), value, level(HIGH)) for value in NOISES],
    ),
    # Far enough above f for widths that are valid for a function drawn from the process.
    "high means": (
        lambda **kind: CandidateModels.prior_means(
            rbf(0.7), [level(v) for v in HEIGHTS], LAMBDA, **kind
        ),
        [(rbf(0.7), LAMBDA, level(value)) for value in HEIGHTS],
    ),
    "mixed": (
        lambda **kind: CandidateModels(
            *(list(column) for column in zip(*MIXED, strict=True)), **kind
        ),
        MIXED,
    ),
}


def oracle(name: str, points: Tensor) -> list[Candidate]:
    return [Candidate.at(points, *model, u) for u, model in enumerate(SETS[name][1])]


# Functions of `algorithms`.
METHODS = ("he_gp_ucb", "mle_ucb", "expected_ucb", "a_gp_ucb", "lb_gp_ucb")


def make_models(method: str, name: str = "mixed", **kind: Any) -> CandidateModels:
    """The models a method takes: A-GP-UCB needs lengthscales, LB-GP-UCB a growing family."""
    if method == "lb_gp_ucb":
        return CandidateModels.growing(rbf(1.0), 2.0, LAMBDA, dim=2, **kind)
    return SETS["lengthscales" if method == "a_gp_ucb" else name][0](**kind)


def make(
    method: str, domain: Domain, policy: str = "hallucinate", name: str = "mixed", **more: Any
) -> Any:
    models = make_models(method, name, dtype=domain.dtype, device=domain.device)
    options = {**NUMBERS, "seed": 5, **POLICIES[policy], **more}
    return getattr(algorithms, method)(domain, models, **options)


def play_and_note(strategy: Any, actions: list[Action]) -> list[list[int]]:
    """Plays a script; returns the models alive after each event."""
    alive: list[list[int]] = []
    for action in actions:
        play(strategy, [action])
        # An action is several events only where it asks, and asking rejects nothing.
        alive += [list(strategy.alive)] * (len(strategy.history.events) - len(alive))
    return alive


def play_promptly(strategy: Strategy, num_steps: int, seed: int = 0) -> None:
    """Every question is answered before the next."""
    g = torch.Generator().manual_seed(seed)
    for noise in (SIGMA * torch.randn(num_steps, generator=g)).tolist():
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x) + noise)


def self_normalized(rkhs_bound: float = B, delta: float = DELTA / 2) -> Callable[..., float]:
    def width(model: Candidate, t: int, gain: float) -> float:
        ratio = SIGMA / math.sqrt(model.noise_variance)
        return ratio * math.sqrt(2 * math.log(1 / delta) + 2 * gain) + rkhs_bound

    return width


def grid(num_per_axis: int) -> Tensor:
    """Points of `sessions.box`."""
    sides = box().bounds.T.tolist()
    axes = [torch.linspace(*side, num_per_axis, dtype=torch.float64) for side in sides]
    return torch.cartesian_prod(*axes)


def snapshot(strategy: Any) -> Any:
    """All that shows, the numbers in full."""
    return (
        [plain(event) for event in strategy.events],
        strategy.report(),
        strategy.pending,
        list(strategy.alive),
        list(strategy.names),
        list(getattr(strategy, "tests", [])),
    )
