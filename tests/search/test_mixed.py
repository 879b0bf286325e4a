"""The argmax over boxes with whole numbers, codes, constraints and logarithmic scales."""

import math

import pytest
import torch
from scipy.optimize import LinearConstraint, milp

import botorch_ext as bx
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound, maximize_bound, maximize_on_box
from botorch_ext.search.mixed import MixedSearch
from botorch_ext.search.models import HighestBound, UpperBounds, best_in_box, maximize_over_models
from botorch_ext.search.objectives import FunctionObjective, evaluate
from botorch_ext.search.screening import near_points, on_faces, screening_points
from tests.helpers import matern

SUM_TO_ONE = ([[1.0, 1, 1, 0], [-1, -1, -1, 0]], [1.0, -1.0])
# How each box is made, and how many values of each continuous column brute force tries.
SPACES = {
    "whole number": ({"bounds": [(2.0, 5.0), (-3, 6)], "integer": [1]}, 2001),
    "logarithm": ({"bounds": [(1e-4, 1.0), (3.0, 8.0)], "log": [0]}, 201),
    "logarithms of whole numbers": (
        {"bounds": [(1e-4, 1.0), (1, 400)], "log": [0, 1], "integer": [1]},
        201,
    ),
    "codes": ({"bounds": [(2.0, 5.0), (0, 4)], "categories": {1: [0, 1, 2, 4]}}, 2001),
    "sum": ({"bounds": [(0, 1), (0, 2), (0, 1)], "constraints": ([[1.0, 1, 1]], [1.0])}, 41),
    "sum of logarithms": (
        {"bounds": [(1e-4, 1), (1e-4, 1)], "log": [0, 1], "constraints": ([[1.0, 1]], [0.8])},
        201,
    ),
    "order": (
        {
            "bounds": [(0, 1)] * 4,
            "constraints": ([[1.0, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]], [0.0, 0, 0]),
        },
        17,
    ),
    "chemistry": (
        {
            "bounds": [(20, 120), (1e-3, 1), (1, 6), (0, 2)],
            "log": [1],
            "integer": [2],
            "categories": {3: [0, 1, 2]},
            "constraints": ([[0.01, 0, 0.3, 0]], [2.0]),
        },
        51,
    ),
    "mixture": (
        {"bounds": [(0, 1), (0, 1), (0, 1), (1, 5)], "integer": [3], "constraints": SUM_TO_ONE},
        65,  # whose steps are exact in binary
    ),
    "counts": (
        {
            "bounds": [(0, 30), (0, 30), (0, 30), (0.0, 1.0)],
            "integer": [0, 1, 2],
            "constraints": ([[1, 1, 1, 0], [-1, -1, -1, 0]], [30, -30]),
        },
        41,
    ),
    "tree": (
        {
            "bounds": [(0, 2), (1e-3, 1), (2.0, 5.0), (1, 7), (0, 1)],
            "log": [1],
            "integer": [3],
            "categories": {0: [0, 1, 2], 4: [0, 1]},
            "conditions": {1: (0, [0, 2]), 2: (4, [1]), 3: (0, [2]), 4: (0, [1])},
        },
        25,
    ),
    "layers": (
        {
            "bounds": [(0, 3), (2.0, 5.0), (0.0, 1.0), (-1.0, 1.0)],
            "integer": [0],
            "conditions": {1: (0, [1, 2, 3]), 2: (0, [2, 3]), 3: (0, [3])},
            "constraints": ([[1.0, 0, 0, 0]], [3.0]),
        },
        17,
    ),
}


def rested(X, given):
    """Points with all columns at rest that do not count: written from the definition."""
    conditions = given.get("conditions", {})

    def counts(x, j):
        parent, codes = conditions.get(j, (j, x[j : j + 1]))
        return x[parent] in codes and (parent == j or counts(x, parent))

    rest = []
    for j, (low, high) in enumerate(given["bounds"]):
        codes = given.get("categories", {}).get(j)
        middle = math.sqrt(low * high) if j in given.get("log", ()) else (low + high) / 2
        rest.append(middle if codes is None else codes[0])
    if not conditions:
        return X
    rows = [[v if counts(x, j) else rest[j] for j, v in enumerate(x)] for x in X.tolist()]
    return X.new_tensor(rows).unique(dim=0)


def space(name, **options):
    return bx.Box(**(SPACES[name][0] | options))


def brute_force(name):
    """All whole numbers and codes, and a grid of the others: written from the definition."""
    given, num = SPACES[name]
    axes = []
    for j, (low, high) in enumerate(given["bounds"]):
        codes = given.get("categories", {}).get(j)
        if codes is not None:
            axes.append(torch.tensor(codes).double())
        elif j in given.get("integer", ()):
            axes.append(torch.arange(low, high + 1).double())
        elif j in given.get("log", ()):
            axes.append(torch.linspace(math.log(low), math.log(high), num).double().exp())
        else:
            axes.append(torch.linspace(low, high, num, dtype=torch.float64))
    X = torch.cartesian_prod(*axes)
    A, b = (
        torch.tensor(each).double()
        for each in given.get("constraints", ([[0.0] * len(axes)], [1.0]))
    )
    return rested(X[(X @ A.T <= b + 1e-12).all(dim=-1)], given)


def posterior(box, seed, scale=0.3, num=25):
    """A Matern model in raw units and codes, and its data."""
    sides = (box.upper - box.lower) * scale * torch.linspace(0.7, 1.3, box.dim)
    model = KernelGP(matern(*sides.tolist()), 0.01)
    g = torch.Generator().manual_seed(seed)
    X = box.sample(num, seed + 100)
    w = 3 * torch.randn(box.dim, generator=g, dtype=torch.float64)
    y = (box.to_unit(X) @ w).sin() + 0.3 * torch.randn(num, generator=g, dtype=torch.float64)
    model.add(X, y.unsqueeze(-1))
    return model, X[y.topk(5).indices]


COSTLY = ("order", "mixture", "counts")  # seconds
QUICK = [name for name in SPACES if name not in COSTLY]
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in COSTLY]


@pytest.mark.parametrize("name", QUICK + SLOW)
def test_bounds_are_maximised_as_by_brute_force(name):
    seed, box = 0, space(name)
    model, incumbents = posterior(box, seed)
    bound = ConfidenceBound(model, 2.0)
    grid = brute_force(name)
    values = evaluate(bound, grid)
    x = maximize_bound(bound, box, seed, incumbents, 25)
    assert bool(box.contains(x).all())
    spread = values.max() - values.min()
    assert float(bound.value(x[None])) >= float(values.max() - 1e-4 * spread)


@pytest.mark.parametrize(
    "name",
    [
        "order",
        "chemistry",
        pytest.param("counts", marks=pytest.mark.slow),
        pytest.param("tight", marks=pytest.mark.slow),
    ],
)
def test_linear_functions_are_maximised_as_by_linear_programming(name):
    seed = 0
    if name == "tight":
        box = bx.Box([(0, 1)] * 6, constraints=([[1.0] * 6, [-1.0, 1, 0, 0, 0, 0]], [0.25, 0.01]))
    else:
        box = space(name, categories=None)
    w = torch.randn(box.dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    w /= box.upper - box.lower
    objective = FunctionObjective(lambda X: X @ w)
    x, value = maximize_on_box(objective, box, seed, 512, 6)
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


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_point_of_a_simplex(seed):
    # Of shares that sum to one the nearest to c is max(c - t, 0) with a t that makes it sum to one.
    box = bx.Box([(0, 1)] * 5, constraints=([[1.0] * 5, [-1.0] * 5], [1.0, -1.0]))
    c = torch.rand(5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    low, high = c.min() - 1, c.max()
    for _ in range(100):
        t = (low + high) / 2
        low, high = (t, high) if (c - t).clamp_min(0).sum() > 1 else (low, t)
    x, _ = maximize_on_box(
        FunctionObjective(lambda X: -(X - c).square().sum(-1)), box, seed, 512, 6
    )
    assert torch.allclose(x, (c - t).clamp_min(0), atol=1e-5)


@pytest.mark.parametrize(("start", "seed"), [(0, 0), (1, 1), (2, 2)])
def test_another_branch_is_entered_and_climbed(start, seed):
    # Where nothing was screened but one branch, which is lower in the middle of the others.
    box = bx.Box(
        [(0, 2), (0.0, 1.0), (2.0, 5.0), (-1.0, 1.0)],
        categories={0: [0, 1, 2]},
        conditions={1: (0, [0]), 2: (0, [1]), 3: (0, [2])},
    )
    generator = torch.Generator().manual_seed(seed)
    best = torch.rand(3, generator=generator, dtype=torch.float64)
    tops = torch.rand(3, generator=generator, dtype=torch.float64)

    def branches(X):
        U = box.to_unit(X)[:, 1:]
        rows = X[:, 0].long()
        return tops[rows] - 3 * (U[torch.arange(len(X)), rows] - best[rows]).square()

    starts = box.sample(64, seed)
    starts = starts[starts[:, 0] == start][:4]
    objective = FunctionObjective(branches)
    values = evaluate(objective, box.sample(64, seed))
    x, value = MixedSearch(objective, box, values, 1e-9).best(starts)
    assert float(value[0]) == pytest.approx(float(tops.max()), abs=1e-6)
    assert float(box.to_unit(x)[0, 1 + int(x[0, 0])]) == pytest.approx(
        float(best[tops.argmax()]), abs=1e-3
    )


def test_few_points_are_all_looked_at():
    box = bx.Box([(0, 9), (1, 4), (0, 2)], integer=[0, 1], categories={2: [0, 2]})
    assert len(box.listed) == 80
    values = torch.rand(80, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    seen = []

    def rough(X):
        seen.append(len(X))
        rows = (X[:, None] == box.listed).all(dim=-1).to(torch.uint8).argmax(dim=-1)
        return values[rows]

    x, value = maximize_on_box(FunctionObjective(rough), box, 0)
    assert torch.equal(x, box.listed[values.argmax()])
    assert float(value) == float(values.max())
    assert seen == [80]


def test_a_step_that_pays_after_a_climb_alone_is_taken():
    # Of each number the best y is another; from that of one number all others look worse.
    box = bx.Box([(0, 30), (0.0, 1.0)], integer=[0])
    best = torch.rand(31, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def ridge(X):
        n = X[:, 0]
        i = n.round().long().clamp(0, 30)
        return -0.02 * (n - 21).abs() - 4000 * (X[:, 1] - best[i]).square()

    x, value = maximize_on_box(FunctionObjective(ridge), box, 0, 64, 2)
    assert x[0] == 21
    assert float(value) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("name", ["sum"])
def test_the_same_seed_gives_the_same_point_and_leaves_random_numbers_alone(name):
    box = space(name)
    model, incumbents = posterior(box, 0)
    bound = ConfidenceBound(model, 2.0)
    torch.manual_seed(5)
    first = maximize_bound(bound, box, 3, incumbents, 25)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))
    torch.manual_seed(6)
    assert torch.equal(maximize_bound(bound, box, 3, incumbents, 25), first)


@pytest.mark.parametrize("name", ["logarithm", "codes", "tree"])
def test_the_highest_of_several_bounds_is_found(name):
    box = space(name)
    X = box.sample(20, 3)
    g = torch.Generator().manual_seed(3)
    y = torch.randn(20, generator=g, dtype=torch.float64)
    kernels = [posterior(box, 0, scale)[0].kernel for scale in (0.15, 0.3, 0.8)]
    models = bx.CandidateModels(kernels, [0.01, 0.02, 0.05])
    models.add(X, y)
    bounds = UpperBounds(models, X.new_tensor([1.0, 2.0, 1.5]), X.new_tensor([0.1, 0.0, 0.2]))
    grid = brute_force(name)
    values = bounds.values(grid)
    spread = float(values.max() - values.min())
    incumbents = X[y.topk(3).indices]
    if box.is_filled:
        x, model = maximize_over_models(bounds, box, 1, extra=incumbents)
    else:
        x, model = best_in_box(bounds, box, 1, incumbents)
    assert bool(box.contains(x).all())
    at_x = bounds.values(x[None])[:, 0]
    assert model == int(at_x.argmax())
    assert float(at_x.max()) >= float(values.max()) - 1e-4 * spread
    x, model = best_in_box(bounds, box, 1, incumbents, contenders=[0, 2])
    assert model in (0, 2)
    assert (
        float(bounds.values(x[None])[[0, 2]].max()) >= float(values[[0, 2]].max()) - 1e-4 * spread
    )
    weights = X.new_tensor([0.2, 0.5, 0.3])
    x, model = best_in_box(bounds, box, 1, incumbents, probabilities=weights)
    assert model == 1
    assert (
        float(weights @ bounds.values(x[None])) >= float((weights @ values).max()) - 1e-4 * spread
    )


def test_the_gradient_of_the_highest_bound_is_that_of_its_model():
    box = space("sum")
    X = box.sample(12, 0)
    kernels = [posterior(box, 0, scale)[0].kernel for scale in (0.2, 0.6)]
    models = bx.CandidateModels(kernels, 0.01)
    models.add(X, X.sum(dim=-1))
    highest = HighestBound(UpperBounds(models, X.new_tensor([1.0, 2.0]), X.new_tensor([0.0, 0.13])))
    Z = box.sample(30, 1)
    values, gradients = highest.value_and_gradient(Z)
    assert torch.allclose(values, highest.value(Z))
    assert {highest.model_at(z) for z in Z} == {0, 1}
    for j in range(3):
        step = torch.zeros(3, dtype=torch.float64)
        step[j] = 1e-6
        slope = (highest.value(Z + step) - highest.value(Z - step)) / 2e-6
        assert torch.allclose(gradients[:, j], slope, atol=1e-5)


@pytest.mark.parametrize("name", ["logarithms of whole numbers", "codes", "sum", "tree"])
def test_screened_points_are_points_of_the_box(name):
    box = space(name)
    X = screening_points(box, 300, 1)
    near = near_points(X[:5], box, 200, 2)
    faces = on_faces(X, box, torch.Generator().manual_seed(3))
    for points in (X, near, faces):
        assert bool(box.contains(points).all())
    assert len(near.unique(dim=0)) > 50
    for points in (X, near, faces) if box.conditions else ():
        torch.testing.assert_close(points.unique(dim=0), rested(points, SPACES[name][0]))
    for j in box.categories:
        assert len(near[:, j].unique()) == len(box.categories[j])
