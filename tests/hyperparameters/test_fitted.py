"""Fits of hyperparameters: the highest posterior density, in units of the observations, and when
they are made."""

import math

import pytest
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel
from scipy.optimize import minimize

import botorch_ext as bx
from botorch_ext.hyperparameters.fitted import (
    Fitted,
    Hyperparameters,
    location_and_scale,
    most_probable,
    prior_mode,
)
from tests.helpers import drawn

PRIOR = Fitted().prior


def data(n=14, d=2, seed=0):
    U = drawn(n, d, seed=seed)
    return U, (5 * U[:, 0]).sin() + 0.3 * U[:, -1] + 0.1 * drawn(n, seed=seed + 50)


def log_density(parameters, U, Y):
    """As GPyTorch has it, with BoTorch's priors: log normal without the Jacobian."""
    *lengthscales, noise, mean = parameters
    d = len(lengthscales)
    kernel = MaternKernel(nu=2.5, ard_num_dims=d).double()
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64).exp()
    K = kernel(U).to_dense() + math.exp(noise) * torch.eye(len(U), dtype=torch.float64)
    y = (Y - Y.mean()) / Y.std()
    value = float(MultivariateNormal(torch.full_like(y, mean), K).log_prob(y).detach())
    for length in lengthscales:
        value -= 0.5 * ((length - (math.sqrt(2) + math.log(d) / 2 - 3)) / math.sqrt(3)) ** 2
    return value - 0.5 * (noise + 5.0) ** 2


@pytest.mark.parametrize("seed", range(2))
def test_no_point_that_scipy_finds_is_more_probable(seed):
    U, Y = data(seed=seed)
    found = most_probable(PRIOR, U, Y)
    square = float(Y.var())
    own = [math.log(length) for length in found.lengthscales]
    own += [
        math.log(found.noise_variance / square),
        (found.mean - float(Y.mean())) / math.sqrt(square),
    ]
    assert found.outputscale == pytest.approx(square)
    best = -math.inf
    for start in ([-0.5, -0.5, -3.0, 0.0], [1.0, 1.0, -6.0, 0.0]):
        bounds = [(-3.6, 6.9)] * 2 + [(-9.2, 1.3), (-5, 5)]
        end = minimize(lambda p: -log_density(p, U, Y), start, bounds=bounds)
        best = max(best, -end.fun)
    assert log_density(own, U, Y) > best - 1e-4


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
    U, Y = data(d=3)
    found = most_probable(PRIOR, U, Y, groups=torch.tensor([0, 1, 1]))
    assert len(found.lengthscales) == 2


def test_a_start_near_the_last_fit_counts():
    """A mode that no other start leads to is kept."""
    U, Y = data()
    found = most_probable(PRIOR, U, Y)
    near = (*found.lengthscales, found.noise_variance / found.outputscale)
    assert most_probable(PRIOR, U, Y, near=near).lengthscales == pytest.approx(
        found.lengthscales, rel=1e-2
    )


def test_location_and_scale_of_few_and_of_equal_values():
    assert location_and_scale(torch.zeros(0).double()) == (0.0, 1.0)
    assert location_and_scale(torch.zeros(3).double()) == (0.0, 1.0)
    assert location_and_scale(torch.tensor([-4.0]).double()) == (-4.0, 4.0)
    assert location_and_scale(torch.full((3,), 1e12, dtype=torch.float64)) == (1e12, 1e12)
    mean, scale = location_and_scale(torch.tensor([1e12, 1e12 + 2], dtype=torch.float64))
    assert mean == 1e12 + 1 and scale == pytest.approx(math.sqrt(2), rel=1e-3)
    _, scale = location_and_scale(torch.tensor([0.0, 1e300], dtype=torch.float64))
    assert math.isfinite(scale**2)


def test_the_mode_of_the_prior():
    mode = prior_mode(PRIOR, 2, torch.tensor([3.0, 5.0]).double())
    assert mode.lengthscales == pytest.approx((math.exp(math.sqrt(2) - 3 + math.log(2) / 2),) * 2)
    assert (mode.mean, mode.outputscale) == (4.0, pytest.approx(2.0))
    assert mode.noise_variance == pytest.approx(2 * math.exp(-5))


def test_fits_are_due_at_numbers_of_observations():
    """At every one from two to 50, then when there are a tenth more."""

    def due(fitted, most):
        return [n for n in range(1, most) if fitted.num_due(n) > fitted.num_due(n - 1)]

    assert due(bx.Fitted(), 80) == [*range(2, 51), 55, 60, 66, 72, 79]
    assert due(bx.Fitted(every=1), 9) == [2, 3, 4, 5, 6, 7, 8]
    assert due(bx.Fitted(every=5), 20) == [2, 7, 12, 17]
    assert [bx.Fitted(every=5).num_due(n) for n in (0, 1, 2, 6, 7)] == [0, 0, 1, 1, 2]


def test_impossible_schedules_and_priors_are_refused():
    for every in (0, -1, 2.5, "3", True):
        with pytest.raises(ValueError, match="every"):
            bx.Fitted(every=every)
    with pytest.raises(ValueError, match="prior"):
        bx.Fitted(prior=3)


def test_a_record_is_what_was_recorded():
    numbers = Hyperparameters((0.3, 2.0), 0.1, 4.0, -1.0)
    assert Hyperparameters.from_record(numbers.record(), 2, "fit") == numbers
