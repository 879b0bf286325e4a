"""Bounds on regret against their formulas written out, and, slowly, over runs."""

import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from botorch_ext import CandidateModels, FiniteSet, algorithms, analysis, delays, simulate
from botorch_ext.analysis.information_gain import max_information_gain
from botorch_ext.problems import Perturbed, RKHSFunction, adversarial
from tests.formulas.letters import Numbers, drawn_numbers
from tests.helpers import rbf

numbers = drawn_numbers(d=st.integers(1, 4), N=st.integers(2, 500), eps=st.floats(0, 0.4))


def known(x: Numbers) -> tuple[int, float, float, float, float]:
    return x.T, x.gain, x.B, x.sigma, x.lam


def variances(x: Numbers) -> float:
    """The bound on the sum of variances over T steps."""
    return 2 * x.gain / math.log(1 + 1 / x.lam)


def stds(x: Numbers) -> float:
    return math.sqrt(x.T * variances(x))


def optimistic(x: Numbers, delta: float, eps: float) -> float:
    width = x.self_normalized(delta) + eps * math.sqrt(x.T) / math.sqrt(x.lam)
    return 2 * width * stds(x) + 2 * eps * x.T


def episodes(x: Numbers) -> float:
    lengths, left = [], x.T
    while left:
        lengths.append(min(2 ** len(lengths), left))
        left -= lengths[-1]
    width = x.self_normalized(x.delta / len(lengths))
    bias = 2 * x.eps * math.sqrt(variances(x) / x.lam)
    total = 2 * x.B + 2 * x.eps * x.T
    for e in range(1, len(lengths)):
        total += lengths[e] * 4 * width * math.sqrt(variances(x) / lengths[e - 1])
        total += lengths[e] * (e + 1) * bias
    return total


def rounds(T: int, u: int) -> list[tuple[int, int]]:
    """Design length and length of each round."""
    found, q, asked = [], 1, 0
    while asked < T:
        q = math.ceil(math.sqrt(T * q))
        found.append((q, min(q + u, T - asked)))
        asked += found[-1][1]
    return found


def phased(x: Numbers, delta: float, u: int) -> float:
    own = rounds(x.T, u)
    width = x.fixed_design(4 * len(own) * x.N * x.delta / delta)
    total = own[0][1] * 2 * x.B
    for (q, _), (_, length) in pairwise(own):
        total += length * 4 * width * math.sqrt(variances(x) / q)
    return total


def phased_continuous(x: Numbers, c: float) -> float:
    own = rounds(x.T, x.u)
    share = x.delta / (4 * len(own))
    total = own[0][1] * 2 * x.B
    for (q, n), (_, length) in pairwise(own):
        C = x.B + max(x.sigma, 1) * math.sqrt(n / x.lam) * math.sqrt(2 * math.log(4 * n / share))
        width = x.fixed_design(8 * len(own) * c * C**x.d * float(n) ** x.d)
        stds = math.sqrt(variances(x) / q) + 2 / math.sqrt(q)
        total += length * (8 / q + 4 * width * stds)
    return total


def eliminated(x: Numbers, noise: float, width: float, worst: float, sides: int = 1) -> float:
    xi = 2 * noise**2 * math.log(2 * sides * x.models * math.pi**2 * x.T**2 / (3 * x.delta))
    worst += math.sqrt(xi) if sides == 2 else 0.0
    root = math.sqrt(x.models)
    tests = 2 * root * math.sqrt(xi * x.T)
    return (x.models - 1) * worst + tests + 2 * sides * width * root * stds(x)


A_B_R = (1.2, 1.7, 2.0)


def insured(x: Numbers, alpha=0.03, beta=0.1, purse=0.3, most=20) -> float:
    S = optimistic(x, x.delta, 0.0)
    budget = max(alpha * S, beta * x.B * math.sqrt(x.T))
    return S + (1 + most * purse) * budget + 2 * most * x.B


def certified(x: Numbers, u: int, rho: float, kappa: float) -> float:
    q = [q for q, _ in rounds(x.T, 0)]
    lengths = [length for _, length in rounds(x.T, 0)]
    width = x.fixed_design(8 * len(q) * x.N)
    again = rho if u >= lengths[0] else 0.0
    total = 2 * x.B * (lengths[0] + 1 + (1 + again) * (u + 1))
    for before, length in zip(q, lengths[1:], strict=False):
        bought = max(math.ceil(rho * before - 1e-9), 1)
        certain = 4 * kappa * width * math.sqrt(variances(x) / bought)
        total += (length + (2 + again) * (u + 1)) * min(2 * x.B, certain)
    return total


OFF_GRID = math.pi**2 / 6
BOUNDS: dict[str, Callable[[Numbers], tuple[float, float]]] = {
    "ec_gp_ucb": lambda x: (
        analysis.ec_gp_ucb_bound(*known(x), x.delta, x.eps),
        optimistic(x, x.delta, x.eps),
    ),
    "ec_gp_ucb, defaults": lambda x: (analysis.ec_gp_ucb_bound(*known(x)), optimistic(x, 0.1, 0.0)),
    "phased_uncertainty_sampling": lambda x: (
        analysis.phased_uncertainty_sampling_bound(*known(x), x.delta, x.eps),
        episodes(x),
    ),
    "cgp_ucb": lambda x: (
        analysis.cgp_ucb_bound(x.T, x.gain, x.B, x.lam, x.delta),
        2 * x.srinivas(x.gain, x.T) * stds(x),
    ),
    "cgp_ucb_bayes": lambda x: (
        analysis.cgp_ucb_bayes_bound(x.T, x.gain, x.lam, x.N, x.delta),
        2 * x.bayes_finite(x.T, x.delta) * stds(x),
    ),
    "cgp_ucb_bayes_continuous": lambda x: (
        analysis.cgp_ucb_bayes_continuous_bound(x.T, x.gain, x.lam, x.d, *A_B_R, x.delta),
        2 * x.bayes_continuous(x.T, x.delta, *A_B_R) * stds(x) + OFF_GRID,
    ),
    "bpe": lambda x: (analysis.bpe_bound(*known(x), x.N, x.delta, x.u), phased(x, x.delta, x.u)),
    "bpe, defaults": lambda x: (analysis.bpe_bound(*known(x), x.N), phased(x, 0.1, 0)),
    "bpe_continuous": lambda x: (
        analysis.bpe_continuous_bound(*known(x), x.d, x.delta, x.u, 0.8),
        phased_continuous(x, 0.8),
    ),
    "he_gp_ucb": lambda x: (
        analysis.he_gp_ucb_bound(*known(x), x.models, x.delta),
        eliminated(x, x.sigma, x.chowdhury(x.gain, x.noise, x.delta / 2), 2 * x.B),
    ),
    "he_stable_opt": lambda x: (
        analysis.he_stable_opt_bound(*known(x), x.models, x.delta),
        eliminated(x, x.sigma, x.chowdhury(x.gain, x.noise, x.delta / 2), 4 * x.B, sides=2),
    ),
    "he_gp_ucb_bayes": lambda x: (
        analysis.he_gp_ucb_bayes_bound(x.T, x.gain, x.lam, x.models, x.N, x.delta, x.B),
        eliminated(
            x,
            math.sqrt(x.lam),
            x.bayes_finite(x.T, x.delta / 2),
            2 * (x.bayes_finite(1, x.delta / 2) + x.B),
        ),
    ),
    "he_gp_ucb_bayes_continuous": lambda x: (
        analysis.he_gp_ucb_bayes_continuous_bound(
            x.T, x.gain, x.lam, x.models, x.d, *A_B_R, x.delta, x.B
        ),
        OFF_GRID
        + eliminated(
            x,
            math.sqrt(x.lam),
            x.bayes_continuous(x.T, x.delta / 2, *A_B_R),
            2 * (x.bayes_continuous(1, x.delta / 2, *A_B_R) + 1 + x.B),
        ),
    ),
    "insured_ucb": lambda x: (analysis.insured_ucb_bound(*known(x), x.delta), insured(x)),
    "insured_ucb, options": lambda x: (
        analysis.insured_ucb_bound(
            *known(x), x.delta, alpha=x.eps, beta=0.7, purse=x.share, max_follow_ups=x.N
        ),
        insured(x, x.eps, 0.7, x.share, x.N),
    ),
    "certified_bucb": lambda x: (
        analysis.certified_bucb_bound(*known(x), x.N, x.delta),
        certified(x, 0, 1 / 8, 1.0),
    ),
    "certified_bucb, options": lambda x: (
        analysis.certified_bucb_bound(
            *known(x), x.N, x.delta, delay=x.u, share=x.share, kappa=x.kappa
        ),
        certified(x, x.u, x.share, x.kappa),
    ),
}


@pytest.mark.parametrize("name", BOUNDS)
@given(x=numbers)
def test_a_bound_is_its_formula(name, x):
    found, expected = BOUNDS[name](x)
    assert found == pytest.approx(expected, rel=1e-9)


def test_the_bound_with_certificates_also_where_blocks_are_useful():
    # W is less than 2 B.
    x = Numbers(1.5, 0.1, 0.2, 0.05, 6.0, T=10**8, N=300, u=30_000)
    found = analysis.certified_bucb_bound(
        *known(x), x.N, x.delta, delay=x.u, share=1 / 4, kappa=1.2
    )
    assert found == pytest.approx(certified(x, x.u, 1 / 4, 1.2), rel=1e-9)


def test_a_bound_needs_an_allowance_that_is_known():
    for bound in (analysis.bpe_bound, analysis.bpe_continuous_bound):
        with pytest.raises(ValueError, match=r"^delay must"):
            bound(9, 1.0, 1.0, 0.1, 0.1, 3, delay=delays.Observed())


# --- runs -----------------------------------------------------------------------------------------

T, B, SIGMA, LAMBDA, DELTA = 250, 1.5, 0.1, 0.05, 0.1
DOMAIN = FiniteSet(torch.linspace(2.0, 5.0, 31, dtype=torch.float64).unsqueeze(-1))
KNOWN = {"noise_variance": LAMBDA, "noise_std": SIGMA, "rkhs_bound": B, "delta": DELTA}
NUMBERS = (B, SIGMA, LAMBDA)
ROUNDS = 31, DELTA


def upper(kernel, domain=DOMAIN, T=T):
    return max_information_gain(kernel, domain, T, LAMBDA, upper=True)


def paid(strategy, problem, T=T, **options):
    return float(simulate(strategy, problem, T, seed=5, **options).regret.sum())


@pytest.mark.slow
def test_runs_pay_less_than_their_bounds():
    """One run each: bounds hold with probability 0.9, and are several times what is paid."""
    kernel, gain = rbf(1.5), upper(rbf(1.5))
    problem = RKHSFunction.random(DOMAIN, kernel, norm=B, noise_std=SIGMA, seed=3)
    wrong = Perturbed(problem, adversarial(problem, 0.05), 0.05)
    strategy = algorithms.ec_gp_ucb(DOMAIN, kernel, misspecification=0.05, **KNOWN)
    bound = analysis.ec_gp_ucb_bound(T, gain, *NUMBERS, DELTA, 0.05)
    assert 0 < paid(strategy, wrong) < bound / 2
    strategy = algorithms.phased_uncertainty_sampling(DOMAIN, kernel, horizon=T, **KNOWN)
    bound = analysis.phased_uncertainty_sampling_bound(T, gain, *NUMBERS, DELTA, 0.05)
    assert 0 < paid(strategy, wrong) < bound / 2
    strategy = algorithms.bpe_delay(DOMAIN, kernel, horizon=T, delay=7, **KNOWN)
    bound = analysis.bpe_bound(T, gain, *NUMBERS, *ROUNDS, 7)
    assert 0 < paid(strategy, problem, delay=7) < bound / 2
    strategy = algorithms.insured_ucb(DOMAIN, kernel, **KNOWN)
    assert 0 < paid(strategy, problem) < analysis.insured_ucb_bound(T, gain, *NUMBERS, DELTA) / 2
    strategy = algorithms.certified_bucb(DOMAIN, kernel, horizon=T, **KNOWN)
    assert (
        0 < paid(strategy, problem) < analysis.certified_bucb_bound(T, gain, *NUMBERS, *ROUNDS) / 2
    )
    models = CandidateModels.lengthscales(rbf(1.5), (1.5, 3.0), LAMBDA)
    strategy = algorithms.he_gp_ucb(DOMAIN, models, noise_std=SIGMA, rkhs_bound=B, delta=DELTA)
    gain = max(gain, upper(rbf(3.0)))
    bound = analysis.he_gp_ucb_bound(T, gain, *NUMBERS, 2, DELTA)
    assert 0 < paid(strategy, problem) < bound / 2
