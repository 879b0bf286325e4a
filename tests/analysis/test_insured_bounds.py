"""Bounds of the insured methods: against their formulas written out, and the gain they need."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import FiniteSet
from botorch_ext.analysis import (
    bpe_bound,
    certified_bucb_bound,
    ec_gp_ucb_bound,
    information_gain_bound,
    insured_ucb_bound,
)
from botorch_ext.information_gain import greedy_information_gain
from botorch_ext.rounds import SquareRoot

B, SIGMA, LAMBDA, DELTA, N = 1.5, 0.1, 0.05, 0.2, 300


@pytest.mark.parametrize(("T", "gain"), [(400, 7.0), (10**6, 40.0), (10**6, 0.001)])
def test_insured_ucb(T: int, gain: float) -> None:
    S = 2 * (B + SIGMA * math.sqrt(2 * (math.log(1 / DELTA) + gain) / LAMBDA))
    S *= math.sqrt(2 * T * gain / math.log(1 + 1 / LAMBDA))
    budget = max(0.03 * S, 0.1 * B * math.sqrt(T))
    found = insured_ucb_bound(T, gain, B, SIGMA, LAMBDA, DELTA)
    assert found == pytest.approx(S + 7 * budget + 40 * B, rel=1e-12)
    # Without insurance it is the bound of GP-UCB.
    plain = insured_ucb_bound(T, gain, B, SIGMA, LAMBDA, DELTA, alpha=0, beta=0, max_follow_ups=0)
    assert plain == ec_gp_ucb_bound(T, gain, B, SIGMA, LAMBDA, DELTA)


@pytest.mark.parametrize(
    ("u", "rho", "kappa", "again"),
    [(0, 1 / 8, 1.0, 0.0), (30, 1 / 4, math.sqrt(2), 0.0), (4000, 1 / 4, 1.0, 1 / 4)],
)
def test_certified_bucb(u: int, rho: float, kappa: float, again: float) -> None:
    T, gain = 10**7, 6.0
    q = [math.ceil(math.sqrt(T))]
    while sum(q) < T:
        q.append(math.ceil(math.sqrt(T * q[-1])))
    w = B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(8 * len(q) * N / DELTA))
    total = 2 * B * (q[0] + 1 + (1 + again) * (u + 1))
    for r in range(1, len(q)):
        n = math.ceil(rho * q[r - 1])
        W = 4 * kappa * w * math.sqrt(2 * gain / math.log(1 + 1 / LAMBDA) / n)
        length = min(q[r], T - sum(q[:r]))
        total += (length + (2 + again) * (u + 1)) * min(2 * B, W)
    found = certified_bucb_bound(
        T, gain, B, SIGMA, LAMBDA, N, DELTA, delay=u, share=rho, kappa=kappa
    )
    assert found == pytest.approx(total, rel=1e-12)


def test_certified_bucb_is_above_bpe_by_the_share_at_most() -> None:
    T, gain = 10**10, 6.0
    plain = bpe_bound(T, gain, B, SIGMA, LAMBDA, N, DELTA)
    ours = certified_bucb_bound(T, gain, B, SIGMA, LAMBDA, N, DELTA)
    assert plain < ours < 1.2 * math.sqrt(8) * plain


@pytest.mark.parametrize("T", [2, 3, 14, 15, 100, 61147, 65535, 65536, 10**9])
def test_the_number_of_rounds(T: int) -> None:
    assert SquareRoot(T).count(T, DELTA) <= math.ceil(math.log2(math.log2(T))) + 1


@pytest.mark.parametrize("scale", [0.05, 0.3, 3.0])
def test_the_information_gain_is_below_its_bound(scale: float) -> None:
    kernel = RBFKernel().double()
    kernel.lengthscale = scale
    points = torch.linspace(2, 3, 60, dtype=torch.float64).unsqueeze(-1)
    gram = kernel(points).to_dense().detach()
    greedy = greedy_information_gain(kernel, FiniteSet(points), 200, 0.02)
    for T in (1, 10, 200):
        bound = information_gain_bound(gram, T, 0.02)
        assert float(greedy[T - 1]) <= bound * (1 + 1e-9)
    assert bound <= 3 * float(greedy[-1])
    # One point: exact, at any horizon.
    one = information_gain_bound(gram[:1, :1], 10**9, 0.02)
    assert one == pytest.approx(0.5 * math.log1p(10**9 / 0.02), rel=1e-9)


def test_impossible_arguments_are_refused() -> None:
    told = (100, 3.0, B, SIGMA, LAMBDA)
    for options in ({"share": 0.0}, {"share": 2.0}, {"kappa": 0.9}, {"delay": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
            certified_bucb_bound(*told, N, DELTA, **options)
    for options in ({"alpha": -1.0}, {"beta": math.nan}, {"max_follow_ups": -1}):
        with pytest.raises(ValueError, match=f"{next(iter(options))} must"):
            insured_ucb_bound(*told, DELTA, **options)
    with pytest.raises(ValueError, match="noise_variance must"):
        information_gain_bound(torch.eye(2), 3, 0.0)
