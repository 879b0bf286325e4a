"""Objectives over hyperparameter samples, and the best points of joint draws, by plain formulas."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box, KernelGP
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.kernel_functions.smoothed_matern import SmoothedMatern
from botorch_ext.search import draws
from botorch_ext.search.draws import best_in_box, best_of_points
from botorch_ext.search.objectives import FunctionObjective, on_unit_cube
from botorch_ext.search.particles import AverageMean, HighestOfParticles
from tests.helpers import drawn, tolerance

SQUARE = Box(lower=[1.0, 2.0], upper=[3.0, 6.0])
TOL = tolerance(torch.float64)


def particles():
    lengthscales = torch.tensor([[[0.3, 0.5]], [[0.4, 2.0]], [[0.2, 0.9]]], dtype=torch.float64)
    share = torch.tensor([0.0, 0.3, 0.9], dtype=torch.float64)
    noise = torch.tensor([0.1, 0.02, 0.4], dtype=torch.float64)
    model = KernelGP(SmoothedMatern(lengthscales, share), noise)
    X = SQUARE.sample(9, 1)
    model.add(SQUARE.to_unit(X), torch.sin(5 * X[:, 0]) + X[:, 1])
    return model, Inputs.of(SQUARE, None, X)


def gradient_of(objective, X, h=1e-6):
    steps = h * torch.eye(X.shape[-1], dtype=torch.float64)
    pairs = [(objective.value(X + step), objective.value(X - step)) for step in steps]
    return torch.stack([(up - down) / (2 * h) for up, down in pairs], dim=-1)


def test_bounds_over_hyperparameter_samples_are_their_formulas():
    model, inputs = particles()
    constants, width = torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64), 1.7
    X = SQUARE.sample(25, 3)
    mean, std = model.mean_and_std(SQUARE.to_unit(X))
    mean = mean + constants[:, None]
    bounds = mean + width * std
    highest = HighestOfParticles(model, constants, width, inputs)
    assert_close(highest.value(X), bounds.amax(dim=0), **TOL)
    values, gradients = highest.value_and_gradient(X)
    assert_close(values, bounds.amax(dim=0), **TOL)
    assert_close(gradients, gradient_of(highest, X), rtol=1e-4, atol=1e-5)
    which, own_mean, own_std = highest.best_at(X)
    assert which.tolist() == bounds.argmax(dim=0).tolist() and len(which.unique()) > 1
    columns = torch.arange(25)
    assert_close(own_mean, mean[which, columns], **TOL)
    assert_close(own_std, std[which, columns], **TOL)
    average = AverageMean(model, inputs)
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
