"""The density against GPyTorch's kernels and a dense normal density."""

import math
from functools import partial
from itertools import pairwise

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.distributions import MultivariateNormal, Normal
from torch.testing import assert_close

from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.prior import Prior
from tests.helpers import drawn, tolerance

PRIOR = Prior()


def data(n, p, device="cpu"):
    X = drawn(n, p, seed=n + p)
    y = torch.sin(5 * X).sum(dim=-1) + 0.1 * drawn(n, seed=1)
    return X.to(device), ((y - y.mean()) / y.std()).to(device)


def somewhere(num, dim):
    g = torch.Generator().manual_seed(dim)
    parameters = 0.7 * torch.randn(num, dim, generator=g, dtype=torch.float64)
    parameters[:, -2] -= 3
    return parameters


def dense(X, y, row, lengthscale_of=None):
    """The definition, for one row of parameters."""
    p = X.shape[-1]
    lengthscales, share = row[[*(lengthscale_of or range(p))]].exp(), row[-1].sigmoid()
    K = row[-2].exp() * torch.eye(len(X), dtype=torch.float64)
    for kernel, weight in ((RBFKernel, share), (partial(MaternKernel, nu=2.5), 1 - share)):
        part = kernel(ard_num_dims=p).double()
        part.lengthscale = lengthscales
        K = K + weight * part(X, X).to_dense()
    inverse = K.inverse()
    mean = (inverse @ y).sum() / inverse.sum()
    return MultivariateNormal(mean.expand(len(X)), K).log_prob(y)


def log_prior(row):
    d = len(row) - 2
    of_lengthscales = Normal(math.sqrt(2) + math.log(d) / 2 - 3, math.sqrt(3))
    of_ends = Normal(-4.0, 2.0).log_prob(row[-2]) + Normal(-2.0, 3.0).log_prob(row[-1])
    return of_lengthscales.log_prob(row[:-2]).sum() + of_ends


@pytest.mark.parametrize("p", [1, 3])
@torch.no_grad()
def test_differences_are_those_of_the_definition(p, device):
    X, y = data(9, p, device)
    parameters = somewhere(5, p + 2)
    density = Density(X, y, PRIOR)
    values = density.value(parameters.to(device)).cpu()
    X, y = X.cpu(), y.cpu()
    expected = torch.stack([dense(X, y, row) + log_prior(row) for row in parameters])
    # Up to a constant.
    assert_close(values - values[0], expected - expected[0], **tolerance(values.dtype))


@torch.no_grad()
def test_features_of_one_column_share_a_lengthscale():
    X, y = data(9, 4)
    of = [0, 1, 1, 2]
    density = Density(X, y, PRIOR, torch.tensor(of))
    assert density.dim == 5
    parameters = somewhere(4, 5)
    values = density.value(parameters)
    expected = torch.stack([dense(X, y, row, of) + log_prior(row) for row in parameters])
    assert_close(values - values[0], expected - expected[0], **tolerance(values.dtype))
    together, gradient = density.value_and_gradient(parameters)
    assert_close(together, values)
    assert_close(gradient, slopes(density, parameters), rtol=1e-8, atol=1e-8)


def slopes(density, parameters):
    """Central differences, extrapolated twice."""
    columns = []
    for column in range(parameters.shape[-1]):
        step = torch.zeros_like(parameters)
        step[:, column] = 1
        tries = [
            (density.value(parameters + h * step) - density.value(parameters - h * step)) / (2 * h)
            for h in (0.02, 0.01, 0.005, 0.0025)
        ]
        for order in (4, 16, 64):
            tries = [(order * b - a) / (order - 1) for a, b in pairwise(tries)]
        columns.append(tries[0])
    return torch.stack(columns, dim=-1)


@pytest.mark.parametrize("n", [2, 12])
def test_gradients_are_those_of_the_values(n, device):
    X, y = data(n, 3, device)
    density = Density(X, y, PRIOR)
    parameters = somewhere(6, 5).to(device)
    values, gradient = density.value_and_gradient(parameters)
    assert_close(values, density.value(parameters))
    assert_close(gradient, slopes(density, parameters), rtol=1e-8, atol=1e-8)


def test_duplicates_and_the_ends_of_the_range():
    X, y = data(8, 2)
    X[3] = X[4] = X[5]
    density = Density(X, y, PRIOR)
    odds = math.log(1e-4 / (1 - 1e-4))
    lower = [math.log(0.025), math.log(0.025), math.log(1e-4), odds]
    assert_close(density.lower, torch.tensor(lower, dtype=torch.float64))
    upper = [math.log(1000.0), math.log(1000.0), math.log(4.0), -odds]
    assert_close(density.upper, torch.tensor(upper, dtype=torch.float64))
    ends = torch.cartesian_prod(*torch.stack([density.lower, density.upper]).mT)
    values, gradient = density.value_and_gradient(ends)
    assert values.isfinite().all()
    assert gradient.isfinite().all()
    assert (density.value(ends * (1 + 1e-6)) == -math.inf).all()


def test_parameters_that_no_matrix_has_are_impossible():
    X, y = data(12, 2)
    X[3] = X[4]
    density = Density(X, y, PRIOR)
    far = torch.tensor(
        [[60.0, 60, -900, 0], [800, 0, 0, 900], [-800, -800, -900, 0], [0, 0, 800, 0]]
    ).double()
    values, gradient = density.value_and_gradient(torch.cat([far, somewhere(1, 4)]))
    assert (values[:-1] == -math.inf).all()
    assert values[-1].isfinite()
    assert gradient.isfinite().all()


def test_without_data_it_is_the_prior():
    X, y = data(4, 2)
    density = Density(X[:0], y[:0], PRIOR)
    parameters = somewhere(3, 4)
    values, gradient = density.value_and_gradient(parameters)
    expected = torch.stack([log_prior(row) for row in parameters])
    assert_close(values - values[0], expected - expected[0])
    assert_close(gradient, slopes(density, parameters), rtol=1e-8, atol=1e-8)


def test_prior_draws_are_of_the_truncated_prior():
    """One of all six fails by chance once in 10,000."""
    X, y = data(4, 1)
    prior = Prior(noise=(3e-3, 4.0), lengthscales=(0.2, 5.0))
    density = Density(X, y, prior)
    draws = density.prior_draws(20_000, torch.Generator().manual_seed(0))
    assert (draws >= density.lower).all()
    assert (draws <= density.upper).all()
    mean, spread = prior.moments(1, X)
    for column in range(3):
        normal = Normal(mean[column], spread[column])
        limits = torch.stack([density.lower[column], density.upper[column]])
        low, high = normal.cdf(limits)
        middle = normal.icdf((low + high) / 2)
        for quantile, share in ((middle, 0.5), (normal.icdf(low + 0.1 * (high - low)), 0.1)):
            below = float((draws[:, column] < quantile).double().mean())
            assert abs(below - share) < 4.4 * math.sqrt(share * (1 - share) / len(draws))
