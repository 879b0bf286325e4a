"""Damped steps against constrained maxima that are known, and against sliding ascent."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.search.damped_steps import DampedSteps, solved
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.sliding import INSIDE, LONGEST
from tests.helpers import tolerance
from tests.search.test_sliding import BOX, CASES, SCALE, climb, dense_maximum, hill

STARTS = [[2.6, -2.4], [3.2, -2.6], [2.5, -2.3]]


def models_of(objective, constraints):
    """Values and gradients of functions, as `DampedSteps.points` asks for them."""

    def models(X):
        _, gradient = objective.value_and_gradient(X)
        pairs = [constraint.value_and_gradient(X) for constraint in constraints]
        gradients = torch.stack([gradient, *(slope for _, slope in pairs)])
        return torch.stack([value for value, _ in pairs]) if pairs else None, gradients

    return models


def climb_in_step(constraints, starts, objective=hill, num_steps=10):
    """Each start goes, step after step, to the highest feasible of the points it is offered."""
    of = FunctionObjective(objective)
    met = [FunctionObjective(constraint) for constraint in constraints]
    steps = DampedSteps(BOX, SCALE, len(met))
    x, path = torch.tensor(starts, dtype=torch.float64), []
    for _ in range(num_steps):
        points = steps.points(models_of(of, met), x)
        assert torch.equal(points[:, 0], x)
        known = points.flatten(0, 1)
        known = known[~known.isnan().any(dim=-1)]
        assert bool(BOX.contains(known).all())
        values = of.value(points.flatten(0, 1)).view(points.shape[:-1])
        inside = ~values.isnan()
        for constraint in met:
            inside &= constraint.value(points.flatten(0, 1)).view_as(values) >= 0
        values, rows = torch.where(inside, values, -torch.inf).max(dim=1)
        x = points[torch.arange(len(x)), rows]
        path.append(values)
    return x, path


@pytest.mark.parametrize("case", CASES)
def test_the_constrained_maximum_is_reached(case):
    constraints = CASES[case]
    ends, path = climb_in_step(constraints, STARTS)
    assert float(path[-1].max()) == pytest.approx(dense_maximum(constraints), rel=1e-5)
    for constraint in constraints:
        assert bool((constraint(ends) >= 0).all())
    below = hill(torch.tensor(STARTS, dtype=torch.float64))
    for values in path:
        assert bool((values >= below).all())
        below = values
    # Of sliding ascent only the best end counts.
    assert path[-1].max() >= climb(constraints, STARTS)[1].max() - 1e-5


def ripples(X):
    """Hills, saddles and valleys."""
    return torch.sin(3 * X[:, 0]) * torch.cos(4 * X[:, 1]) + 0.3 * X[:, 0]


def test_starts_leave_saddles_and_valleys():
    starts = BOX.sample(40, seed=3).tolist()
    _, path = climb_in_step([], starts, ripples, num_steps=25)
    _, slid = climb([], starts, ripples, num_steps=25)
    assert float(path[-1].max()) == pytest.approx(dense_maximum([], ripples), abs=1e-9)
    # Not all come to the top: as many come as high as those that slide, which give up lower hills.
    assert path[-1].mean() >= slid.mean() - 1e-9


def test_a_quadratic_is_climbed_in_one_step():
    top = BOX.lower + torch.tensor([1.3, 0.9]).double()
    bend = torch.tensor([[3.0, 1.0], [1.0, 2.0]], dtype=torch.float64)

    def peak(X):
        return -((X - top) @ bend * (X - top)).sum(dim=-1)

    near = (top + 0.2 * torch.tensor([1.0, -1.0])).tolist()
    ends, _ = climb_in_step([], [near], peak, num_steps=1)
    assert_close(ends[0], top, rtol=0, atol=1e-5)  # the least damping is 1e-6


def test_steps_are_no_longer_than_the_longest():
    x = BOX.sample(30, seed=1)
    points = DampedSteps(BOX, SCALE, 0).points(lambda X: (None, 100 * torch.ones_like(X)[None]), x)
    length = ((points - x[:, None]) / SCALE).norm(dim=-1)
    assert float(length.max()) == pytest.approx(LONGEST, rel=1e-9)


@pytest.mark.parametrize("num", [4, 5])
def test_of_many_constraints_the_nearest_count(num):
    """A polygon around a point: the climb ends in the corner that the slope points to."""
    angle = torch.arange(num, dtype=torch.float64) * 2 * torch.pi / num + 0.3
    sides = torch.stack([angle.cos(), angle.sin()], dim=-1)
    constraints = [lambda X, a=a: 0.6 - (X - X.new_tensor([3.4, -2.0])) @ a for a in sides]

    def slope(X):
        return 5 + X[:, 0] + 0.35 * X[:, 1]

    _, path = climb_in_step(constraints, [[3.4, -2.0], [3.2, -2.1]], slope)
    top = dense_maximum(constraints, slope)
    assert top - 10 * INSIDE[torch.float64] - 1e-4 <= float(path[-1].max()) <= top + 1e-4


def test_float32_and_three_coordinates():
    box = Box([[0.0, 1.0, -2.0], [1.0, 3.0, 2.0]], dtype=torch.float32)
    of = FunctionObjective(lambda X: -(X - X.new_tensor([0.4, 4.0, 0.5])).square().sum(dim=-1))
    steps = DampedSteps(box, box.upper - box.lower, 0)
    x = box.sample(8, seed=0)
    for _ in range(6):
        points = steps.points(models_of(of, []), x)
        assert points.dtype == torch.float32
        values = of.value(points.flatten(0, 1)).view(8, -1).nan_to_num(-torch.inf)
        x = points[torch.arange(8), values.argmax(dim=1)]
    assert_close(x, x.new_tensor([0.4, 3.0, 0.5]).expand(8, 3), rtol=0, atol=2e-3)


@pytest.mark.parametrize("n", [1, 2, 6])
def test_elimination_solves_positive_systems(n):
    generator = torch.Generator().manual_seed(n)
    root = torch.randn(7, n, n, generator=generator, dtype=torch.float64)
    A = root @ root.mT + 0.1 * torch.eye(n, dtype=torch.float64)
    B = torch.randn(7, n, 3, generator=generator, dtype=torch.float64)
    eye = torch.eye(n, dtype=torch.float64)
    assert_close(solved(A, B, eye), torch.linalg.solve(A, B), **tolerance(A.dtype))
