"""Fits of hyperparameters: the highest posterior density, in units of the observations, and when
they are made."""

import math

import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from scipy.optimize import minimize

import botorch_ext as bx
from botorch_ext.hyperparameters.fitted import (
    Hyperparameters,
    location_and_scale,
    most_probable,
    prior_mode,
)
from botorch_ext.records import decoded, plain
from tests.helpers import drawn, matern

PRIOR = bx.Fitted().prior


def data(n=14, d=2, seed=0):
    U = drawn(n, d, seed=seed)
    return U, (5 * U[:, 0]).sin() + 0.3 * U[:, -1] + 0.1 * drawn(n, seed=seed + 50)


def log_density(parameters, U, Y):
    """As GPyTorch has it, with BoTorch's priors: log normal without the Jacobian."""
    *lengthscales, noise, mean = parameters
    K = matern(*map(math.exp, lengthscales))(U).to_dense().detach()
    K = K + math.exp(noise) * torch.eye(len(U), dtype=torch.float64)
    y = (Y - Y.mean()) / Y.std()
    value = float(MultivariateNormal(torch.full_like(y, mean), K).log_prob(y))
    mode = math.sqrt(2) + math.log(len(lengthscales)) / 2 - 3
    value -= 0.5 * sum((length - mode) ** 2 / 3 for length in lengthscales)
    return value - 0.5 * (noise + 5.0) ** 2


@pytest.mark.parametrize("seed", range(2))
def test_no_point_that_scipy_finds_is_more_probable(seed):
    U, Y = data(seed=seed)
    found, square = most_probable(PRIOR, U, Y), float(Y.var())
    own = [math.log(length) for length in found.lengthscales]
    own.append(math.log(found.noise_variance / square))
    own.append((found.mean - float(Y.mean())) / math.sqrt(square))
    assert found.outputscale == pytest.approx(square)
    bounds = [(-3.6, 6.9)] * 2 + [(-9.2, 1.3), (-5, 5)]
    for start in ([-0.5, -0.5, -3.0, 0.0], [1.0, 1.0, -6.0, 0.0]):
        end = minimize(lambda p: -log_density(p, U, Y), start, bounds=bounds)
        assert log_density(own, U, Y) > -end.fun - 1e-4
    # A mode that no other start leads to is kept.
    near = (*found.lengthscales, found.noise_variance / found.outputscale)
    again = most_probable(PRIOR, U, Y, near=near)
    assert again.lengthscales == pytest.approx(found.lengthscales, rel=1e-2)


@pytest.mark.parametrize(("shift", "factor"), [(3.0, 1.0), (0.0, 1e12), (-7e-9, 1e-8)])
def test_fits_follow_the_units_of_the_observations(shift, factor):
    U, Y = data()
    own, other = most_probable(PRIOR, U, Y), most_probable(PRIOR, U, shift + factor * Y)
    close = pytest.approx
    assert other.lengthscales == close(own.lengthscales, rel=1e-3)
    assert other.noise_variance == close(factor**2 * own.noise_variance, rel=1e-3)
    assert other.outputscale == close(factor**2 * own.outputscale, rel=1e-9)
    assert other.mean == close(shift + factor * own.mean, rel=1e-3, abs=1e-3 * factor)


def test_two_features_share_the_lengthscale_of_their_group():
    found = most_probable(PRIOR, *data(d=3), groups=torch.tensor([0, 1, 1]))
    assert len(found.lengthscales) == 2


@pytest.mark.parametrize(
    ("values", "location", "scale"),
    [
        ([], 0.0, 1.0),
        ([0.0, 0.0, 0.0], 0.0, 1.0),
        ([-4.0], -4.0, 4.0),
        ([1e12] * 3, 1e12, 1e12),
        ([1e12, 1e12 + 2], 1e12 + 1, math.sqrt(2)),
    ],
)
def test_location_and_scale_of_few_and_of_equal_values(values, location, scale):
    found = location_and_scale(torch.tensor(values, dtype=torch.float64))
    assert found == (location, pytest.approx(scale, rel=1e-3))
    _, huge = location_and_scale(torch.tensor([0.0, 1e300], dtype=torch.float64))
    assert math.isfinite(huge**2)


def test_the_mode_of_the_prior():
    mode = prior_mode(PRIOR, 2, torch.tensor([3.0, 5.0]).double())
    assert mode.lengthscales == pytest.approx((math.exp(math.sqrt(2) - 3 + math.log(2) / 2),) * 2)
    assert (mode.mean, mode.outputscale) == (4.0, pytest.approx(2.0))
    assert mode.noise_variance == pytest.approx(2 * math.exp(-5))
    assert decoded(Hyperparameters, plain(mode), "fit") == mode
    with pytest.raises(ValueError, match="prior"):
        bx.Fitted(prior=3)


@pytest.mark.parametrize(
    ("fitted", "due"),
    [
        (bx.Fitted(), [*range(2, 51), 55, 60, 66, 72, 79]),  # then when there are a tenth more
        (bx.Fitted(every=1), list(range(2, 80))),
        (bx.Fitted(every=5), list(range(2, 80, 5))),
    ],
)
def test_fits_are_due_at_numbers_of_observations(fitted, due):
    assert [n for n in range(1, 80) if fitted.num_due(n) > fitted.num_due(n - 1)] == due
    assert [fitted.num_due(n) for n in (0, 1, 2)] == [0, 0, 1]
