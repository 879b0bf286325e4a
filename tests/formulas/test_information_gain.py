"""Information gain against plain loops and exact maxima; estimates of the norm and of the noise."""

import itertools
import math

import numpy as np
import pytest
import torch
from botorch.models.transforms import Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet, KernelGP
from botorch_ext.analysis import information_gain_bound
from botorch_ext.analysis.estimates import (
    noise_std_from_repeats,
    noise_variance_by_likelihood,
    rkhs_norm_lower_estimate,
)
from botorch_ext.analysis.information_gain import (
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


def test_the_curve_is_on_the_device_of_the_domain(device):
    points, kernel = BOX.sample(20, seed=1), rbf(0.5)
    expected = greedy_information_gain(kernel, FiniteSet(points), 12, 0.1)
    domain = FiniteSet(points, device=device)
    found = greedy_information_gain(kernel.to(device), domain, 12, 0.1)
    assert found.device == domain.device
    assert_close(found.cpu(), expected, **TOL)


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


def data(n, seed):
    X = BOX.sample(n, seed)
    return X, torch.sin(3 * X[:, 0]) + drawn(n, seed=seed, low=-0.5, high=0.5)


@torch.no_grad()
def ridged(kernel, X, noise):
    return kernel(X, X).to_dense() + noise * torch.eye(len(X), dtype=X.dtype)


def norm(kernel, X, y, noise):
    return (y @ torch.linalg.solve(ridged(kernel, X, noise), y)).sqrt()


# --- the RKHS norm --------------------------------------------------------------------------------


@settings(max_examples=10)
@given(seed=seeds, make=st.sampled_from([rbf, matern]), noise=st.floats(0.01, 1))
def test_the_norm_is_its_formula(seed, make, noise):
    kernel, (X, y) = make(0.9, 0.5), data(20, seed)
    mean = ConstantMean().double()
    mean.constant.data.fill_(1.5)
    standardize = Standardize(1)
    standardize(y[:, None])
    units = {"outcome_transform": standardize.eval()}
    noises = torch.tensor([noise, 2 * noise], dtype=torch.float64)
    for model, values in (
        (KernelGP(kernel, noise), y),
        (KernelGP(kernel, noise, mean=mean), y - 1.5),
        (KernelGP(kernel, noise, **units), (y - y.mean()) / y.std()),
        (KernelGP(kernel, noises), y),
    ):
        for rows in (slice(0, 1), slice(1, 12)):
            model.add(X[rows], y[rows])
            expected = norm(kernel, X[: rows.stop], values[: rows.stop], noise)
            found = rkhs_norm_lower_estimate(model)
            assert_close(found if found.ndim == 0 else found[0], expected, **TOL)
        model.add(X[12:], None)  # pending
        found = rkhs_norm_lower_estimate(model)
        assert_close(found if found.ndim == 0 else found[0], expected, **TOL)
        if found.ndim:
            assert_close(found[1], norm(kernel, X[:12], y[:12], 2 * noise), **TOL)


def test_a_norm_needs_data(device):
    model = KernelGP(rbf(0.9, 0.5), 0.1, device=device)
    with pytest.raises(ValueError, match="model must have observations"):
        rkhs_norm_lower_estimate(model)
    with pytest.raises(ValueError, match="model must be a KernelGP"):
        rkhs_norm_lower_estimate(RBFKernel())
    X, y = data(5, 0)
    model.add(X.to(device), y.to(device))
    assert_close(rkhs_norm_lower_estimate(model).cpu(), norm(rbf(0.9, 0.5), X, y, 0.1), **TOL)


# --- noise from repeats ---------------------------------------------------------------------------


@given(
    counts=st.lists(st.integers(1, 7), min_size=1, max_size=6).filter(lambda n: max(n) > 1),
    seed=seeds,
    column=st.booleans(),
)
def test_noise_from_repeats_is_the_pooled_deviation(counts, seed, column):
    rng, points = np.random.default_rng(seed), BOX.sample(len(counts), 3)
    groups = [10 * i + 0.3 * rng.standard_normal(n) for i, n in enumerate(counts)]
    squares = sum((value - sum(g) / len(g)) ** 2 for g in groups for value in g.tolist())
    order = torch.from_numpy(rng.permutation(sum(counts)))
    X = torch.cat([x.repeat(n, 1) for x, n in zip(points, counts, strict=True)])[order]
    Y = torch.from_numpy(np.concatenate(groups))[order]
    found = noise_std_from_repeats(X, Y[:, None] if column else Y)
    assert found == pytest.approx(math.sqrt(squares / (sum(counts) - len(counts))), rel=1e-9)


# --- noise by likelihood --------------------------------------------------------------------------


def log_likelihoods(kernel, X, y, noises):
    """The log density of a normal distribution, without the constant."""
    K = torch.stack([ridged(kernel, X, noise) for noise in noises])
    Y = y.expand(len(K), -1)
    return -0.5 * (torch.linalg.solve(K, Y) * y).sum(dim=-1) - 0.5 * torch.linalg.slogdet(K)[1]


@settings(max_examples=10)
@given(seed=seeds, make=st.sampled_from([rbf, matern]), scale=st.floats(0.01, 2))
def test_no_noise_variance_of_a_fine_grid_is_likelier(seed, make, scale):
    kernel, X = make(0.12, 0.3), BOX.sample(9, seed)
    X = torch.cat([X, X + 0.01])  # of two maxima, one is explained by noise alone
    y = drawn(9, seed=seed, low=-1.5, high=1.5).repeat(2)
    y = y + scale * drawn(18, seed=seed + 1, low=-1.0)
    best = noise_variance_by_likelihood(kernel, X, y[:, None], 1e-5, 10.0)
    assert 1e-5 <= best <= 10.0
    grid = torch.logspace(-5, 1, 61, dtype=torch.float64).tolist()
    found, *others = log_likelihoods(kernel, X, y, [best, *grid]).tolist()
    assert found >= max(others) - 1e-5


def test_the_noise_of_a_sample_is_recovered_within_limits():
    X, g = BOX.sample(400, 8), torch.Generator().manual_seed(2)
    K, kernel = ridged(rbf(0.9, 0.5), X, 0.04), rbf(0.9, 0.5)
    y = torch.linalg.cholesky(K) @ torch.randn(400, generator=g, dtype=torch.float64)
    assert noise_variance_by_likelihood(kernel, X, y) == pytest.approx(0.04, rel=0.3)
    assert noise_variance_by_likelihood(kernel, X, y, 0.1, 0.5) == pytest.approx(0.1, rel=1e-3)
    assert noise_variance_by_likelihood(kernel, X, y, 1e-4, 0.01) == pytest.approx(0.01, rel=1e-3)
    zeros = torch.zeros(5, dtype=torch.float64)
    assert noise_variance_by_likelihood(kernel, X[:5], zeros) == pytest.approx(1e-6, rel=1e-3)
    ones = noise_variance_by_likelihood(kernel, X[:5], 1e3 + zeros)
    assert ones == pytest.approx(1.0, rel=1e-3)  # the limits where none is given


def test_the_kernel_stays_as_it_is(device):
    kernel, (X, y) = RBFKernel(), data(10, 9)
    noise_variance_by_likelihood(kernel, X.to(device), y.to(device))
    assert kernel.lengthscale.dtype == torch.float32
    assert kernel.lengthscale.device.type == "cpu"
    assert kernel.raw_lengthscale.requires_grad
