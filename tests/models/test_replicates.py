"""Designs with repeats against dense algebra with a row for every evaluation."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.models.replicates import RepeatedDesign, mean_from_counts
from tests.helpers import drawn, matern, rbf, tolerance
from tests.kernel_functions.kernels import scaled
from tests.oracles.posterior import dense_information_gain, dense_posterior

LAMBDA = 0.03
EXACT = tolerance(torch.float64)


def candidates(N):
    return 3 + drawn(N, 2) * torch.tensor([1.0, 4.0])


def evaluated(N, n):
    # Few candidates often, some never.
    return (N * drawn(n, seed=1) ** 2).long()


def design_of(kernel, X, rows):
    design = RepeatedDesign(KernelGP(kernel, LAMBDA), X)
    for row in rows.tolist():
        design.add(row)
    return design


def require_dense(design, kernel, X, rows):
    _, covariance = dense_posterior(kernel, X[rows], X[rows, 0], X, LAMBDA)
    assert_close(design.std, covariance.diagonal().sqrt(), **EXACT)
    gain = X.new_tensor(dense_information_gain(kernel, X[rows], LAMBDA))
    assert_close(design.information_gain(), gain, **EXACT)
    assert_close(design.counts, torch.bincount(rows, minlength=len(X)))
    assert (design.num_observations, design.dim) == (len(rows), 2)


# Fewer evaluations than candidates; more; and so many that rows are folded several times.
@pytest.mark.parametrize(
    ("kernel", "N", "n"),
    [
        (scaled(rbf(0.7), 0.7), 40, 25),
        (matern(0.7, 0.9, nu=1.5), 30, 90),
        (matern(0.7, 0.9), 30, 300),
        (rbf(0.7), 140, 300),
        (matern(0.7, nu=1.5), 1, 5),
    ],
)
def test_a_design_is_the_dense_posterior_also_of_counts_and_after_removals(kernel, N, n):
    X, rows = candidates(N), evaluated(N, n)
    design = design_of(kernel, X, rows)
    require_dense(design, kernel, X, rows)
    counts = torch.bincount(rows, minlength=N)
    of_counts = RepeatedDesign.from_counts(KernelGP(kernel, LAMBDA), X, counts)
    counts.zero_()  # they are copied
    require_dense(of_counts, kernel, X, rows)
    design.remove(int(rows[3]))
    more = torch.tensor([7, 7, 2]) % N
    for row in more.tolist():
        design.add(row)
    require_dense(design, kernel, X, torch.cat([rows[:3], rows[4:], more]))


def numbers_of(design):
    return design.variance.clone(), design.information_gain().clone(), design.counts.clone()


@pytest.mark.parametrize("seed", range(3))
def test_successors_leave_what_came_before(seed):
    generator = torch.Generator().manual_seed(seed)
    model, some = KernelGP(matern(0.7), LAMBDA), candidates(20)
    design, counts = RepeatedDesign(model, some), torch.zeros(20, dtype=torch.long)
    for _ in range(60):
        before, new, own = numbers_of(design), design.successor(), counts.clone()
        row = int(torch.randint(20, (), generator=generator))
        removes = own[row] and torch.rand((), generator=generator) < 0.2
        (new.remove if removes else new.add)(row)
        own[row] += -1 if removes else 1
        known = RepeatedDesign.from_counts(model, some, own)
        for ours, theirs in zip(numbers_of(new), numbers_of(known), strict=True):
            assert_close(ours, theirs, **EXACT)
        assert all(map(torch.equal, numbers_of(design), before))
        if torch.rand((), generator=generator) < 0.7:  # else it is dropped
            design, counts = new, own
    assert counts.sum() > 20


@pytest.mark.parametrize("mean", [None, lambda X: X.sum(dim=-1)])
def test_means_from_counts_are_those_of_all_observations(mean):
    X, rows, kernel = candidates(30), evaluated(30, 90), matern(0.7, nu=1.5)
    values = torch.sin(5 * X[rows, 0]) + torch.linspace(-1, 1, 90, dtype=torch.float64)
    counts = torch.bincount(rows, minlength=30)
    sums = torch.zeros(30, dtype=torch.float64).index_add(0, rows, values)
    model = KernelGP(kernel, LAMBDA, mean=mean)
    prior = torch.zeros(30, dtype=torch.float64) if mean is None else mean(X)
    expected, _ = dense_posterior(kernel, X[rows], values - prior[rows], X, LAMBDA)
    assert_close(mean_from_counts(model, X, counts, sums), prior + expected, **EXACT)
    assert_close(mean_from_counts(model, X, 0 * counts, 0 * sums), prior)


def test_float32_is_kept_and_repeats_at_little_noise_do_no_harm():
    X = candidates(20).float()
    design = RepeatedDesign(KernelGP(matern(0.7), 1e-10, dtype=torch.float32), X)
    for _ in range(40):
        design.add(3)
    assert design.std.dtype == torch.float32
    assert bool(torch.isfinite(design.std).all())
    assert float(design.std[3]) < 1e-2
