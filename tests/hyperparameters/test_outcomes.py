"""Outcomes: standardised, the low ones squeezed or bent, units kept."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

from botorch_ext.hyperparameters.density import Density, split
from botorch_ext.hyperparameters.outcomes import Outcomes
from botorch_ext.hyperparameters.prior import Prior
from tests.helpers import drawn, tolerance

CPU = torch.device("cpu")


def of(*values):
    return Outcomes.of(torch.tensor(values, dtype=torch.float64), CPU)


def by_definition(values, bend=0.0):
    """The formula."""
    n = len(values)

    def standard(y):
        mean = sum(y) / n
        spread = math.sqrt(sum((v - mean) ** 2 for v in y) / n)
        return [(v - mean) / spread for v in y]

    top, best = max(values), sorted(values, reverse=True)[: math.ceil(2 * n / 3)]
    unit = math.sqrt(sum((top - v) ** 2 for v in best) / len(best))
    lowest = top - 4 * unit
    if bend:
        return standard([top - unit * math.log1p(bend * (top - v) / unit) / bend for v in values])
    squeezed = [
        v if v >= lowest else lowest - 0.3 * unit * math.log1p((lowest - v) / unit) for v in values
    ]
    return standard(squeezed)


@pytest.mark.parametrize(
    "values",
    [
        (1.0, 2.0, 3.0, 4.0),
        (0.1, 0.5, 0.4, -90.0, 0.7, 0.2, -3.0),
        (5.0, 5.0, 5.0, -20.0, 5.0, 6.0),
    ],
)
@pytest.mark.parametrize("bend", [0.0, 0.3, 1000.0])
def test_it_is_the_formula(values, bend):
    outcomes = Outcomes.of(torch.tensor(values, dtype=torch.float64), CPU, bend)
    assert_close(outcomes.values, torch.tensor(by_definition(values, bend), dtype=torch.float64))


@pytest.mark.parametrize("bend", [0.3, 1000.0])
def test_slopes_of_bent_values_are_those_of_the_map_back(bend):
    values = torch.tensor([0.1, 0.5, 0.4, -90.0, 0.7, 0.2], dtype=torch.float64)
    outcomes = Outcomes.of(values, CPU, bend)
    own = outcomes.values.clone().requires_grad_()
    back = outcomes.untransformed(own)
    assert_close(back, values, **tolerance(back.dtype))
    # The slopes belong to the map with everything but the values held fixed.
    (slopes,) = torch.autograd.grad(back.sum(), own)
    below = values < values.max()
    assert_close(outcomes.slope(outcomes.values)[below], slopes[below])
    assert_close(outcomes.log_slopes, -float(outcomes.slope(outcomes.values).log().sum()))
    above = outcomes.untransformed(outcomes.values.max() + 1)
    assert_close(above, values.max() + outcomes.scale)


def test_squeezed_values_have_known_slopes():
    values = torch.tensor([5.0, 5.0, 5.0, -20.0, 5.0, 6.0], dtype=torch.float64)
    unit = math.sqrt(3 / 4)
    slope = 0.3 / (1 + (6 - 4 * unit + 20) / unit)
    outcomes = Outcomes.of(values, CPU)
    assert_close(outcomes.log_slopes, math.log(slope) - 6 * math.log(outcomes.scale))


def _draws(seed, n=24):
    """Points, and values of a smooth function of them."""
    X = drawn(n, 2, seed=seed)
    return X, torch.cos(4 * X[:, 0]) + X[:, 1] - (X[:, 0] * X[:, 1]).square()


def _likelihood(X, values, parameters):
    """Log density of observations of GPs around their likeliest constants, averaged: dense."""
    logs = []
    for row, noise, odds in zip(*split(parameters), strict=True):
        r = ((X[:, None] - X[None]) / row.exp()).square().sum(-1)
        d = (5 * r).sqrt()
        share = odds.sigmoid()
        K = share * (-r / 2).exp() + (1 - share) * (1 + d + d.square() / 3) * (-d).exp()
        K = K + noise.exp() * torch.eye(len(X))
        inverse, one = K.inverse(), torch.ones_like(values)
        constant = (one @ inverse @ values) / (one @ inverse @ one)
        logs.append(MultivariateNormal(constant * one, K).log_prob(values))
    return torch.stack(logs).logsumexp(0) - math.log(len(logs))


@pytest.mark.parametrize("power", [1, 12])
def test_the_likeliest_bend(power):
    """It has the highest density of the observations, by dense algebra: values that are spread over
    orders of magnitude are bent, and plain ones are not."""
    X, y = _draws(0)
    Y = -((2.5 - y) ** power)
    density = Density(X, Outcomes.of(Y, CPU).values, Prior())
    parameters = density.prior_draws(6, torch.Generator().manual_seed(1))
    parameters[:, :2].clamp_(-1.0, 0.5)
    bends = (0.0, 0.3, 1.0, 3.0, 10.0)
    found = [Outcomes.of(Y, CPU, bend) for bend in bends]
    own = [_likelihood(X, o.values, parameters) + o.log_slopes + 2.0 * (not o.bend) for o in found]
    likeliest = Outcomes.likeliest(Y, density, parameters)
    assert likeliest.bend == bends[int(torch.stack(own).argmax())]
    assert bool(likeliest.bend) == (power > 1)


def test_the_top_keeps_its_units():
    """Only low values are moved: above, the map back to units is exact."""
    values = torch.tensor([0.1, 0.5, 0.4, -90.0, 0.7, 0.2], dtype=torch.float64)
    outcomes = Outcomes.of(values, CPU)
    back = outcomes.untransformed(outcomes.values)
    kept = [0, 1, 2, 4, 5]
    assert_close(back[kept], values[kept])
    assert -90 < back[3] < 0


@pytest.mark.parametrize("values", [(), (3.0,), (7.0, 7.0, 7.0)])
def test_without_a_spread_they_are_zero(values):
    outcomes = of(*values)
    assert outcomes.values.tolist() == [0.0] * len(values)
    assert outcomes.scale == 1
    if values:
        assert outcomes.center == values[0]


@pytest.mark.parametrize(("size", "bend"), [(1e-310, 0.0), (1e160, 100.0), (1.7e308, 0.0)])
def test_values_at_the_ends_of_the_numbers(size, bend):
    shares = torch.tensor([-1.0, 0.2, 0.4, 1.0], dtype=torch.float64)
    outcomes = Outcomes.of(size * shares, CPU, bend)
    assert outcomes.values.isfinite().all()
    assert_close(outcomes.values, Outcomes.of(shares, CPU, bend).values, rtol=0, atol=1e-6)
    if bend:
        assert outcomes.untransformed(outcomes.values - 1e3).isfinite().all()


@pytest.mark.parametrize("factor", [1e-12, 1e12])
def test_units_do_not_matter(factor):
    values = torch.tensor([0.3, 1.7, 0.9, -4.0, 1.1], dtype=torch.float64)
    plain, scaled = Outcomes.of(values, CPU), Outcomes.of(1e6 * factor + factor * values, CPU)
    assert_close(scaled.values, plain.values, rtol=0, atol=1e-8)


def test_they_go_to_a_device(device):
    outcomes = Outcomes.of(torch.tensor([1.0, 2.0]).double(), device)
    assert outcomes.values.device.type == device.type


@pytest.mark.parametrize("bend", [0.0, 0.3, 1000.0])
def test_restored_values_are_the_observations(bend):
    """The inverse of what was done to them, squeezed ones included, and its slopes."""
    values = torch.tensor([0.1, 0.5, 0.4, -90.0, 0.7, 0.2, -1e5], dtype=torch.float64)
    outcomes = Outcomes.of(values, CPU, bend)
    own = outcomes.values.clone().requires_grad_()
    back, slopes = outcomes.restored(own)
    assert_close(back, values, rtol=1e-9, atol=1e-9)
    (expected,) = torch.autograd.grad(back.sum(), own)
    below = values < values.max()
    assert_close(slopes[below], expected[below])
