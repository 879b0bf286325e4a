"""Designs with repeats against dense algebra with a row for every evaluation."""

from copy import deepcopy

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.kernel_functions import freeze
from botorch_ext.models.conditioning import condition
from botorch_ext.models.replicates import RepeatedDesign, mean_from_counts
from tests.helpers import drawn, rbf, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

LAMBDA = 0.03


def kernel(smoothness):
    if smoothness is None:
        return ScaleKernel(RBFKernel()).double().requires_grad_(False)
    return MaternKernel(nu=smoothness, ard_num_dims=2).double().requires_grad_(False)


def candidates(N, seed=0):
    return 3 + drawn(N, 2, seed=seed) * torch.tensor([1.0, 4.0])


def evaluated(N, n, seed=1):
    # Few candidates often, some never.
    return (N * drawn(n, seed=seed) ** 2).long()


def dense(k, X, rows, values=None):
    """Mean, standard deviation and information gain with one row for each evaluation."""
    Y = torch.zeros(len(rows), dtype=X.dtype) if values is None else values
    mean, covariance = dense_posterior(k, X[rows], Y, X, LAMBDA)
    gain = X.new_tensor(dense_information_gain(k, X[rows], LAMBDA))
    return mean, covariance.diagonal().sqrt(), gain


# Fewer evaluations than candidates; more; and so many that rows are folded several times.
@pytest.mark.parametrize(
    ("smoothness", "N", "n"),
    [(None, 40, 25), (1.5, 30, 90), (2.5, 30, 300), (None, 140, 300), (1.5, 1, 5)],
)
def test_a_design_is_the_dense_posterior(smoothness, N, n) -> None:
    k, X, rows = kernel(smoothness), candidates(N), evaluated(N, n)
    design = RepeatedDesign(KernelGP(k, LAMBDA), X)
    for row in rows.tolist():
        design.add(row)
    _, std, gain = dense(k, X, rows)
    assert_close(design.std, std, **tolerance(X.dtype))
    assert_close(design.information_gain(), gain, **tolerance(X.dtype))
    assert_close(design.counts, torch.bincount(rows, minlength=N))
    assert design.num_observations == n
    assert design.dim == 2


@pytest.mark.parametrize(("N", "n"), [(40, 25), (30, 300)])
def test_counts_alone_give_the_same_design(N, n) -> None:
    k, X, rows = kernel(1.5), candidates(N), evaluated(N, n)
    counts = torch.bincount(rows, minlength=N)
    design = RepeatedDesign.from_counts(KernelGP(k, LAMBDA), X, counts)
    _, std, gain = dense(k, X, rows)
    assert_close(design.std, std, **tolerance(X.dtype))
    assert_close(design.information_gain(), gain, **tolerance(X.dtype))


@pytest.mark.parametrize("n", [6, 200])
def test_what_is_taken_back_is_forgotten(n) -> None:
    k, X, rows = kernel(2.5), candidates(30), evaluated(30, n)
    design = RepeatedDesign(KernelGP(k, LAMBDA), X)
    for row in rows.tolist():
        design.add(row)
    design.remove(int(rows[3]))
    for row in (7, 7, 2):
        design.add(row)
    left = torch.cat([rows[:3], rows[4:], torch.tensor([7, 7, 2])])
    _, std, gain = dense(k, X, left)
    assert_close(design.std, std, **tolerance(X.dtype))
    assert_close(design.information_gain(), gain, **tolerance(X.dtype))
    only = RepeatedDesign(KernelGP(k, LAMBDA), X)
    only.add(4)
    only.remove(4)
    assert_close(only.std, torch.ones_like(only.std))


@pytest.mark.parametrize("n", [20, 200])
def test_a_copy_goes_its_own_way(n) -> None:
    X, rows = candidates(30), evaluated(30, n)
    design = RepeatedDesign(KernelGP(kernel(2.5), LAMBDA), X)
    for row in rows.tolist():
        design.add(row)
    std, gain, copy = design.std, design.information_gain(), deepcopy(design)
    for row in range(30):
        copy.add(row)
    assert bool((copy.std < std).all())
    assert_close(design.std, std, rtol=0, atol=0)
    assert_close(design.information_gain(), gain, rtol=0, atol=0)
    for row in range(30):  # the same arithmetic
        design.add(row)
    assert_close(design.std, copy.std, rtol=0, atol=0)


@pytest.mark.parametrize("mean", [None, lambda X: X.sum(dim=-1)])
def test_means_from_counts_are_those_of_all_observations(mean) -> None:
    k, X, rows = kernel(1.5), candidates(30), evaluated(30, 90)
    values = torch.sin(5 * X[rows, 0]) + torch.linspace(-1, 1, 90, dtype=torch.float64)
    counts = torch.bincount(rows, minlength=30)
    sums = torch.zeros(30, dtype=torch.float64).index_add(0, rows, values)
    model = KernelGP(k, LAMBDA, mean=mean)
    prior = torch.zeros(30, dtype=torch.float64) if mean is None else mean(X)
    expected, _, _ = dense(k, X, rows, values - prior[rows])
    got = mean_from_counts(model, X, counts, sums)
    assert_close(got, prior + expected, **tolerance(X.dtype))
    nothing = mean_from_counts(model, X, torch.zeros_like(counts), torch.zeros_like(sums))
    assert_close(nothing, prior)


def test_float32_is_kept_and_repeats_at_little_noise_do_no_harm() -> None:
    X = candidates(20).float()
    design = RepeatedDesign(KernelGP(kernel(2.5), 1e-10, dtype=torch.float32), X)
    for _ in range(40):
        design.add(3)
    assert design.std.dtype == torch.float32
    assert bool(torch.isfinite(design.std).all())
    assert float(design.std[3]) < 1e-2


def test_variances_conditioned_on_one_point_after_another_are_those_of_a_dense_solve():
    X, noise, chosen = candidates(30), 0.1, [3, 17, 3, 20, 8]
    K = freeze(rbf(0.4), X.dtype, X.device)(X, X)
    V, variance = X.new_empty(5, 30), K.diagonal().clone()
    for n, row in enumerate(chosen):
        root = (variance[row] + noise).sqrt()
        condition(V, variance, n, K[row], V[:n, row].clone(), root)
        points = X[chosen[: n + 1]]
        _, covariance = dense_posterior(rbf(0.4), points, points[:, 0], X, noise)
        assert_close(variance, covariance.diagonal(), **tolerance(X.dtype))
