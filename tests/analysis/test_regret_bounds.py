"""Bounds on regret: against their formulas written out, and over runs.

One run of each method with its published width: the bounds hold with probability 0.9 and are
several times what is paid, so that the tests do not hang on the seed. Those of optimism say more
at this horizon than that f is between -B and B; those of phased methods do not yet, and their
constants are left to the formulas.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_ext import FiniteSet, algorithms, analysis, delays, simulate, widths
from botorch_ext.information_gain import max_information_gain
from botorch_ext.models import CandidateModels
from botorch_ext.problems import ContextualRKHSFunction, Perturbed, RKHSFunction, adversarial

T, B, SIGMA, LAMBDA, DELTA = 400, 1.5, 0.1, 0.05, 0.1


# --- formulas, written out --------------------------------------------------------------------


def std_sum(T: int, gain: float, ridge: float) -> float:
    return math.sqrt(2 * T * gain / math.log(1 + 1 / ridge))


def self_normalized(gain: float, B: float, sigma: float, ridge: float, delta: float) -> float:
    return B + sigma / math.sqrt(ridge) * math.sqrt(2 * math.log(1 / delta) + 2 * gain)


def optimistic(T, gain, B, sigma, ridge, delta, eps):
    width = self_normalized(gain, B, sigma, ridge, delta) + eps * math.sqrt(T) / math.sqrt(ridge)
    return 2 * width * std_sum(T, gain, ridge) + 2 * eps * T


def episodes(T, gain, B, sigma, ridge, delta, eps):
    lengths, left = [], T
    while left:
        lengths.append(min(2 ** len(lengths), left))
        left -= lengths[-1]
    width = self_normalized(gain, B, sigma, ridge, delta / len(lengths))
    c = 2 / math.log(1 + 1 / ridge)
    total = 2 * B
    for e in range(1, len(lengths)):
        here = 4 * width * math.sqrt(c * gain / lengths[e - 1])
        bias = 2 * eps * math.sqrt(c * gain / ridge)
        total += lengths[e] * (here + bias + e * bias)
    return total + 2 * eps * T


def rounds_of(T: int, allowance: int) -> list[tuple[int, int]]:
    """Design length and length of each round."""
    rounds, q, asked = [], 1, 0
    while asked < T:
        q = math.ceil(math.sqrt(T * q))
        rounds.append((q, min(q + allowance, T - asked)))
        asked += rounds[-1][1]
    return rounds


def phased(T, gain, B, sigma, ridge, N, delta, allowance):
    rounds = rounds_of(T, allowance)
    width = B + sigma / math.sqrt(ridge) * math.sqrt(2 * math.log(4 * len(rounds) * N / delta))
    total = rounds[0][1] * 2 * B
    for (q, _), (_, length) in pairwise(rounds):
        total += length * 4 * width * math.sqrt(2 * gain / math.log(1 + 1 / ridge) / q)
    return total


def phased_continuous(T, gain, B, sigma, ridge, d, delta, allowance, c):
    rounds = rounds_of(T, allowance)
    share = delta / (4 * len(rounds))
    total = rounds[0][1] * 2 * B
    for (q, n), (_, length) in pairwise(rounds):
        C = B + max(sigma, 1) * math.sqrt(n / ridge) * math.sqrt(2 * math.log(4 * n / share))
        union = math.log(2 * c * C**d * float(n) ** d / share)
        width = B + sigma / math.sqrt(ridge) * math.sqrt(2 * union)
        stds = math.sqrt(2 * gain / math.log(1 + 1 / ridge) / q) + 2 / math.sqrt(q)
        total += length * (8 / q + 4 * width * stds)
    return total


def xi_of(T: int, sigma: float, models: int, sides: int, delta: float) -> float:
    return 2 * sigma**2 * math.log(2 * sides * models * math.pi**2 * T**2 / (3 * delta))


def elimination(T, gain, B, sigma, ridge, models, delta, sides):
    xi = xi_of(T, sigma, models, sides, delta)
    width = B + sigma / math.sqrt(ridge) * math.sqrt(2 * (gain + 1 + math.log(2 / delta)))
    worst = 2 * B if sides == 1 else 4 * B + math.sqrt(xi)
    played = 2 * math.sqrt(models * xi * T)
    return (
        (models - 1) * worst
        + played
        + 2 * sides * width * math.sqrt(models) * std_sum(T, gain, ridge)
    )


def finite_width(t: int, N: int, delta: float) -> float:
    return math.sqrt(2 * math.log(N * math.pi**2 * t**2 / (6 * delta)))


def continuous_width(t, d, a, b, r, delta):
    grid = t**2 * d * b * r * math.sqrt(math.log(4 * d * a / delta))
    return math.sqrt(2 * math.log(2 * math.pi**2 * t**2 / (3 * delta)) + 2 * d * math.log(grid))


def bayes_elimination(T, gain, ridge, models, width: Callable[[int], float], worst, delta):
    xi = xi_of(T, math.sqrt(ridge), models, 1, delta)
    played = 2 * math.sqrt(models * xi * T) + 2 * width(T) * math.sqrt(models) * std_sum(
        T, gain, ridge
    )
    return 2 * (models - 1) * worst + played


@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_their_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def number(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    T, N, models, d = (int(rng.integers(2, high)) for high in (3000, 500, 9, 5))
    gain, B, eps, c = number(0.5, 60), number(0.1, 5), number(0.01, 0.4), number(0.5, 3)
    sigma, ridge, delta = number(0.01, 2), number(0.001, 3), number(0.01, 0.9)
    a, b, r, mean = number(1, 3), number(1, 4), number(1, 5), number(0, 3)
    allowance = int(rng.integers(0, 40))
    f = (T, gain, B, sigma, ridge)

    srinivas = math.sqrt(2 * B**2 + 300 * gain * math.log(T / delta) ** 3)

    def finite(t: int) -> float:
        return finite_width(t, N, delta / 2)

    def continuous(t: int) -> float:
        return continuous_width(t, d, a, b, r, delta / 2)

    at_points, off_grid = finite(1) + mean, continuous(1) + 1 + mean
    pairs = [
        (analysis.ec_gp_ucb_bound(*f, delta, eps), optimistic(*f, delta, eps)),
        (analysis.ec_gp_ucb_bound(*f), optimistic(*f, 0.1, 0.0)),
        (analysis.phased_uncertainty_sampling_bound(*f, delta, eps), episodes(*f, delta, eps)),
        (
            analysis.cgp_ucb_bound(T, gain, B, ridge, delta),
            math.sqrt(8 / math.log(1 + 1 / ridge) * T * srinivas**2 * gain),
        ),
        (
            analysis.cgp_ucb_bayes_bound(T, gain, ridge, N, delta),
            math.sqrt(8 / math.log(1 + 1 / ridge) * T * gain) * finite_width(T, N, delta),
        ),
        (
            analysis.cgp_ucb_bayes_continuous_bound(T, gain, ridge, d, a, b, r, delta),
            2 * continuous_width(T, d, a, b, r, delta) * std_sum(T, gain, ridge) + math.pi**2 / 6,
        ),
        (analysis.bpe_bound(*f, N, delta, allowance), phased(*f, N, delta, allowance)),
        (analysis.bpe_bound(*f, N), phased(*f, N, 0.1, 0)),
        (
            analysis.bpe_continuous_bound(*f, d, delta, allowance, c),
            phased_continuous(*f, d, delta, allowance, c),
        ),
        (analysis.he_gp_ucb_bound(*f, models, delta), elimination(*f, models, delta, 1)),
        (analysis.he_stable_opt_bound(*f, models, delta), elimination(*f, models, delta, 2)),
        (
            analysis.he_gp_ucb_bayes_bound(T, gain, ridge, models, N, delta, mean),
            bayes_elimination(T, gain, ridge, models, finite, at_points, delta),
        ),
        (
            analysis.he_gp_ucb_bayes_continuous_bound(
                T, gain, ridge, models, d, a, b, r, delta, mean
            ),
            bayes_elimination(T, gain, ridge, models, continuous, off_grid, delta) + math.pi**2 / 6,
        ),
    ]
    for value, expected in pairs:
        assert value == pytest.approx(expected, rel=1e-12)


# --- runs ---------------------------------------------------------------------------------------


def kernel(lengthscale: float = 1.5) -> RBFKernel:
    rbf = RBFKernel().to(torch.float64)
    rbf.lengthscale = lengthscale
    return rbf


DOMAIN = FiniteSet(torch.linspace(2.0, 5.0, 31, dtype=torch.float64).unsqueeze(-1))


@pytest.fixture(scope="module")
def problem() -> RKHSFunction:
    return RKHSFunction.random(DOMAIN, kernel(), norm=B, noise_std=SIGMA, seed=3)


@pytest.fixture(scope="module")
def gain() -> float:
    return max_information_gain(kernel(), DOMAIN, T, LAMBDA, upper=True)


COMMON: dict[str, Any] = {
    "noise_variance": LAMBDA,
    "noise_std": SIGMA,
    "rkhs_bound": B,
    "delta": DELTA,
}


def regret(strategy, problem, horizon: int = T, **options) -> float:
    return float(simulate(strategy, problem, horizon, seed=5, **options).regret.sum())


@pytest.mark.parametrize("eps", [0.0, 0.05])
def test_optimism_and_episodes_pay_less_than_their_bounds(problem, gain, eps) -> None:
    played = Perturbed(problem, adversarial(problem, eps), eps) if eps else problem
    strategy = algorithms.ec_gp_ucb(DOMAIN, kernel(), misspecification=eps, **COMMON)
    bound = analysis.ec_gp_ucb_bound(T, gain, B, SIGMA, LAMBDA, DELTA, eps)
    assert eps > 0 or bound < 2 * B * T
    assert 0 < regret(strategy, played) < bound / 2
    strategy = algorithms.phased_uncertainty_sampling(DOMAIN, kernel(), horizon=T, **COMMON)
    bound = analysis.phased_uncertainty_sampling_bound(T, gain, B, SIGMA, LAMBDA, DELTA, eps)
    assert 0 < regret(strategy, played) < bound / 2


@pytest.mark.parametrize("delay", [None, 7])
def test_rounds_pay_less_than_their_bounds(problem, gain, delay) -> None:
    allowance = {} if delay is None else {"delay": delay}
    make = algorithms.bpe if delay is None else algorithms.bpe_delay
    strategy = make(DOMAIN, kernel(), horizon=T, **allowance, **COMMON)
    bound = analysis.bpe_bound(T, gain, B, SIGMA, LAMBDA, DOMAIN.num_points, DELTA, delay)
    assert 0 < regret(strategy, problem, delay=delay) < bound / 2
    count = len(rounds_of(T, delay or 0))
    width = widths.FixedDesignContinuous(B, SIGMA, DELTA, count)
    strategy = make(DOMAIN, kernel(), horizon=T, width=width, **allowance, noise_variance=LAMBDA)
    bound = analysis.bpe_continuous_bound(T, gain, B, SIGMA, LAMBDA, 1, DELTA, delay)
    assert 0 < regret(strategy, problem, delay=delay) < bound / 2


def test_contexts_pay_less_than_their_bounds() -> None:
    T = 90
    contexts = torch.tensor([[-1.0], [0.0], [0.7]], dtype=torch.float64)
    pairs = FiniteSet(
        torch.cat([DOMAIN.points.repeat_interleave(3, 0), contexts.repeat(31, 1)], dim=1)
    )
    joint = MaternKernel(nu=1.5).to(torch.float64)
    problem = ContextualRKHSFunction(
        joint, pairs.points[::9], 0.3 * torch.ones(11), DOMAIN, noise_std=0.1
    )
    gain = max_information_gain(joint, pairs, T, LAMBDA, upper=True)
    stream = contexts[torch.arange(T) % 3]
    norm = problem.norm

    def paid(width) -> float:
        strategy = algorithms.cgp_ucb(DOMAIN, joint, noise_variance=LAMBDA, width=width)
        return regret(strategy, problem, T, contexts=stream)

    bound = analysis.cgp_ucb_bound(T, gain, norm, LAMBDA, DELTA)
    assert 0 < paid(widths.SrinivasRKHS(norm, DELTA)) < bound / 2
    bound = analysis.ec_gp_ucb_bound(T, gain, norm, SIGMA, LAMBDA, DELTA)
    assert 0 < paid(widths.SelfNormalized(norm, SIGMA, DELTA)) < bound / 2
    # Of moderate norm, the function may as well have been drawn from the process.
    bound = analysis.cgp_ucb_bayes_bound(T, gain, LAMBDA, pairs.num_points, DELTA)
    assert 0 < paid(widths.BayesFinite(pairs.num_points, DELTA)) < bound / 2


@pytest.mark.parametrize("setting", ["frequentist", "bayesian"])
def test_elimination_of_models_pays_less_than_its_bound(problem, setting) -> None:
    lengthscales = (1.5, 3.0)
    models = CandidateModels.lengthscales(kernel(), lengthscales, LAMBDA)
    gain = max(
        max_information_gain(kernel(each), DOMAIN, T, LAMBDA, upper=True) for each in lengthscales
    )
    noise_std = math.sqrt(LAMBDA) if setting == "bayesian" else SIGMA
    strategy = algorithms.he_gp_ucb(
        DOMAIN,
        models,
        noise_std=noise_std,
        setting=setting,
        delta=DELTA,
        **({} if setting == "bayesian" else {"rkhs_bound": B}),
    )
    if setting == "bayesian":
        bound = analysis.he_gp_ucb_bayes_bound(T, gain, LAMBDA, 2, DOMAIN.num_points, DELTA)
    else:
        bound = analysis.he_gp_ucb_bound(T, gain, B, SIGMA, LAMBDA, 2, DELTA)
        assert bound < 2 * B * T
    assert 0 < regret(strategy, problem, noise_std=noise_std) < bound / 2


def test_stable_elimination_pays_less_than_its_bound(problem) -> None:
    T = 90
    lengthscales = (0.5, 1.5)
    models = CandidateModels.lengthscales(kernel(), lengthscales, LAMBDA)
    gain = max(
        max_information_gain(kernel(each), DOMAIN, T, LAMBDA, upper=True) for each in lengthscales
    )
    strategy = algorithms.he_stable_opt(
        DOMAIN, models, noise_std=SIGMA, rkhs_bound=B, delta=DELTA, radius=0.15
    )
    values = problem(DOMAIN.points)
    near = (DOMAIN.points - DOMAIN.points.mT).abs() <= 0.15
    worst = torch.where(near, values, math.inf).min(dim=1).values
    noise, paid = SIGMA * np.random.default_rng(5).standard_normal(T), 0.0
    for t in range(T):
        trial = strategy.ask()
        row = int(DOMAIN.index(trial.info["center"]))
        paid += float(worst.max() - worst[row])
        strategy.tell(trial.id, float(problem(trial.x)) + noise[t])
    assert 0 < paid < analysis.he_stable_opt_bound(T, gain, B, SIGMA, LAMBDA, 2, DELTA) / 2


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "arguments", "message"),
    [
        ("ec_gp_ucb_bound", {"horizon": 0}, "horizon must be at least 1, got 0"),
        ("ec_gp_ucb_bound", {"horizon": 2.5}, "horizon must be a whole number, got 2.5"),
        ("ec_gp_ucb_bound", {"information_gain": -1.0}, "information_gain must be non-negative"),
        ("ec_gp_ucb_bound", {"information_gain": math.nan}, "information_gain must be"),
        ("ec_gp_ucb_bound", {"noise_variance": 0.0}, "noise_variance must be positive"),
        ("ec_gp_ucb_bound", {"noise_std": 0.0}, "noise_std must be positive"),
        ("ec_gp_ucb_bound", {"misspecification": -0.1}, "misspecification must be non-negative"),
        ("phased_uncertainty_sampling_bound", {"delta": 1.5}, r"delta must be in .*, got 1.5"),
        (
            "phased_uncertainty_sampling_bound",
            {"misspecification": -0.1},
            "misspecification must be non-negative",
        ),
        ("bpe_bound", {"num_points": 0}, "num_points must be at least 1"),
        ("bpe_bound", {"num_points": 9, "delta": 0.0}, r"delta must be in .*, got 0.0"),
        ("bpe_bound", {"num_points": 9, "delay": delays.Observed()}, "delay must be an allowance"),
        ("bpe_continuous_bound", {"dim": 0}, "dim must be at least 1"),
        ("he_gp_ucb_bound", {"num_models": 0}, "num_models must be at least 1"),
        ("he_gp_ucb_bound", {"num_models": 3, "delta": 1.5}, r"delta must be in .*, got 1.5"),
        ("he_stable_opt_bound", {"num_models": 3, "rkhs_bound": -1.0}, "rkhs_bound must be"),
    ],
)
def test_impossible_arguments(bound: str, arguments: dict, message: str) -> None:
    good = {
        "horizon": 9,
        "information_gain": 1.0,
        "rkhs_bound": 1.0,
        "noise_std": 0.1,
        "noise_variance": 0.1,
    }
    with pytest.raises(ValueError, match=message):
        getattr(analysis, bound)(**(good | arguments))


def test_impossible_arguments_of_bayesian_bounds() -> None:
    with pytest.raises(ValueError, match="num_points must be at least 1, got 0"):
        analysis.cgp_ucb_bayes_bound(9, 1.0, 0.1, 0)
    with pytest.raises(ValueError, match="dim must be at least 1, got 0"):
        analysis.cgp_ucb_bayes_continuous_bound(9, 1.0, 0.1, 0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="largest_mean must be non-negative"):
        analysis.he_gp_ucb_bayes_bound(9, 1.0, 0.1, 3, 5, largest_mean=-1.0)
    with pytest.raises(ValueError, match="delta must be in"):
        analysis.he_gp_ucb_bayes_continuous_bound(9, 1.0, 0.1, 3, 1, 1.0, 1.0, 1.0, delta=1.0)
