"""The argmax over boxes with whole numbers, codes, constraints and logarithmic scales."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, milp

import botorch_ext as bx
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound, maximize_bound, maximize_on_box
from botorch_ext.search.mixed import MixedSearch
from botorch_ext.search.models import (
    HighestBound,
    UpperBounds,
    best_in_box,
    maximize_over_models,
)
from botorch_ext.search.objectives import FunctionObjective, evaluate
from botorch_ext.search.screening import near_points, on_faces, screening_points
from tests.domains.drawn_boxes import Column, Made, boxes, made
from tests.helpers import drawn, matern

SHARES = ([[1.0, 1, 1, 0], [-1, -1, -1, 0]], [1.0, -1.0])
COUNTS = ([[1, 1, 1, 0], [-1, -1, -1, 0]], [30, -30])
ORDER = ([[1.0, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]], [0.0, 0, 0])


def constrained(columns, constraints):
    integer = [j for j, column in enumerate(columns) if column.values]
    options = {"integer": integer, "constraints": constraints}
    return Made(columns, {}, list(zip(*constraints, strict=True)), options)


def whole(low, high):
    return Column(low, high, [float(k) for k in range(low, high + 1)], 1.0)


# Boxes of which little lies within the bounds, and how many values each continuous column has.
NARROW = {
    "shares": (constrained([Column(0, 1)] * 3 + [whole(1, 5)], SHARES), 65),  # exact in binary
    "counts": (constrained([whole(0, 30)] * 3 + [Column(0, 1)], COUNTS), 41),
    "order": (constrained([Column(0, 1)] * 4, ORDER), 17),
}


def points_of(given_box, num):
    """All values of columns with steps or codes and a grid of the others, by the definition."""
    axes = [
        column.values or [column.from_unit(i / (num - 1)) for i in range(num)]
        for column in given_box.columns
    ]
    X = (given_box.settled(x) for x in itertools.product(*axes) if given_box.has(x))
    return torch.tensor(sorted(set(map(tuple, X))), dtype=torch.float64)


def posterior(box, seed, scale=0.3, num=25):
    """A Matern model in raw units and codes, and its five best points."""
    sides = (box.upper - box.lower) * scale * torch.linspace(0.7, 1.3, box.dim)
    model = KernelGP(matern(*sides.tolist()), 0.01)
    X = box.sample(num, seed + 100)
    w = drawn(box.dim, seed=seed, low=-4, high=4)
    y = (box.to_unit(X) @ w).sin() + drawn(num, seed=seed + 1, low=-0.5, high=0.5)
    model.add(X, y.unsqueeze(-1))
    return model, X[y.topk(5).indices]


# Of drawn boxes those with few points, most kinds of columns, trees and constraints among them.
SEEDS = [seed for seed in range(60) if len(made(seed).columns) in (2, 3)][:12]
CASES = [pytest.param(made(seed), 41, id=f"drawn {seed}") for seed in SEEDS]
SLOW = [pytest.param(*NARROW[name], id=name, marks=pytest.mark.slow) for name in NARROW]


@pytest.mark.parametrize(("given_box", "num"), CASES + SLOW)
def test_bounds_are_maximised_as_by_brute_force(given_box, num):
    box = given_box.box()
    model, incumbents = posterior(box, 0)
    bound = ConfidenceBound(model, 2.0)
    values = evaluate(bound, points_of(given_box, num))
    torch.manual_seed(5)
    x = maximize_bound(bound, box, 0, incumbents, 25)
    assert bool(box.contains(x).all())
    spread = values.max() - values.min()
    assert float(bound.value(x[None])) >= float(values.max() - 1e-4 * spread)
    # The seed decides, and the random numbers of others stay as they are.
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(after, torch.rand(1))
    assert torch.equal(maximize_bound(bound, box, 0, incumbents, 25), x)


TIGHT = ([[1.0] * 6, [-1.0, 1, 0, 0, 0, 0]], [0.25, 0.01])
LINEAR = {
    "order": NARROW["order"][0],
    "counts": NARROW["counts"][0],
    "tight": constrained([Column(0, 1)] * 6, TIGHT),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_functions_are_maximised_as_by_linear_programming(name):
    box = LINEAR[name].box()
    w = drawn(box.dim, low=-1) / (box.upper - box.lower)
    x, value = maximize_on_box(FunctionObjective(lambda X: X @ w), box, 0, 512, 6)
    A, b = box.constraints
    found = milp(
        -w.numpy(),
        integrality=[j in box.integer for j in range(box.dim)],
        bounds=box.bounds.numpy(),
        constraints=LinearConstraint(A.numpy(), ub=b.numpy()),
    )
    assert bool(box.contains(x).all())
    assert float(value) == pytest.approx(float(x @ w))
    assert float(value) == pytest.approx(-found.fun, abs=2e-6)


@pytest.mark.parametrize("start", range(3))
def test_another_branch_is_entered_and_climbed(start):
    # Where nothing was screened but one branch, which is lower in the middle of the others.
    box = bx.Box(
        [(0, 2), (0.0, 1.0), (2.0, 5.0), (-1.0, 1.0)],
        categories={0: [0, 1, 2]},
        conditions={1: (0, [0]), 2: (0, [1]), 3: (0, [2])},
    )
    best, tops = drawn(2, 3, seed=start)

    def branches(X):
        rows = X[:, 0].long()
        U = box.to_unit(X)[torch.arange(len(X)), rows + 1]
        return tops[rows] - 3 * (U - best[rows]).square()

    starts = box.sample(64, start)
    starts = starts[starts[:, 0] == start][:4]
    objective = FunctionObjective(branches)
    values = evaluate(objective, box.sample(64, start))
    x, value = MixedSearch(objective, box, values, 1e-9).best(starts)
    assert float(value[0]) == pytest.approx(float(tops.max()), abs=1e-6)
    assert int(x[0, 0]) == int(tops.argmax())


def test_few_points_are_all_looked_at():
    box = bx.Box([(0, 9), (1, 4), (0, 2)], integer=[0, 1], categories={2: [0, 2]})
    values, seen = drawn(80), []

    def rough(X):
        seen.append(len(X))
        return values[(X[:, None] == box.listed).all(dim=-1).to(torch.uint8).argmax(dim=-1)]

    x, value = maximize_on_box(FunctionObjective(rough), box, 0)
    assert torch.equal(x, box.listed[values.argmax()])
    assert float(value) == float(values.max())
    assert seen == [80]


def test_a_step_that_pays_after_a_climb_alone_is_taken():
    # Of each number the best y is another; from that of one number all others look worse.
    box = bx.Box([(0, 30), (0.0, 1.0)], integer=[0])
    best = drawn(31, seed=1)

    def ridge(X):
        own = best[X[:, 0].round().long().clamp(0, 30)]
        return -0.02 * (X[:, 0] - 21).abs() - 4000 * (X[:, 1] - own).square()

    x, value = maximize_on_box(FunctionObjective(ridge), box, 0, 64, 2)
    assert x[0] == 21
    assert float(value) == pytest.approx(0, abs=1e-6)


def test_the_neighbours_that_are_climbed_differ_from_the_point_and_from_each_other():
    # Most moves end where another one does; the one that pays looks worst before it is climbed.
    box = bx.Box([(0, 1)] * 6 + [(0.0, 1.0)], integer=range(6))
    rates = torch.tensor([0.0, 0, 0, 0, 0, 2], dtype=torch.float64)
    losses = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], dtype=torch.float64)

    def slopes(X):
        on, u = X[:, :6].round(), X[:, 6]
        one = (on @ rates) * (u - 0.2) - on @ losses
        return torch.where(on.sum(dim=-1) < 1, -(u - 0.2).square(), one - 9 * (on.sum(dim=-1) > 1))

    start = torch.tensor([[0.0] * 6 + [0.2]], dtype=torch.float64)
    objective = FunctionObjective(slopes)
    values = evaluate(objective, box.sample(64, 0))
    x, value = MixedSearch(objective, box, values, 1e-9).best(start)
    assert x[0].tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert float(value[0]) == pytest.approx(2 * 0.8 - 0.6)


def several_bounds(box):
    X = box.sample(20, 3)
    y = drawn(20, seed=3, low=-2, high=2)
    kernels = [posterior(box, 0, scale)[0].kernel for scale in (0.15, 0.3, 0.8)]
    models = bx.CandidateModels(kernels, [0.01, 0.02, 0.05])
    models.add(X, y)
    bounds = UpperBounds(models, X.new_tensor([1.0, 2.0, 1.5]), X.new_tensor([0.1, 0.0, 0.2]))
    return bounds, X[y.topk(3).indices]


@pytest.mark.parametrize("seed", SEEDS[:4])
def test_the_highest_of_several_bounds_is_found(seed):
    given_box = made(seed)
    box = given_box.box()
    bounds, incumbents = several_bounds(box)
    values = bounds.values(points_of(given_box, 41))
    short = 1e-4 * float(values.max() - values.min())
    weights = values.new_tensor([0.2, 0.5, 0.3])

    def at(x):
        assert bool(box.contains(x).all())
        return bounds.values(x[None])[:, 0]

    if box.is_filled:
        x, model = maximize_over_models(bounds, box, 1, extra=incumbents)
    else:
        x, model = best_in_box(bounds, box, 1, incumbents)
    assert model == int(at(x).argmax())
    assert float(at(x).max()) >= float(values.max()) - short
    x, model = best_in_box(bounds, box, 1, incumbents, contenders=[0, 2])
    assert model in (0, 2)
    assert float(at(x)[[0, 2]].max()) >= float(values[[0, 2]].max()) - short
    x, model = best_in_box(bounds, box, 1, incumbents, probabilities=weights)
    assert model == 1
    assert float(weights @ at(x)) >= float((weights @ values).max()) - short


@given(boxes, st.integers(0, 99))
def test_screened_points_are_points_of_the_box(given_box, seed):
    box = given_box.box()
    X = screening_points(box, 60, seed)
    near = near_points(X[:5], box, 200, seed)
    faces = on_faces(X, box, torch.Generator().manual_seed(seed))
    for points in (X, near, faces):
        assert bool(box.contains(points).all())
        rested = points.new_tensor([given_box.settled(x) for x in points.tolist()])
        torch.testing.assert_close(points, rested, rtol=1e-12, atol=0)
    for j, codes in box.categories.items():
        if not box.conditions and not box.constraints:
            assert near[:, j].unique().tolist() == sorted(codes)


def test_the_gradient_of_the_highest_bound_is_that_of_the_highest_model():
    box = bx.Box([(0, 1), (0, 2)])
    highest = HighestBound(several_bounds(box)[0])
    Z = box.sample(20, 1)
    value, gradient = highest.value_and_gradient(Z)
    assert torch.allclose(value, highest.value(Z))
    assert len({highest.model_at(z) for z in Z}) > 1
    for j, step in enumerate(1e-6 * torch.eye(2, dtype=torch.float64)):
        slope = (highest.value(Z + step) - highest.value(Z - step)) / 2e-6
        assert torch.allclose(gradient[:, j], slope, atol=1e-5)
