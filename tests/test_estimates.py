import math

import numpy as np
import pytest
import torch
from botorch.models.transforms import Standardize
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

from botorch_ext import Box, KernelGP
from botorch_ext.estimates import (
    noise_std_from_repeats,
    noise_variance_by_likelihood,
    rkhs_norm_lower_estimate,
)
from botorch_ext.problems import RKHSFunction
from tests.helpers import tolerance

BOX = Box([[2.0, -3.0], [5.0, -1.5]])
TOL = tolerance(torch.float64)


def rbf(lengthscale=(0.9, 0.5)):
    kernel = RBFKernel(ard_num_dims=2).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def matern():
    kernel = MaternKernel(nu=1.5).double()
    kernel.lengthscale = torch.tensor(0.7, dtype=torch.float64)
    return kernel


def draw(n, seed):
    g = torch.Generator().manual_seed(seed)
    X = BOX.sample(n, seed)
    return X, torch.sin(3 * X[:, 0]) + 0.3 * torch.randn(n, generator=g, dtype=torch.float64)


def norm(kernel, X, y, noise):
    K = kernel(X, X).to_dense().detach() + noise * torch.eye(len(X), dtype=X.dtype)
    return (y @ torch.linalg.solve(K, y)).sqrt()


# --- the RKHS norm --------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [rbf(), matern()], ids=["rbf", "matern"])
def test_the_norm_estimate_is_its_formula(kernel, device):
    X, y = draw(30, 0)
    model = KernelGP(kernel, 0.05, device=device)
    for rows in (slice(0, 1), slice(1, 12), slice(12, 30)):
        model.add(X[rows].to(device), y[rows].to(device))
        n = rows.stop
        assert_close(rkhs_norm_lower_estimate(model).cpu(), norm(kernel, X[:n], y[:n], 0.05), **TOL)


def test_the_norm_is_in_the_units_of_an_outcome_transform():
    X, y = draw(20, 1)
    standardize = Standardize(1)
    standardize(y[:, None])
    model = KernelGP(rbf(), 0.05, outcome_transform=standardize.eval())
    model.add(X, y)
    expected = norm(rbf(), X, (y - y.mean()) / y.std(), 0.05)
    assert_close(rkhs_norm_lower_estimate(model), expected, **TOL)


def test_the_prior_mean_is_taken_off_and_pending_rows_do_not_count():
    X, y = draw(20, 1)
    mean = ConstantMean().double()
    mean.constant.data.fill_(1.5)
    model = KernelGP(rbf(), 0.05, mean=mean)
    model.add(X[:12], y[:12])
    model.add(X[12:], None)
    expected = norm(rbf(), X[:12], y[:12] - 1.5, 0.05)
    assert_close(rkhs_norm_lower_estimate(model), expected, **TOL)


def test_a_batch_of_models_has_a_norm_each():
    X, y = draw(15, 2)
    noise = torch.tensor([0.01, 0.1], dtype=torch.float64)
    model = KernelGP(rbf(), noise)
    model.add(X, y)
    expected = torch.stack([norm(rbf(), X, y, value) for value in noise])
    assert_close(rkhs_norm_lower_estimate(model), expected, **TOL)


@pytest.mark.parametrize("kernel", [rbf(), matern()], ids=["rbf", "matern"])
@pytest.mark.parametrize("seed", range(4))
def test_without_noise_it_grows_towards_the_norm_and_never_exceeds_it(kernel, seed):
    f = RKHSFunction.random(BOX, kernel, norm=2.5, num_centers=12, seed=seed)
    X = torch.cat([BOX.sample(40, seed + 10), f.centers])
    model = KernelGP(kernel, 1e-8)
    previous = 0.0
    for x in X:
        model.add(x[None], f(x[None]))
        estimate = rkhs_norm_lower_estimate(model).item()
        assert previous - 1e-9 <= estimate <= 2.5
        previous = estimate
    # The centres span f: with them the norm is found, but for the ridge.
    assert previous == pytest.approx(2.5, rel=1e-3)


def test_there_must_be_data():
    with pytest.raises(ValueError, match="model must have observations, got none"):
        rkhs_norm_lower_estimate(KernelGP(rbf(), 0.1))


# --- noise from repeats ---------------------------------------------------------------------------


@pytest.mark.parametrize("column", [False, True])
def test_noise_from_repeats_is_the_pooled_deviation(column, device):
    counts = [1, 4, 2, 1, 7]
    rng = np.random.default_rng(0)
    points = BOX.sample(len(counts), 3)
    groups = [10 * i + 0.3 * rng.standard_normal(n) for i, n in enumerate(counts)]
    pooled = sum((n - 1) * np.var(g, ddof=1) for n, g in zip(counts, groups, strict=True) if n > 1)
    expected = math.sqrt(pooled / (sum(counts) - len(counts)))
    X = torch.cat([x.repeat(n, 1) for x, n in zip(points, counts, strict=True)])
    Y = torch.from_numpy(np.concatenate(groups))
    order = torch.from_numpy(rng.permutation(len(X)))
    Y = Y[order, None] if column else Y[order]
    got = noise_std_from_repeats(X[order].to(device), Y.to(device))
    assert got == pytest.approx(expected, rel=1e-12)


def test_noise_from_repeats_finds_the_noise():
    g = torch.Generator().manual_seed(1)
    X = BOX.sample(200, 4).repeat(6, 1)
    Y = torch.sin(X[:, 0]) + 0.25 * torch.randn(1200, generator=g, dtype=torch.float64)
    # The standard error with 1,000 degrees of freedom is 0.25 / sqrt(2000); four of them are a
    # false alarm in 6e-5 of the seeds.
    assert abs(noise_std_from_repeats(X, Y) - 0.25) < 4 * 0.25 / math.sqrt(2000)
    assert noise_std_from_repeats(X, torch.sin(X[:, 0])) < 1e-15


def test_noise_from_repeats_refuses():
    X, y = draw(5, 5)
    with pytest.raises(ValueError, match="X must contain repeated points, got none"):
        noise_std_from_repeats(X, y)
    with pytest.raises(ValueError, match=r"Y must have shape \(5, 1\) or \(5,\), got \(4,\)"):
        noise_std_from_repeats(X, y[:4])
    with pytest.raises(ValueError, match="Y must be finite"):
        noise_std_from_repeats(X, y / 0)
    with pytest.raises(ValueError, match=r"Y must be torch.float64 on cpu, got torch.float32"):
        noise_std_from_repeats(X, y.float())


# --- noise by likelihood --------------------------------------------------------------------------


def log_likelihood(kernel, X, y, noise):
    K = kernel(X, X).to_dense().detach() + noise * torch.eye(len(X), dtype=X.dtype)
    normal = torch.distributions.MultivariateNormal(X.new_zeros(len(X)), K)
    return normal.log_prob(y).item()


@pytest.mark.parametrize("kernel", [rbf(), matern()], ids=["rbf", "matern"])
@pytest.mark.parametrize("seed", range(3))
def test_no_noise_variance_of_a_fine_grid_is_likelier(kernel, seed):
    X, y = draw(25, seed)
    best = noise_variance_by_likelihood(kernel, X, y[:, None])
    assert 1e-6 <= best <= 1.0
    top = log_likelihood(kernel, X, y, best)
    grid = torch.logspace(-6, 0, 241, dtype=torch.float64).tolist()
    likelihoods = [log_likelihood(kernel, X, y, noise) for noise in grid]
    assert max(likelihoods) <= top + 1e-6
    nearest = grid[likelihoods.index(max(likelihoods))]
    assert abs(math.log10(best / nearest)) < 6 / 240  # one cell of the grid


def test_the_best_of_two_maxima_is_found():
    # Explained by a fast component or by noise alone: a long lengthscale leaves two maxima.
    kernel = rbf((0.12, 0.12))
    g = torch.Generator().manual_seed(3)
    X = BOX.sample(12, 7)
    X = torch.cat([X, X + 0.01])
    signal = torch.randn(12, generator=g, dtype=torch.float64).repeat(2)
    for scale, low in ((1e-3, True), (3.0, False)):
        y = signal + scale * torch.randn(24, generator=g, dtype=torch.float64)
        best = noise_variance_by_likelihood(kernel, X, y, lower=1e-6, upper=10.0)
        grid = torch.logspace(-6, 1, 141, dtype=torch.float64).tolist()
        top = max(log_likelihood(kernel, X, y, noise) for noise in grid)
        assert log_likelihood(kernel, X, y, best) >= top - 1e-6
        assert (best < 0.1) == low


def test_the_noise_of_a_sample_is_recovered_and_limits_hold():
    g = torch.Generator().manual_seed(2)
    X = BOX.sample(400, 8)
    K = rbf()(X, X).to_dense().detach() + 0.04 * torch.eye(400, dtype=torch.float64)
    y = torch.linalg.cholesky(K) @ torch.randn(400, generator=g, dtype=torch.float64)
    assert noise_variance_by_likelihood(rbf(), X, y) == pytest.approx(0.04, rel=0.3)
    assert noise_variance_by_likelihood(rbf(), X, y, 0.1, 0.5) == pytest.approx(0.1, rel=1e-3)
    assert noise_variance_by_likelihood(rbf(), X, y, 1e-4, 0.01) == pytest.approx(0.01, rel=1e-3)


def test_the_kernel_stays_as_it_is(device):
    kernel = rbf().float()
    X, y = draw(10, 9)
    noise_variance_by_likelihood(kernel, X.to(device), y.to(device))
    assert kernel.lengthscale.dtype == torch.float32
    assert kernel.lengthscale.device.type == "cpu"
    assert kernel.raw_lengthscale.requires_grad


@pytest.mark.parametrize(
    ("lower", "upper"), [(0.0, 1.0), (-1.0, 1.0), (0.5, 0.5), (1.0, 0.1), (0.1, math.inf)]
)
def test_impossible_limits_are_refused(lower, upper):
    with pytest.raises(ValueError, match="lower and upper must satisfy 0 < lower < upper"):
        noise_variance_by_likelihood(rbf(), *draw(5, 0), lower, upper)


def test_bad_data_is_refused():
    X, y = draw(5, 0)
    with pytest.raises(ValueError, match="X must be finite"):
        noise_variance_by_likelihood(rbf(), X * math.nan, y)
    with pytest.raises(ValueError, match=r"Y must have shape \(5, 1\) or \(5,\)"):
        noise_variance_by_likelihood(rbf(), X, y[:3])
    with pytest.raises(ValueError, match=r"kernel must have no batch dimensions.*got .*\(2,\)"):
        noise_variance_by_likelihood(RBFKernel(batch_shape=torch.Size([2])), X, y)
