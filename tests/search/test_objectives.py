"""Objectives over hyperparameter samples, joint draws and improvements, by plain formulas."""

import mpmath
import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box, KernelGP
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.kernels.frozen.smoothed_matern import SmoothedMatern
from botorch_ext.search import draws
from botorch_ext.search.draws import best_in_box, best_of_points
from botorch_ext.search.improvement import ImprovementOnSet, IntegratedImprovement, log_improvement
from botorch_ext.search.objectives import FunctionObjective, on_unit_cube
from botorch_ext.search.particles import AverageMean, HighestOfParticles
from tests.helpers import drawn, tolerance

SQUARE = Box(lower=[1.0, 2.0], upper=[3.0, 6.0])
TOL = tolerance(torch.float64)
NOISE = torch.tensor([0.1, 0.02, 0.4], dtype=torch.float64)


def model_of(X, Y):
    """Three hyperparameter samples with data in the unit cube."""
    lengthscales = torch.tensor([[[0.3, 0.5]], [[0.4, 2.0]], [[0.2, 0.9]]], dtype=torch.float64)
    share = torch.tensor([0.0, 0.3, 0.9], dtype=torch.float64)
    model = KernelGP(SmoothedMatern(lengthscales, share), NOISE)
    model.add(X, Y)
    return model


def particles():
    X = SQUARE.sample(9, 1)
    model = model_of(SQUARE.to_unit(X), torch.sin(5 * X[:, 0]) + X[:, 1])
    return model, Inputs.of(SQUARE, None, X).in_context(None)


def gradient_of(objective, X, h=1e-6):
    steps = h * torch.eye(X.shape[-1], dtype=torch.float64)
    pairs = [(objective.value(X + step), objective.value(X - step)) for step in steps]
    return torch.stack([(up - down) / (2 * h) for up, down in pairs], dim=-1)


def test_bounds_over_hyperparameter_samples_are_their_formulas():
    model, features = particles()
    constants, width = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64), 1.7
    X = SQUARE.sample(25, 3)
    mean, std = model.mean_and_std(SQUARE.to_unit(X))
    mean = mean + constants[:, None]
    bounds = mean + width * std
    highest = HighestOfParticles(model, constants, width, features)
    assert_close(highest.value(X), bounds.amax(dim=0), **TOL)
    values, gradients = highest.value_and_gradient(X)
    assert_close(values, bounds.amax(dim=0), **TOL)
    assert_close(gradients, gradient_of(highest, X), rtol=1e-4, atol=1e-5)
    which, own_mean, own_std = highest.best_at(X)
    assert which.tolist() == bounds.argmax(dim=0).tolist() and len(which.unique()) > 1
    columns = torch.arange(25)
    assert_close(own_mean, mean[which, columns], **TOL)
    assert_close(own_std, std[which, columns], **TOL)
    average = AverageMean(model, features)
    expected = model.mean_at(SQUARE.to_unit(X)).mean(dim=0)
    assert_close(average.value(X), expected, **TOL)
    values, gradients = average.value_and_gradient(X)
    assert_close(values, expected, **TOL)
    assert_close(gradients, gradient_of(average, X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("log", [[], [0]])
def test_on_the_unit_cube_screened_values_are_from_minus_one_to_zero(log):
    box = Box([(1.0, 3.0), (2.0, 6.0)], log=log)
    objective = FunctionObjective(lambda X: 7 + X[:, 0].square() - 3 * X[:, 1])
    values = objective.value(box.sample(50, 1))
    scaled = on_unit_cube(objective.value_and_gradient, box, values)
    U = drawn(10, 2)
    value, gradient = scaled(U)
    spread = values.max() - values.min()
    assert_close(value, (objective.value(box.from_unit(U)) - values.max()) / spread, **TOL)
    change = gradient_of(FunctionObjective(lambda U: scaled(U)[0]), U)
    assert_close(gradient, change, rtol=1e-5, atol=1e-6)


class KnownDraw:
    """A draw that is known: ``values`` of points, within ``reach`` standard deviations of 0."""

    def __init__(self, function, std):
        self.function, self.std, self.seen = function, std, []

    def mean_and_std(self, X):
        return self.function(X) - self.std / 2, torch.full_like(X[:, 0], self.std)

    def at(self, X):
        self.seen.append(X)
        return self.function(X)

    def mean(self, X):
        return self.function(X)


@pytest.mark.parametrize("std", [1e-3, 0.05, 9.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_largest_of_many_points_under_a_draw_is_found(std, seed, monkeypatch):
    monkeypatch.setattr(draws, "_AT_ONCE", 100)
    monkeypatch.setattr(draws, "_MORE", 30)
    X = SQUARE.sample(900, 1)

    def function(Z):
        return torch.sin(7 * Z.sum(dim=-1)) - Z[:, 0]

    draw = KnownDraw(function, std)
    assert best_of_points(draw, X, seed) == int(function(X).argmax())
    seen = torch.cat(draw.seen)
    assert len(seen.unique(dim=0)) == len(seen)  # each point once
    # No point is left out that might have been the largest.
    mean, _ = draw.mean_and_std(X)
    left = ~(X[:, None] == seen).all(dim=-1).any(dim=-1)
    assert not bool((mean + 6.6 * std > function(X).max())[left].any())


def test_a_draw_is_climbed_in_a_box():
    peak = torch.tensor([1.7, 4.4], dtype=torch.float64)
    draw = KnownDraw(lambda X: -(X - peak).square().sum(dim=-1), 1.0)
    assert_close(best_in_box(draw, SQUARE, 0, SQUARE.sample(2, 1)), peak, rtol=0, atol=1e-4)
    steps = Box([(1.0, 3.0), (2.0, 6.0)], steps={0: 0.5, 1: 0.25})
    assert best_in_box(draw, steps, 0, steps.sample(2, 1)).tolist() == [1.5, 4.5]
    half = Box([(1.0, 3.0), (2.0, 6.0)], steps={0: 0.5})
    found = best_in_box(draw, half, 0, half.sample(2, 1))
    assert_close(found, torch.tensor([1.5, 4.4]).double(), rtol=0, atol=1e-3)


PLACES = [-1e6, -12345.0, -1001.0, -300.0, -31.0, -29.9, -8.0, -1.001, -0.999, 0.0, 0.7, 3.0, 10.0]


def by_quadrature(z):
    """log of the integral of u phi(u - z) over u > 0, and the integral of phi(u - z), both by that
    of u phi(u - z)."""
    with mpmath.workdps(40):
        z = mpmath.mpf(z)
        if z < -1:  # phi(u - z) = phi(z) exp(u z - u^2 / 2), of scale 1 / |z|
            ends = [0, -1 / z, -5 / z, -20 / z, -90 / z]
            density = lambda u: mpmath.exp(u * z - u * u / 2)  # noqa: E731
            factor = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
        else:
            ends = [0, max(z, 0), z + 1, z + 4, z + 14]
            density = lambda u: mpmath.npdf(u - z)  # noqa: E731
            factor = mpmath.mpf(0)
        h = mpmath.quad(lambda u: u * density(u), ends)
        probability = mpmath.quad(density, ends)
        return float(factor + mpmath.log(h)), float(probability / h)


@pytest.mark.parametrize("z", PLACES)
def test_log_improvement_is_the_integral(z):
    at = torch.tensor([z], dtype=torch.float64)
    value, by_mean, by_std = (float(each) for each in log_improvement(at))
    expected, slope = by_quadrature(z)
    assert value == pytest.approx(expected, rel=1e-13, abs=1e-14)
    assert by_mean == pytest.approx(slope, rel=1e-11)
    # h = phi + z Phi.
    assert by_std + z * by_mean == pytest.approx(1, abs=1e-11 * max(1, abs(z * by_mean)))


def test_single_precision_is_finite():
    z = torch.linspace(-1e4, 20, 500)
    for each in log_improvement(z):
        assert each.isfinite().all()
    value, by_mean, _ = log_improvement(z)
    expected = log_improvement(z.double())
    assert_close(value.double(), expected[0], rtol=1e-5, atol=1e-6)
    assert_close(by_mean.double(), expected[1], rtol=1e-3, atol=1e-6)


# --- noisy improvement ----------------------------------------------------------------------------

NUGGET = 1e-8
UNIT = Box([[0.0, 0.0], [1.0, 1.0]])
X = UNIT.sample(6, 1)
Y = torch.sin(5 * X[:, 0]) + X[:, 1]
PENDING = UNIT.sample(2, 2)
ROWS = torch.cat([X, PENDING])


def improvement_of(model, normals, places=ROWS):
    features = Inputs.of(UNIT, None, X).in_context(None)
    return IntegratedImprovement(model, PENDING, places, normals, features)


def normal_numbers(num):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(3, 2, 8, num, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("places", [None, ROWS, ROWS[:3] + 0.01, ROWS[:0]])
def test_noisy_improvement_is_that_of_dense_algebra(places):
    model, normals = model_of(X, Y), normal_numbers(4)
    own = improvement_of(model, normals, places)
    places = ROWS if places is None else places
    Z = UNIT.sample(20, 5).requires_grad_()
    kernel, normal = model.kernel_function, torch.distributions.Normal(0.0, 1.0)
    K = kernel(ROWS, ROWS) + NUGGET * torch.eye(8)
    noisy = (kernel(X, X) + NOISE[:, None, None] * torch.eye(6)).inverse()
    k = kernel(ROWS, Z)
    variance = 1 - (k * torch.linalg.solve(K, k)).sum(dim=-2)
    total = 0
    for draw in range(4):
        f = (torch.linalg.cholesky(K) @ normals[:, 0, :, draw, None]).squeeze(-1)
        noise = (NOISE - NUGGET).sqrt()[:, None] * normals[:, 1, :6, draw]
        residual = (noisy @ (Y - f[:, :6] - noise).unsqueeze(-1)).squeeze(-1)
        f = f + (K[:, :, :6] @ residual.unsqueeze(-1)).squeeze(-1)
        weights = torch.linalg.solve(K, f.unsqueeze(-1)).mT
        best = (weights @ kernel(ROWS, places)).amax(-1) if len(places) else torch.zeros(3, 1)
        std = variance.sqrt()
        z = ((weights @ k).squeeze(1) - best) / std
        total = total + (std * (normal.log_prob(z).exp() + z * normal.cdf(z))).sum(dim=0)
    expected = (total / 12).log()
    (gradient,) = torch.autograd.grad(expected.sum(), Z)
    value, by_point = own.value_and_gradient(Z.detach())
    seen = expected.detach() > -15  # phi + z Phi cancels further down
    assert seen.sum() > 10
    assert_close(value[seen], expected.detach()[seen], rtol=1e-6, atol=1e-6)
    assert_close(by_point[seen], gradient[seen], rtol=1e-5, atol=1e-5)
    assert_close(own.value(Z.detach()), value)


def test_nothing_is_to_be_gained_where_something_was_asked():
    own = improvement_of(model_of(X, Y), normal_numbers(8))
    assert (own.value(ROWS) < own.value(UNIT.sample(64, 0)).max() - 4).all()


class Hopeless:
    """Improvement where there is none."""

    def value(self, X):
        return X.new_full((len(X),), -1e9)


@pytest.mark.parametrize("num_places", [6, 3, 1])
def test_what_an_observation_teaches_is_the_knowledge_gradient(num_places):
    """By quadrature over the next observation, of every point of a set in turn: of one that is no
    place yet, which may have the largest mean, all places are elsewhere."""
    model, order = model_of(X, Y), Y.argsort()
    pending = model.fork()
    pending.add(PENDING, None)
    own = X[order[:num_places]]
    places = torch.cat([own, own[-2:]])  # asked twice
    features, normals = Inputs.of(UNIT, None, X).in_context(None), normal_numbers(4)
    other = IntegratedImprovement(model, PENDING, places, normals, features)
    value = ImprovementOnSet(Hopeless(), pending, places, features).value(X)
    mean, std = pending.mean_and_std(X)
    at_places = pending.mean_at(own)
    z = torch.linspace(-8, 8, 20_001, dtype=torch.float64)
    weights = (-z.square() / 2).softmax(dim=0)
    for i in range(len(X)):
        others = at_places[:, ~(own == X[i]).all(dim=-1)]
        elsewhere = others.amax(dim=1) if others.numel() else torch.full((3,), -1e9).double()
        variance = std[:, i] ** 2
        next_mean = mean[:, i, None] + (variance / (variance + NOISE).sqrt())[:, None] * z
        gained = torch.maximum(next_mean, elsewhere[:, None]) @ weights
        taught = (gained - torch.maximum(mean[:, i], elsewhere)).mean()
        assert float(value[i].exp()) == pytest.approx(float(taught), abs=1e-6)
    new = UNIT.sample(16, 3)
    assert (ImprovementOnSet(other, pending, places, features).value(new) >= other.value(new)).all()
