"""Outcomes: standardised, the low ones squeezed or bent, units kept."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.outcomes import Outcomes
from botorch_ext.hyperparameters.prior import Prior
from tests.helpers import drawn
from tests.oracles.particles import model_of, standardised

CPU = torch.device("cpu")
BENDS = pytest.mark.parametrize("bend", [0.0, 0.3, 1000.0])


def of(*values, bend=0.0):
    return Outcomes.of(torch.tensor(values, dtype=torch.float64), CPU, bend)


def by_definition(values, bend):
    if not bend:
        return standardised(torch.tensor(values, dtype=torch.float64))[0].tolist()
    n, top = len(values), max(values)
    best = sorted(values, reverse=True)[: math.ceil(2 * n / 3)]
    unit = math.sqrt(sum((top - v) ** 2 for v in best) / len(best))
    moved = [top - unit * math.log1p(bend * (top - v) / unit) / bend for v in values]
    mean = sum(moved) / n
    spread = math.sqrt(sum((v - mean) ** 2 for v in moved) / n)
    return [(v - mean) / spread for v in moved]


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0, 4.0),
        (0.1, 0.5, 0.4, -90.0, 0.7, 0.2, -1e5),
        (5.0, 5.0, 5.0, -20.0, 5.0, 6.0),
    ],
)
@BENDS
def test_it_is_the_formula_and_can_be_undone(values, bend):
    outcomes, told = of(*values, bend=bend), torch.tensor(values, dtype=torch.float64)
    assert_close(outcomes.values.tolist(), by_definition(values, bend))
    own = outcomes.values.clone().requires_grad_()
    back, slopes = outcomes.restored(own)
    assert_close(back, told, rtol=1e-9, atol=1e-9)
    (expected,) = torch.autograd.grad(back.sum(), own)
    below = told < told.max()
    assert_close(slopes[below], expected[below])
    # Above the best value units are kept.
    above = outcomes.untransformed(outcomes.values.max() + 1)
    assert_close(above, told.max() + outcomes.scale)
    if bend:
        assert_close(outcomes.untransformed(outcomes.values), told, rtol=1e-8, atol=1e-8)
        assert_close(outcomes.slope(outcomes.values)[below], expected[below])
        assert_close(outcomes.log_slopes, -float(outcomes.slope(outcomes.values).log().sum()))


def test_squeezed_values_have_known_slopes():
    outcomes = of(5.0, 5.0, 5.0, -20.0, 5.0, 6.0)
    unit = math.sqrt(3 / 4)
    slope = 0.3 / (1 + (6 - 4 * unit + 20) / unit)
    assert_close(outcomes.log_slopes, math.log(slope) - 6 * math.log(outcomes.scale))


def log_likelihood(X, values, parameters):
    """Log density of observations of GPs around their likeliest constants, averaged: dense."""
    logs = []
    for row in parameters:
        k, noise = model_of(row)
        K = k(X, X) + noise * torch.eye(len(X))
        inverse, one = K.inverse(), torch.ones_like(values)
        constant = (one @ inverse @ values) / (one @ inverse @ one)
        logs.append(MultivariateNormal(constant * one, K).log_prob(values))
    return torch.stack(logs).logsumexp(0) - math.log(len(logs))


@pytest.mark.parametrize("power", [1, 12])
def test_the_likeliest_bend_has_the_highest_density_of_the_observations(power):
    """Values that are spread over orders of magnitude are bent, and plain ones are not."""
    X = drawn(24, 2)
    y = torch.cos(4 * X[:, 0]) + X[:, 1] - (X[:, 0] * X[:, 1]).square()
    Y = -((2.5 - y) ** power)
    density = Density(X, Outcomes.of(Y, CPU).values, Prior())
    parameters = density.prior_draws(6, torch.Generator().manual_seed(1))
    parameters[:, :2].clamp_(-1.0, 0.5)
    found = [Outcomes.of(Y, CPU, bend) for bend in (0.0, 0.3, 1.0, 3.0, 10.0)]
    own = [log_likelihood(X, o.values, parameters) + o.log_slopes for o in found]
    own[0] = own[0] + 2.0  # the plain one has a head start
    likeliest = Outcomes.likeliest(Y, density, parameters)
    assert likeliest.bend == found[int(torch.stack(own).argmax())].bend
    assert bool(likeliest.bend) == (power > 1)


@pytest.mark.parametrize("values", [(), (3.0,), (7.0, 7.0, 7.0)])
def test_without_a_spread_they_are_zero(values):
    outcomes = of(*values)
    assert outcomes.values.tolist() == [0.0] * len(values)
    assert outcomes.scale == 1
    assert outcomes.center == (values[0] if values else outcomes.center)


@pytest.mark.parametrize(
    ("size", "shift", "bend"),
    [(1e-310, 0, 0), (1e160, 0, 100.0), (1.7e308, 0, 0), (1e-12, 1e-6, 0), (1e12, 1e18, 0)],
)
def test_units_do_not_matter_to_the_ends_of_the_numbers(size, shift, bend):
    shares = torch.tensor([-1.0, 0.2, 0.4, 1.0], dtype=torch.float64)
    outcomes = Outcomes.of(shift + size * shares, CPU, bend)
    assert_close(outcomes.values, Outcomes.of(shares, CPU, bend).values, rtol=0, atol=1e-6)
    if bend:
        assert outcomes.untransformed(outcomes.values - 1e3).isfinite().all()
