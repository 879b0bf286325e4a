"""Information gain: its greedy maximum against plain loops, and bounds against exact maxima."""

import itertools
import math

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet, KernelGP
from botorch_ext.analysis import information_gain_bound
from botorch_ext.information_gain import (
    GREEDY_SHARE,
    additive_kernel_bound,
    greedy_information_gain,
    max_information_gain,
    product_kernel_bound,
)
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import drawn, matern, rbf, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

TOL = tolerance(torch.float64)
BOX = Box([[2.0, -3.0], [5.0, -1.5]])
kernels = st.builds(
    lambda make, scale: make(scale), st.sampled_from([rbf, matern]), st.floats(0.3, 2)
)
ridges = st.floats(0.01, 2.0)
seeds = st.integers(0, 1000)


def greedy_by_hand(kernel, points, num_points, ridge):
    """Always the largest posterior variance, each from scratch."""
    rows, gains = [], []
    for _ in range(num_points):
        X = points[rows]
        variance = kernel(points, diag=True).detach()
        if rows:
            variance = dense_posterior(kernel, X, X[:, 0], points, ridge)[1].diagonal()
        highest = variance >= variance.max() * (1 - 1e-9)  # equal up to rounding: the first
        rows.append(int(highest.nonzero()[0]))
        gains.append(dense_information_gain(kernel, points[rows], ridge))
    return torch.tensor(gains, dtype=torch.float64)


def largest_gain(kernel, points, num_points, ridge):
    """gamma: the largest gain of all multisets of points."""
    with torch.no_grad():
        K = kernel(points, points).to_dense()
    multisets = itertools.combinations_with_replacement(range(len(points)), num_points)
    rows = torch.tensor(list(multisets))
    matrices = K[rows.unsqueeze(-1), rows.unsqueeze(-2)] / ridge
    eye = torch.eye(num_points, dtype=K.dtype)
    return 0.5 * torch.linalg.slogdet(eye + matrices).logabsdet.max().item()


# --- the greedy maximum ---------------------------------------------------------------------------


@given(kernel=kernels, ridge=ridges, seed=seeds)
def test_the_greedy_curve_is_the_plain_loop(kernel, ridge, seed):
    points = BOX.sample(15, seed)
    curve = greedy_information_gain(kernel, FiniteSet(points), 10, ridge)
    # Ties decide between designs of equal gain: only the gains are compared.
    assert_close(curve, greedy_by_hand(kernel, points, 10, ridge), **TOL)
    assert_close(
        max_information_gain(kernel, FiniteSet(points), 10, ridge), float(curve[-1]), **TOL
    )


@given(kernel=kernels, ridge=ridges, seed=seeds)
def test_the_maximum_of_all_designs_lies_between_the_ends(kernel, ridge, seed):
    domain = FiniteSet(BOX.sample(6, seed))
    greedy = max_information_gain(kernel, domain, 3, ridge)
    upper = max_information_gain(kernel, domain, 3, ridge, upper=True)
    gamma = largest_gain(kernel, domain.points, 3, ridge)
    assert greedy <= gamma * (1 + 1e-12)
    assert gamma <= upper
    assert upper == pytest.approx(greedy / (1 - 1 / math.e), rel=1e-12)
    assert pytest.approx(1 - 1 / math.e) == GREEDY_SHARE
    # The gain of a model with any of these data.
    model = KernelGP(kernel, ridge)
    X = domain.points[domain.sample_indices(3, seed)]
    model.add(X, X[:, 0])
    gain = model.information_gain().item()
    assert gain == pytest.approx(dense_information_gain(kernel, X, ridge), rel=1e-9)
    assert gain <= gamma * (1 + 1e-9)


def test_of_equal_points_the_first_is_taken():
    # On a plateau it takes the middle, which is in no best pair.
    domain = FiniteSet([[3.0], [2.0], [4.0]])
    greedy = max_information_gain(rbf(0.7), domain, 2, 0.1)
    gamma = largest_gain(rbf(0.7), domain.points, 2, 0.1)
    assert gamma == pytest.approx(dense_information_gain(rbf(0.7), domain.points[1:], 0.1))
    assert GREEDY_SHARE * gamma < greedy < 0.98 * gamma


def test_greedy_on_a_box_is_no_worse_than_on_a_dense_set():
    for kernel in (rbf(0.5), matern(1.2, nu=1.5)):
        curve = greedy_information_gain(kernel, BOX, 25, 0.05, seed=1)
        # What comes first is a matter of choice, by up to 2 %: both begin at a corner.
        points = torch.cat([BOX.bounds[:1], BOX.sample(2000, seed=4)])
        dense = greedy_information_gain(kernel, FiniteSet(points), 25, 0.05)
        assert curve.shape == (25,)
        assert bool((curve >= 0.98 * dense).all())
        assert curve[-1] >= dense[-1]
    # Of few points far apart under a long lengthscale, the best four are the corners.
    corners = torch.cartesian_prod(*BOX.bounds.T)
    found = max_information_gain(rbf(1.5), BOX, 4, 0.01)
    assert found == pytest.approx(dense_information_gain(rbf(1.5), corners, 0.01), rel=0.01)


# --- composite kernels ----------------------------------------------------------------------------

ACTIONS = torch.tensor([[2.0], [2.6], [3.7]], dtype=torch.float64)


@given(
    gain=st.floats(0, 50), other=st.floats(0, 50), rank=st.integers(1, 9), T=st.integers(1, 10**6)
)
def test_bounds_of_composite_kernels_are_their_formulas(gain, other, rank, T):
    expected = rank * gain + rank * math.log(T)
    assert product_kernel_bound(gain, rank, T) == pytest.approx(expected, rel=1e-12)
    expected = gain + other + 2 * math.log(T)
    assert additive_kernel_bound(gain, other, T) == pytest.approx(expected, rel=1e-12)


@settings(max_examples=10)
@given(ridge=ridges, T=st.integers(1, 4), rank=st.integers(1, 3), seed=seeds)
def test_bounds_hold_for_tasks(ridge, T, rank, seed):
    B = drawn(4, rank, seed=seed, low=-1.0)
    B = B / B.norm(dim=-1, keepdim=True)
    B[-1] *= 0.6  # k(z, z) < 1 of the last
    tasks, numbers = TaskKernel(B @ B.mT), torch.arange(4).double().unsqueeze(-1)
    pairs = torch.cat([ACTIONS.repeat_interleave(4, dim=0), numbers.repeat(3, 1)], dim=-1)
    action = largest_gain(rbf(0.7), ACTIONS, T, ridge)
    context = largest_gain(tasks, numbers, T, ridge)
    product = largest_gain(ActionContextKernel(rbf(0.7), tasks, 1), pairs, T, ridge)
    assert max(action, context) * (1 - 1e-12) <= product <= product_kernel_bound(action, rank, T)
    summed = ActionContextKernel(rbf(0.7), tasks, 1, combination="sum")  # halved
    doubled = largest_gain(summed, pairs, T, ridge / 2)
    assert doubled <= additive_kernel_bound(action, context, T)


# --- a bound that needs no designs ----------------------------------------------------------------


def bound_by_hand(K, T, ridge):
    """The least over D of D/2 ln(1 + T k / (lambda D)) + T r_D / (2 lambda)."""
    left, best = K.clone(), T * float(K.diagonal().max()) / (2 * ridge)
    for D in range(1, len(K) + 1):
        pivot = int(left.diagonal().argmax())
        if left[pivot, pivot] <= 1e-13:
            break
        left = left - torch.outer(left[pivot], left[pivot]) / left[pivot, pivot]
        spectral = D / 2 * math.log(1 + T * float(K.diagonal().max()) / (ridge * D))
        best = min(best, spectral + T * max(float(left.diagonal().max()), 0) / (2 * ridge))
    return best


@given(scale=st.floats(0.05, 2), T=st.integers(1, 10**6), ridge=ridges, seed=seeds)
def test_the_bound_for_any_horizon(scale, T, ridge, seed):
    points = 2 + drawn(8, 1, seed=seed)
    K = (1.7 * rbf(scale)(points).to_dense()).detach()
    found = information_gain_bound(K, T, ridge)
    assert found == pytest.approx(bound_by_hand(K, T, ridge), rel=1e-6)
    kernel = ScaleKernel(rbf(scale)).double()
    kernel.outputscale = 1.7
    few = min(T, 4)
    assert largest_gain(kernel, points, few, ridge) <= information_gain_bound(K, few, ridge) + 1e-9
    one = information_gain_bound(K[:1, :1], T, ridge)  # exact
    assert one == pytest.approx(0.5 * math.log1p(1.7 * T / ridge), rel=1e-9)
