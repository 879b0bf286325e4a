"""Problems with unknown hyperparameters: what makes them hard, and their candidate models."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.domains import Box, FiniteSet
from botorch_ext.kernels import AdditiveKernel
from botorch_ext.problems import CorrelatedMode, HighestHill, LengthscalePeak, RepeatedSignal
from tests.helpers import rbf, tolerance
from tests.kernel_functions.kernels import periodic

CLOSE = tolerance(torch.float64)


def column(*values):
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def test_a_peak_is_in_the_space_of_the_models_whose_lengthscale_is_short_enough():
    # A bump of standard deviation s belongs to the space of lengthscale l where l < sqrt(2) s.
    assert LengthscalePeak().true_model is None
    assert LengthscalePeak(peak_std=math.sqrt(0.08)).true_model == 0


@pytest.mark.slow
def test_the_periods_and_lengthscales_are_the_most_likely_ones():
    problem = RepeatedSignal()
    pieces = [(0.0, 2.0, 200), *((a, b, 100) for a, b in pairwise(problem.edges))]
    for (start, end, n), stored in zip(pieces, problem.fits, strict=True):
        X = start + (end - start) * torch.arange(n, dtype=torch.float64) / n
        y, r = problem(X.unsqueeze(-1)).numpy(), (X[:, None] - X).abs().numpy()

        def deviance(log, y=y, r=r):
            period, lengthscale = np.exp(log)
            K = np.exp(-2 * np.sin(np.pi * r / period) ** 2 / lengthscale)
            L = np.linalg.cholesky(K + 0.05**2 * np.eye(len(y)))
            return float(0.5 * (np.linalg.solve(L, y) ** 2).sum() + np.log(L.diagonal()).sum())

        # Screened over periods from half the piece to four times its length.
        least, most = 0.1 if end == 2.0 else (end - start) / 2, (end - start) * 4
        periods = [*np.geomspace(least, most, 40), *((1.0,) if end == 2.0 else ())]
        starts = [np.log([p, length]) for p in periods for length in (0.03, 0.3, 3.0, 10.0)]
        starts.sort(key=deviance)
        close = {"xatol": 1e-7, "fatol": 1e-9}
        ends = [minimize(deviance, at, method="Nelder-Mead", options=close) for at in starts[:4]]
        found = min(ends, key=lambda end: end.fun)
        assert list(stored) == pytest.approx(np.exp(found.x).tolist(), rel=5e-4)
    assert problem.fits[problem.true_model][0] == pytest.approx(1.0, abs=1e-3)
    assert all(abs(period - 1) > 0.7 for period, _ in problem.fits[1:])


def test_the_norm_of_the_correlated_mode_is_that_of_the_true_kernel():
    problem, k, norms = CorrelatedMode(), rbf(0.2), []
    # Interpolants in (k(x12) + k(x3)) / 2 at more and more points come close to the norm from
    # below. There are few points: the matrix of nearly dependent ones says nothing.
    for n in (4, 7):
        axis = torch.linspace(0, 1, n, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.0, 0.5], dtype=torch.float64))
        K = (k(X[:, :2]).to_dense() + k(X[:, 2:]).to_dense()).detach() / 2
        y = problem(X).unsqueeze(-1)
        norms.append(float((y.mT @ torch.linalg.lstsq(K, y, driver="gelsd").solution).sqrt()))
    assert norms[0] < norms[1] <= problem.norm * (1 + 1e-6)


def test_the_correlated_mode_is_additive_but_for_the_corner_with_its_maximum():
    problem = CorrelatedMode(Box([[0.0] * 3, [1.0] * 3]))
    X = problem.domain.sample(50, seed=0)
    moved = torch.cat([X[:, :2], torch.full_like(X[:, 2:], 0.5)], dim=-1)
    assert torch.equal(problem(X), problem(moved))

    def interaction(low, high):
        """The largest mixed difference on a square: 0 for a sum of functions of one variable."""
        axis = torch.linspace(low, high, 30, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.5], dtype=torch.float64))
        F = problem(X).reshape(30, 30)
        return float((F - F[:1] - F[:, :1] + F[0, 0]).abs().max())

    assert interaction(0.0, 0.4) < 0.02
    assert interaction(0.0, 1.0) > 1.4
    assert float(problem([0.3, 0.3, 0.1])) == pytest.approx(1.0, abs=5e-3)
    assert problem.optimizer[:2].tolist() == pytest.approx([0.875, 0.875], abs=5e-3)
    assert CorrelatedMode().optimal_value > 1.4


def test_functions_with_hills_are_draws_around_the_mean_of_the_true_model():
    num_seeds, points = 400, FiniteSet(column(0.1, 0.3, 2.5, 7.2))
    residuals, hills = [], set()
    for seed in range(num_seeds):
        problem = HighestHill(seed, points)
        hills.add(problem.true_model)
        residuals.append(problem(points.points) - problem.mean(problem.true_model)(points.points))
    Z = torch.stack(residuals)
    K = rbf(0.3)(points.points).to_dense().detach()
    # Five standard errors of a covariance of unit normals.
    assert_close(Z.mT @ Z / num_seeds, K, atol=5 * math.sqrt(2 / num_seeds), rtol=0.0)
    assert hills == set(range(10))


MADE = {
    "peak": LengthscalePeak,
    "signal": RepeatedSignal,
    "one lengthscale": lambda domain=None: RepeatedSignal(domain, shared_lengthscale=True),
    "decomposition": CorrelatedMode,
    "hills": lambda domain=None: HighestHill(0, domain),
}


def kernel_of(problem, position):
    match problem:
        case LengthscalePeak():
            return rbf(problem.lengthscales[position])
        case RepeatedSignal():
            period, lengthscale = problem.fits[position]
            return periodic(
                period, problem.fits[0][1] if problem.shared_lengthscale else lengthscale
            )
        case CorrelatedMode():
            return AdditiveKernel(rbf(0.2), problem.decompositions[position], 3)
    return rbf(0.3)


@pytest.mark.parametrize("name", MADE)
def test_candidates_have_the_posterior_of_their_kernels_in_any_order(name, device):
    problem = MADE[name](MADE[name]().domain.to(device=device))
    noise = problem.candidates().noise_variance
    assert_close(noise, torch.full_like(noise, problem.noise_std**2), **CLOSE)
    points = problem.domain.like[torch.arange(0, problem.domain.num_points, 37)]
    X, Z, order = points[:6], points[6:9], list(reversed(range(len(problem.names))))
    models = problem.candidates(noise_variance=0.1, order=order)
    assert models.names == problem.candidates().names[::-1]
    models.add(X, problem(X))
    mean, std = models.mean_and_std(Z)
    assert mean.device == problem.domain.device
    for i, position in enumerate(order):
        prior = problem.mean(position) if isinstance(problem, HighestHill) else None
        alone = KernelGP(kernel_of(problem, position), 0.1, prior, device=mean.device)
        alone.add(X, problem(X))
        for found, expected in zip((mean[i], std[i]), alone.mean_and_std(Z), strict=True):
            assert_close(found, expected, **CLOSE)
    with pytest.raises(ValueError, match="order"):
        problem.candidates(order=[0])
