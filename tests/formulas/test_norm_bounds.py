"""The certified lower bound of the RKHS norm, against its definition and its event."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.analysis.estimates import rkhs_norm_lower_bound
from botorch_ext.models.norm_bounds import squared_norm_bound
from botorch_ext.widths.tight import RIDGES
from tests.helpers import drawn, matern, rbf, tolerance

POINTS = drawn(30, 2, seed=1)


class Event:
    """The quantities of the event of all ridges, by dense algebra."""

    def __init__(self, K: Tensor, y: Tensor, ridges: list[float], sigma: float, delta: float):
        self.K, self.y, self.sigma = K.numpy(), y.numpy(), sigma
        self.ridges, self.union = ridges, math.log(len(ridges) / delta)

    def q(self, a: float) -> float:
        return a * self.y @ np.linalg.solve(self.K + a * np.eye(len(self.K)), self.y)

    def gain(self, a: float) -> float:
        return 0.5 * np.linalg.slogdet(np.eye(len(self.K)) + self.K / a)[1]

    def noise(self) -> float:
        """R^2, the largest squared norm of the noise, if the model has no misspecification."""
        unit = 2 * self.sigma**2
        logs = [-self.gain(a) - self.q(a) / unit for a in self.ridges]
        return float(unit * (self.union - np.logaddexp.reduce(logs)))

    def norm(self, eps: float, lam: float) -> float:
        """The largest lower bound of the squared norm over the 49 ridges."""
        best, n = 0.0, len(self.y)
        for a in (lam * 10 ** (j / 12) for j in range(49)):
            if not eps:
                best = max(best, (self.q(a) - self.noise()) / a)
            for low in self.ridges:
                if a > low * (1 + 1e-9):
                    c = math.sqrt((a**0.5 - low**0.5) / (a**0.5 + low**0.5))
                    root = math.sqrt(max(self.q(a) - self.q(low), 0)) - c * eps * math.sqrt(n)
                    g = 2 * self.sigma**2 * (self.gain(low) + self.union)
                    best = max(best, (max(root, 0.0) ** 2 - g) / a)
        return math.sqrt(best)


def gram(kernel, X: Tensor) -> Tensor:
    return kernel(X, X).to_dense().detach()


@pytest.mark.parametrize("eps", [0.0, 0.1])
@pytest.mark.parametrize("num", [1, 2, 11, 30])
@pytest.mark.parametrize(("kernel", "noise", "sigma"), [(rbf(0.4), 0.02, 0.1), (matern(0.3), 1, 2)])
def test_the_bound_is_that_of_the_formula(kernel, noise, sigma, num, eps):
    X, y = POINTS[:num], 4 * drawn(num, seed=num, low=-1)
    X = torch.cat([X, X[:5]])  # repeats make K singular
    y = torch.cat([y, y[:5] + 0.1])
    ridges = [noise * ridge for ridge in RIDGES]
    expected = Event(gram(kernel, X), y, ridges, sigma, 0.03).norm(eps, noise)
    assert expected > 0 or sigma == 2
    model = bx.KernelGP(kernel, noise)
    model.add(X, y)
    assert_close(float(rkhs_norm_lower_bound(model, sigma, 0.03, eps)), expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_known_residuals_of_every_model_enter_alone(dtype):
    X, y = POINTS.to(dtype), (3 * drawn(30, seed=3)).to(dtype)
    kernel, noises = matern(0.4), [0.02, 0.1]
    ridges = torch.tensor(noises, dtype=dtype)
    batched = bx.KernelGP(kernel.to(dtype), ridges, mean=1.5, dtype=dtype)
    finite = bx.FinitePosterior(kernel, X, ridges, mean=1.5)
    for model in batched, finite:
        model.add(X[:9], y[:9])
        model.add(X[9:12], None)
        model.add(X[12:], y[12:])
    known = [*range(9), *range(12, 30)]
    K, residuals = gram(matern(0.4), X[known].double()), y[known].double() - 1.5
    events = [Event(K, residuals, [a * r for r in RIDGES], 0.1, 0.1) for a in noises]
    expected = [event.norm(0.05, a) for event, a in zip(events, noises, strict=True)]
    for model in batched, finite:
        found = rkhs_norm_lower_bound(model, 0.1, misspecification=0.05)
        assert_close(found, torch.tensor(expected, dtype=torch.float64), **tolerance(dtype))


@pytest.mark.parametrize("eps", [0.0, 0.1])
def test_the_unit_and_the_order_of_the_data_do_not_matter(eps):
    K, y = gram(rbf(0.4), POINTS), 3 * drawn(30, seed=4, low=-1)
    expected = squared_norm_bound(K, y, 0.1, RIDGES, 0.2, 0.1, eps)
    scaled = squared_norm_bound(K, 7 * y, 0.1, RIDGES, 7 * 0.2, 0.1, 7 * eps)
    assert scaled == pytest.approx(49 * expected)
    order = torch.randperm(30, generator=torch.Generator().manual_seed(0))
    shuffled = squared_norm_bound(K[order][:, order], y[order], 0.1, RIDGES, 0.2, 0.1, eps)
    assert shuffled == pytest.approx(expected)


def test_the_mean_of_the_martingale_is_one():
    # The ridges exceed the eigenvalues, or the variance would be infinite. A right formula fails
    # with probability below 1e-4.
    sigma, ridges, K = 0.5, [6.0, 24.0], gram(rbf(0.4), POINTS[:3])
    rng, f = np.random.default_rng(0), np.array([0.4, -0.2, 0.1])
    values = []
    for xi in sigma * rng.standard_normal((20_000, 3)):
        event = Event(K, torch.from_numpy(f + xi), ridges, sigma, 1.0)
        values.append(math.exp((xi @ xi - event.noise()) / (2 * sigma**2)))
    error = np.std(values) / math.sqrt(len(values))
    assert error < 0.02
    assert abs(np.mean(values) - 1) < 4 * error


def test_what_is_refused():
    model = bx.KernelGP(rbf(0.4), 0.1)
    with pytest.raises(ValueError, match="model must have observations"):
        rkhs_norm_lower_bound(model, 0.1)
    model.add(POINTS[:2], None)
    with pytest.raises(ValueError, match="model must have observations"):
        rkhs_norm_lower_bound(model, 0.1)
    model.add(POINTS[2:4], [1.0, 2.0])
    for numbers, name in (((0.0,), "noise_std"), ((1, 1.0), "delta"), ((1, 0.1, -1), "misspec")):
        with pytest.raises(ValueError, match=name):
            rkhs_norm_lower_bound(model, *numbers)
    with pytest.raises(ValueError, match="model must be a KernelGP"):
        rkhs_norm_lower_bound(rbf(0.4), 0.1)
