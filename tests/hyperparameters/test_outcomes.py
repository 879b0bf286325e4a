"""Outcomes: standardised, the low ones squeezed or bent, units kept."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import Box
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.density import Density
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
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


SPACE = bx.Box(
    [[10.0, -1.0, 1e-3, 2.0], [30.0, 4.0, 1e1, 9.0]],
    integer=[1],
    log=[2],
    categories={3: [2, 5, 9]},
)
HALF = math.sqrt(0.5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_columns_are_those_of_the_unit_cube_with_gradients_by_the_points(dtype):
    x = [[15.0, -1.0, 1e-1, 2.0], [30.0, 4.0, 1e1, 5.0], [30.0, 4.0, 1e1, 9.0]]
    x = torch.tensor(x, dtype=dtype)
    inputs = Inputs.of(SPACE.to(dtype), None, x)
    # Six whole numbers have a sixth each, and any two categories are one apart.
    categories = HALF * torch.eye(3, dtype=torch.float64)
    expected = torch.tensor([[0.25, 1 / 12, 0.5], [1, 11 / 12, 1], [1, 11 / 12, 1]]).double()
    close = {"rtol": 1e-5, "atol": 1e-6}
    assert_close(inputs.features(x), torch.cat([expected, categories], dim=1), **close)
    assert (inputs.groups.tolist(), inputs.num_columns) == ([0, 1, 2, 3, 3, 3], 4)
    assert inputs.of_features(torch.arange(4)).tolist() == [0, 1, 2, 3, 3, 3]
    weights = torch.linspace(0.5, 2, 6, dtype=torch.float64)
    gradient = inputs.pullback(x, weights.expand(3, 6))
    by_log = weights[2] / (x[:, 2].double() * math.log(1e4))
    rest = torch.tensor([weights[0] / 20, weights[1] / 6, 0.0, 0.0]).double().repeat(3, 1)
    rest[:, 2] = by_log
    assert gradient.dtype == dtype
    assert_close(gradient.double(), rest, rtol=1e-5, atol=0)


def test_columns_that_do_not_count_have_no_gradient():
    box = bx.Box(SPACE.bounds, integer=[1], conditions={0: (1, [0, 3]), 2: (1, [3])})
    X = box.sample(40, seed=0)
    inputs = Inputs.of(box, None, X)
    gradient = inputs.pullback(X, torch.ones_like(inputs.features(X)))
    assert torch.equal(gradient[:, [0, 2]] != 0, box.active(X)[:, [0, 2]])
    assert inputs.sides is None


def test_plain_boxes_and_finite_sets(device):
    points = torch.tensor([[2.0, 7.0], [4.0, 7.0], [3.0, 7.0]], dtype=torch.float64, device=device)
    of_set = Inputs.of(bx.FiniteSet(points), None, points)
    assert of_set.features(points).tolist() == [[0, 0], [1, 0], [0.5, 0]]
    of_box = Inputs.of(bx.Box(torch.tensor([[2.0, -7.0], [4.0, 7.0]], device=device)), None, points)
    assert of_box.features(points.float()).tolist() == [[0, 1], [1, 1], [0.5, 1]]
    assert of_set.groups is of_box.groups is None


def test_contexts_range_as_their_domain_or_as_those_seen_and_tasks_are_categories():
    box = bx.Box([[0.0], [2.0]])
    joint = torch.tensor([[1.0, 5.0, 2.0], [2.0, 9.0, 2.0]], dtype=torch.float64)
    known = ContextSpace(bx.Box([[5.0, 0.0], [15.0, 4.0]]))
    assert Inputs.of(box, known, joint).features(joint).tolist() == [[0.5, 0, 0.5], [1, 0.4, 0.5]]
    unknown = Inputs.of(box, ContextSpace(), joint)
    assert unknown.features(joint).tolist() == [[0.5, 0, 0], [1, 1, 0]]
    context = torch.tensor([13.0, 2.0], dtype=torch.float64)
    assert unknown.in_context(context).at(joint[:1, :1]).tolist() == [[0.5, 2, 0]]
    assert Inputs.of(box, ContextSpace(dim=2), joint[:0]).num_columns == 3
    tasks = ContextSpace(bx.FiniteSet([[0.0], [1.0], [2.0]]), tasks=((0, 3),))
    joint = torch.tensor([[1.0, 0.0], [1.0, 2.0]], dtype=torch.float64)
    inputs = Inputs.of(box, tasks, joint)
    assert inputs.groups.tolist() == [0, 1, 1, 1]
    assert float(inputs.features(joint).diff(dim=0).norm()) == pytest.approx(1.0)


BOX = Box([[2.0, -3.0], [5.0, -1.0]])
X, AT = BOX.sample(30, 1), BOX.sample(12, 2)
Y = torch.sin(2 * X[:, 0]) - (X[:, 1] + 2).square()
PARAMETERS = torch.tensor([[-1.0, 0.3, -6.0, 0.5], [0.2, -0.5, -2.0, -3.0]], dtype=torch.float64)


def ensemble_of(n, bend=1.0, box=BOX):
    outcomes = Outcomes.of(Y[:n], X.device, bend)
    return Ensemble.of(PARAMETERS, Inputs.of(box, None, X[:n]), X[:n], outcomes)


@pytest.mark.parametrize("box", [BOX, Box([[1.0, -4.0], [5.0, -1.0]])])
def test_an_extended_ensemble_is_that_of_all_observations(box):
    before, whole = ensemble_of(22), ensemble_of(30, box=box)
    old = before.mean_and_std(X)
    # In a wider box inputs mean something else, and models are built anew.
    grown = before.extended(Inputs.of(box, None, X), X, Outcomes.of(Y, X.device, 1.0))
    assert_close(grown.constants, whole.constants)
    for own, expected in zip(grown.mean_and_std(AT), whole.mean_and_std(AT), strict=True):
        assert_close(own, expected)
    for own, expected in zip(before.mean_and_std(X), old, strict=True):
        assert torch.equal(own, expected)


def test_of_rows_is_given_those_observations_alone():
    whole, rows = ensemble_of(30), torch.tensor([3, 4, 8, 20, 29])
    some = whole.of_rows(rows)
    assert some.num_observations == 5
    values = whole.outcomes.values[rows] - some.constants.unsqueeze(-1)
    assert_close(some.model.factor.y[:, :5], values)
    assert some.model.posterior(some.inputs.features(X)).mean.shape == (2, 30, 1)
