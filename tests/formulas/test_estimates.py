"""Estimates of the norm and of the noise against dense algebra and plain loops."""

import math

import numpy as np
import pytest
import torch
from botorch.models.transforms import Standardize
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from botorch_ext import Box, KernelGP
from botorch_ext.estimates import (
    noise_std_from_repeats,
    noise_variance_by_likelihood,
    rkhs_norm_lower_estimate,
)
from tests.helpers import drawn, matern, rbf, tolerance

BOX = Box([[2.0, -3.0], [5.0, -1.5]])
TOL = tolerance(torch.float64)
seeds = st.integers(0, 1000)


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
