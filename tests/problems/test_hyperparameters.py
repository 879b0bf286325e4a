import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from scipy.optimize import minimize
from torch import Tensor

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import CorrelatedMode, HighestHill, LengthscalePeak, RepeatedSignal
from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)
LINE = Box([[0.0], [1.0]])
TWO = Box([[0.0], [2.0]])
CUBE = Box([[0.0] * 3, [1.0] * 3])


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def rbf(lengthscale: float) -> RBFKernel:
    kernel = RBFKernel().to(torch.float64)
    kernel.lengthscale = lengthscale
    return kernel


# --- lengthscale ----------------------------------------------------------------------------------


@pytest.mark.parametrize("std", [0.08, math.sqrt(0.08)])
def test_the_peak_is_a_normal_density_on_a_trend(std: float) -> None:
    problem = LengthscalePeak(peak_std=std)
    for x in (0.0, 0.17, 0.2, 0.93):
        density = math.exp(-((x - 0.2) ** 2) / (2 * std**2)) / (std * math.sqrt(2 * math.pi))
        assert float(problem([x])) == pytest.approx(0.6 * x + 0.8 * density, rel=1e-12)
    assert isinstance(problem.domain, FiniteSet)
    assert problem.domain.points.shape == (500, 1)
    assert problem.domain.points[[0, -1]].flatten().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("std", [0.08, math.sqrt(0.08)])
def test_the_maximum_of_the_peak(std: float) -> None:
    fine = column(*np.linspace(0, 1, 200_001))
    on_box = LengthscalePeak(LINE, peak_std=std)
    values = on_box(fine)
    assert on_box.optimal_value == pytest.approx(float(values.max()), abs=1e-8)
    assert on_box.optimal_value >= float(values.max())
    assert float(on_box.optimizer) == pytest.approx(float(fine[values.argmax()]), abs=1e-5)
    on_grid = LengthscalePeak(peak_std=std)
    assert on_grid.optimal_value == float(on_grid(on_grid.domain.like).max())
    assert on_grid.optimal_value <= on_box.optimal_value


def test_the_narrow_peak_is_in_the_space_of_no_candidate_and_the_wide_one_in_that_of_one() -> None:
    # Least norm of an interpolant at more and more points: bounded where the function belongs to
    # the space. A bump of standard deviation s does, of lengthscale l, where l < sqrt(2) s.
    def growth(std: float, lengthscale: float) -> float:
        kernel, norms = rbf(lengthscale), []
        for n in (8, 16):
            X = column(*np.linspace(0, 1, n))
            y = (-0.5 * ((X - 0.2) / std) ** 2).exp()
            K = kernel(X).to_dense().detach()
            norms.append(float((y.T @ torch.linalg.solve(K, y)).sqrt()))
        return norms[1] / norms[0]

    assert LengthscalePeak().true_model is None
    assert growth(0.08, 0.3) > 1000
    wide = math.sqrt(0.08)
    assert LengthscalePeak(peak_std=wide).true_model == 0
    assert growth(wide, 0.3) < 2
    assert growth(wide, 0.5) > 2


# --- period ---------------------------------------------------------------------------------------


def test_the_signal_is_continuous_repeats_and_has_its_pieces() -> None:
    problem = RepeatedSignal()
    edges = column(*problem.edges, *(1 + edge for edge in problem.edges[1:]))
    for side in (-1e-10, 0.0, 1e-10):
        torch.testing.assert_close(problem(edges + side), torch.zeros_like(edges[:, 0]), **CLOSE)
    x = column(*np.linspace(0, 1, 1000, endpoint=False))
    torch.testing.assert_close(problem(x + 1), problem(x), **CLOSE)
    middle = problem([0.28])
    assert float(middle) == pytest.approx(1.5 * math.sin(8 * math.pi * 0.03), rel=1e-12)
    expected = 1.2 * math.sin(28 / 3 * math.pi * (0.6 - 11 / 28))
    assert float(problem([0.6])) == pytest.approx(expected, rel=1e-12)
    # Each piece is one whole wave, with a maximum of its own.
    for (start, end), height in zip(pairwise(problem.edges), (1, 1.5, 1.2, 0.8), strict=True):
        piece = problem(column(*np.linspace(start, end, 2001)))
        assert float(piece.max()) == pytest.approx(height, abs=1e-5)
        assert float(piece.min()) == pytest.approx(-height, abs=1e-5)
        assert float(piece.mean()) == pytest.approx(0, abs=1e-3)


def test_the_maximum_of_the_signal() -> None:
    on_box = RepeatedSignal(TWO)
    assert on_box.optimal_value == pytest.approx(1.5, abs=1e-12)
    assert float(on_box.optimizer) % 1 == pytest.approx(5 / 16, abs=1e-6)
    on_grid = RepeatedSignal()
    assert on_grid.optimal_value == float(on_grid(on_grid.domain.like).max())
    assert 1.499 < on_grid.optimal_value <= 1.5


@pytest.mark.slow
def test_the_periods_and_lengthscales_are_the_most_likely_ones() -> None:
    problem = RepeatedSignal()
    pieces = [(0.0, 2.0, 200), *((a, b, 100) for a, b in pairwise(problem.edges))]
    for (start, end, n), stored in zip(pieces, problem.fits, strict=True):
        X = start + (end - start) * torch.arange(n, dtype=torch.float64) / n
        y, r = problem(X.unsqueeze(-1)).numpy(), (X[:, None] - X).abs().numpy()

        def deviance(log: np.ndarray, y: np.ndarray = y, r: np.ndarray = r) -> float:
            period, lengthscale = np.exp(log)
            K = np.exp(-2 * np.sin(np.pi * r / period) ** 2 / lengthscale)
            L = np.linalg.cholesky(K + 0.05**2 * np.eye(len(y)))
            return float(0.5 * (np.linalg.solve(L, y) ** 2).sum() + np.log(L.diagonal()).sum())

        # Screened over periods from half the piece to four times its length.
        least, most = (end - start) / 2, (end - start) * 4
        least = 0.1 if end == 2.0 else least
        starts = [
            (math.log(period), math.log(lengthscale))
            for period in [*np.geomspace(least, most, 40), *((1.0,) if end == 2.0 else ())]
            for lengthscale in (0.03, 0.3, 3.0, 10.0)
        ]
        starts.sort(key=lambda start: deviance(np.array(start)))
        found = min(
            (
                minimize(deviance, at, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
                for at in starts[:4]
            ),
            key=lambda found: found.fun,
        )
        assert list(stored) == pytest.approx(np.exp(found.x).tolist(), rel=5e-4)
    assert problem.fits[problem.true_model][0] == pytest.approx(1.0, abs=1e-3)
    assert all(abs(period - 1) > 0.7 for period, _ in problem.fits[1:])


# --- decomposition --------------------------------------------------------------------------------


def test_the_third_variable_does_not_matter_and_the_norm_is_that_of_the_true_kernel() -> None:
    problem = CorrelatedMode(CUBE)
    X = CUBE.sample(50, seed=0)
    moved = X.clone()
    moved[:, 2] = 0.5
    assert torch.equal(problem(X), problem(moved))
    # Interpolants in (k(x12) + k(x3)) / 2 at more and more points come close to the norm from
    # below. There are few points: the matrix of nearly dependent ones says nothing.
    k = rbf(0.2)
    norms = []
    for n in (4, 7):
        axis = torch.linspace(0, 1, n, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.0, 0.5], dtype=torch.float64))
        K = (k(X[:, :2]).to_dense() + k(X[:, 2:]).to_dense()).detach() / 2
        y = problem(X).unsqueeze(-1)
        norms.append(float((y.mT @ torch.linalg.lstsq(K, y, driver="gelsd").solution).sqrt()))
    assert norms[0] < norms[1] <= problem.norm * (1 + 1e-6)


def test_the_function_is_additive_but_for_the_corner() -> None:
    problem = CorrelatedMode(CUBE)

    def interaction(low: float, high: float) -> float:
        """The largest mixed difference on a square: 0 for a sum of functions of one variable."""
        axis = torch.linspace(low, high, 30, dtype=torch.float64)
        X = torch.cartesian_prod(axis, axis, torch.tensor([0.5], dtype=torch.float64))
        F = problem(X).reshape(30, 30)
        return float((F - F[:1] - F[:, :1] + F[0, 0]).abs().max())

    assert interaction(0.0, 0.4) < 0.02
    assert interaction(0.0, 1.0) > 1.4
    assert float(problem([0.3, 0.3, 0.1])) == pytest.approx(1.0, abs=5e-3)


def test_the_maximum_of_the_correlated_mode() -> None:
    on_box = CorrelatedMode(CUBE)
    axis = torch.linspace(0, 1, 1001, dtype=torch.float64)
    fine = torch.cartesian_prod(axis, axis, torch.tensor([0.5], dtype=torch.float64))
    values = on_box(fine)
    assert on_box.optimal_value == pytest.approx(float(values.max()), abs=1e-5)
    assert on_box.optimal_value >= float(values.max())
    torch.testing.assert_close(
        on_box.optimizer[:2], torch.tensor([0.875, 0.875]).double(), atol=5e-3, rtol=0
    )
    on_grid = CorrelatedMode()
    assert on_grid.domain.like.shape == (12**3, 3)
    assert on_grid.optimal_value == float(on_grid(on_grid.domain.like).max())
    # Where the ridges cross is a local maximum that is clearly worse.
    assert on_grid.optimal_value - 1.0 > 0.4


# --- prior mean -----------------------------------------------------------------------------------


def test_the_hills_are_where_they_are_said_to_be() -> None:
    problem = HighestHill(seed=3, height=7.0, other_height=1.5)
    for position in (0, 4, 10):
        mean = problem.mean(position)
        for i in range(10):
            height = 7.0 if i == position else 1.5
            for offset in (0.0, 0.1, -0.29):
                expected = height * math.cos(math.pi * offset / 0.6) ** 2
                assert float(mean(column(i + 0.5 + offset))) == pytest.approx(expected, rel=1e-9)
            assert float(mean(column(i + 0.5 + 0.3))) == pytest.approx(0, abs=1e-12)
            assert float(mean(column(float(i)))) == 0.0


def test_many_means_at_once_are_each_of_them() -> None:
    problem = HighestHill(seed=0)
    single = [problem.mean(position) for position in range(11)]
    many = type(single[0])(torch.stack([mean.heights for mean in single]))
    X = column(*np.linspace(0, 10, 77))
    torch.testing.assert_close(many(X), torch.stack([mean(X) for mean in single]), **CLOSE)
    with pytest.raises(ValueError, match=r"heights must be 10 numbers, got shape \(3,\)"):
        type(single[0])([1.0, 2.0, 3.0])


def test_functions_are_draws_around_the_mean_of_the_true_model() -> None:
    num_seeds = 400
    points = FiniteSet(column(0.1, 0.3, 2.5, 7.2))
    residuals, hills = [], []
    for seed in range(num_seeds):
        problem = HighestHill(seed, points)
        assert problem.true_model is not None
        hills.append(problem.true_model)
        residuals.append(problem(points.points) - problem.mean(problem.true_model)(points.points))
    Z = torch.stack(residuals)
    K = rbf(0.3)(points.points).to_dense().detach()
    # Five standard errors of a covariance of unit normals.
    torch.testing.assert_close(Z.mT @ Z / num_seeds, K, atol=5 * math.sqrt(2 / num_seeds), rtol=0.0)
    assert set(hills) == set(range(10))


# --- all ------------------------------------------------------------------------------------------

PROBLEMS = [
    LengthscalePeak(),
    RepeatedSignal(),
    RepeatedSignal(shared_lengthscale=True),
    CorrelatedMode(),
    HighestHill(0),
]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_candidates_are_the_models_of_the_paper(problem) -> None:
    models = problem.candidates()
    assert len(models) == len(problem.names)
    close = torch.full_like(models.noise_variance, problem.noise_std**2)
    torch.testing.assert_close(models.noise_variance, close, **CLOSE)
    models.require_takes(problem.domain.like)
    X = problem.domain.like[[3, 40, 200, 411]]
    _, std = models.mean_and_std(X)
    assert bool((std <= 1 + 1e-9).all())
    order = list(reversed(range(len(problem.names))))
    shuffled = problem.candidates(noise_variance=0.3, order=order)
    assert shuffled.names == [models.names[i] for i in order]
    assert float(shuffled.noise_variance[0]) == pytest.approx(0.3)
    y = problem(X)
    models = problem.candidates(noise_variance=0.3)
    for each in (models, shuffled):
        each.add(X[:2], y[:2])
    torch.testing.assert_close(
        models.log_marginal_likelihood()[order], shuffled.log_marginal_likelihood(), **CLOSE
    )
    torch.testing.assert_close(
        models.mean_and_std(X)[1][order], shuffled.mean_and_std(X)[1], **CLOSE
    )
    with pytest.raises(ValueError, match="order must be a permutation of 0 to"):
        problem.candidates(order=[0])


def dense(problem, position: int, X: Tensor) -> Tensor:
    """The prior covariance of a candidate, written out."""

    def k(X: Tensor, lengthscale: float) -> Tensor:
        return (-0.5 * (X[:, None] - X).square().sum(dim=-1) / lengthscale**2).exp()

    match problem:
        case LengthscalePeak():
            return k(X, problem.lengthscales[position])
        case RepeatedSignal():
            period, lengthscale = problem.fits[position]
            if problem.shared_lengthscale:
                lengthscale = problem.fits[0][1]
            sine = (math.pi * (X[:, 0, None] - X[:, 0]) / period).sin()
            return (-2 * sine.square() / lengthscale).exp()
        case CorrelatedMode():
            groups = problem.decompositions[position]
            return sum(k(X[:, list(group)], 0.2) for group in groups) / len(groups)
        case HighestHill():
            return k(X, 0.3)
    raise AssertionError


@pytest.mark.parametrize("problem", PROBLEMS)
def test_candidates_have_the_posterior_written_out(problem, device: torch.device) -> None:
    moved = problem.domain.to(device=device)
    if isinstance(problem, HighestHill):
        problem = HighestHill(0, moved)
    elif isinstance(problem, RepeatedSignal):
        problem = RepeatedSignal(moved, shared_lengthscale=problem.shared_lengthscale)
    else:
        problem = type(problem)(moved)
    points = problem.domain.like[torch.arange(0, problem.domain.num_points, 37)]
    X, Z = points[:6], points[6:9]
    models = problem.candidates(noise_variance=0.1)
    models.add(X, problem(X))
    got = models.mean_and_std(Z)
    assert got[0].device == problem.domain.device
    for position in range(len(problem.names)):
        K = dense(problem, position, torch.cat([X, Z]))
        A = torch.linalg.inv(K[:6, :6] + 0.1 * torch.eye(6).to(K))
        prior = torch.zeros(9).to(K)
        if isinstance(problem, HighestHill):
            prior = problem.mean(position).to(K)(torch.cat([X, Z]))
        mean = prior[6:] + K[6:, :6] @ A @ (problem(X) - prior[:6])
        variance = (K[6:, 6:] - K[6:, :6] @ A @ K[:6, 6:]).diagonal()
        torch.testing.assert_close(got[0][position], mean, **CLOSE)
        torch.testing.assert_close(got[1][position], variance.sqrt(), **CLOSE)
