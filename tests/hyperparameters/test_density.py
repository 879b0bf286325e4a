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


def data(n, p):
    X = drawn(n, p, seed=n + p)
    y = torch.sin(5 * X).sum(dim=-1) + 0.1 * drawn(n, seed=1)
    return X, (y - y.mean()) / y.std() if n else y


def somewhere(num, dim):
    g = torch.Generator().manual_seed(dim)
    parameters = 0.7 * torch.randn(num, dim, generator=g, dtype=torch.float64)
    parameters[:, -2] -= 3
    return parameters


def log_prior(row):
    d = len(row) - 2
    of_lengthscales = Normal(math.sqrt(2) + math.log(d) / 2 - 3, math.sqrt(3))
    of_ends = Normal(-4.0, 2.0).log_prob(row[-2]) + Normal(-2.0, 3.0).log_prob(row[-1])
    return of_lengthscales.log_prob(row[:-2]).sum() + of_ends


def dense(X, y, row, lengthscale_of):
    """The definition, for one row of parameters."""
    if not len(X):
        return log_prior(row)
    lengthscales, share = row[lengthscale_of].exp(), row[-1].sigmoid()
    K = row[-2].exp() * torch.eye(len(X), dtype=torch.float64)
    for kernel, weight in ((RBFKernel, share), (partial(MaternKernel, nu=2.5), 1 - share)):
        part = kernel(ard_num_dims=X.shape[-1]).double()
        part.lengthscale = lengthscales
        K = K + weight * part(X, X).to_dense().detach()
    inverse = K.inverse()
    mean = (inverse @ y).sum() / inverse.sum()
    return MultivariateNormal(mean.expand(len(X)), K).log_prob(y) + log_prior(row)


def slopes(density, parameters):
    """Central differences, extrapolated three times."""
    columns = []
    for step in torch.eye(parameters.shape[-1]).to(parameters):
        tries = [
            (density.value(parameters + h * step) - density.value(parameters - h * step)) / (2 * h)
            for h in (0.02, 0.01, 0.005, 0.0025)
        ]
        for order in (4, 16, 64):
            tries = [(order * b - a) / (order - 1) for a, b in pairwise(tries)]
        columns.append(tries[0])
    return torch.stack(columns, dim=-1)


@pytest.mark.parametrize(
    ("n", "groups"), [(9, [0]), (9, [0, 1, 2]), (2, [0, 1, 2]), (0, [0, 1]), (9, [0, 1, 1, 2])]
)
def test_values_are_those_of_the_definition_and_gradients_those_of_the_values(n, groups, device):
    X, y = data(n, len(groups))
    of_groups = torch.tensor(groups, device=device) if len(set(groups)) < len(groups) else None
    density = Density(X.to(device), y.to(device), Prior(), of_groups)
    parameters = somewhere(5, groups[-1] + 3)
    assert density.dim == groups[-1] + 3
    values, gradient = density.value_and_gradient(parameters.to(device))
    assert_close(values, density.value(parameters.to(device)))
    expected = torch.stack([dense(X, y, row, groups) for row in parameters])
    # Up to a constant.
    values = values.cpu()
    assert_close(values - values[0], expected - expected[0], **tolerance(values.dtype))
    assert_close(gradient, slopes(density, parameters.to(device)), rtol=1e-8, atol=1e-8)


def test_duplicates_and_the_ends_of_the_range():
    X, y = data(8, 2)
    X[3] = X[4] = X[5]
    density = Density(X, y, Prior())
    odds = math.log(1e-4 / (1 - 1e-4))
    lower = [math.log(0.025), math.log(0.025), math.log(1e-4), odds]
    upper = [math.log(1000.0), math.log(1000.0), math.log(4.0), -odds]
    assert_close(density.lower.tolist(), lower)
    assert_close(density.upper.tolist(), upper)
    ends = torch.cartesian_prod(*torch.stack([density.lower, density.upper]).mT)
    values, gradient = density.value_and_gradient(ends)
    assert values.isfinite().all() and gradient.isfinite().all()
    # Beyond them, and where no matrix is, it is impossible.
    far = [[60.0, 60, -900, 0], [800, 0, 0, 900], [-800, -800, -900, 0], [0, 0, 800, 0]]
    beyond = torch.cat([ends * (1 + 1e-6), torch.tensor(far).double(), somewhere(1, 4)])
    values, gradient = density.value_and_gradient(beyond)
    assert (values[:-1] == -math.inf).all() and values[-1].isfinite()
    assert gradient.isfinite().all()


def test_prior_draws_are_of_the_truncated_prior():
    """One of all six fails by chance once in 10,000."""
    X, y = data(4, 1)
    prior = Prior(noise=(3e-3, 4.0), lengthscales=(0.2, 5.0))
    density = Density(X, y, prior)
    draws = density.prior_draws(20_000, torch.Generator().manual_seed(0))
    assert ((draws >= density.lower) & (draws <= density.upper)).all()
    normal = Normal(*prior.moments(1, X))
    low, high = normal.cdf(density.lower), normal.cdf(density.upper)
    for share in (0.1, 0.5):
        below = (draws < normal.icdf(low + share * (high - low))).double().mean(dim=0)
        assert ((below - share).abs() < 4.4 * math.sqrt(share * (1 - share) / len(draws))).all()
