"""The argmax along constraints by texts that are not linear and by Python functions."""

import itertools

import pytest
import torch

import botorch_ext as bx
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.screening import near_points, on_faces, screening_points

HEAT = {"low": 20, "high": 120, "significant": 17}
TIME = {"low": 1, "high": 60, "significant": 17}


def product(params):
    return params["heat"] * params["time"] <= 3000


def product_left(params):
    return 3000 - params["heat"] * params["time"]


def ellipse(params):
    return (params["heat"] / 120) ** 2 + (params["time"] / 60) ** 2 <= 1


def with_counts(params):
    return params["heat"] * params["time"] * params["count"] <= 9000


MEANINGS = {
    "product": lambda h, t, c: h * t <= 3000,
    "ellipse": lambda h, t, c: (h / 120) ** 2 + (t / 60) ** 2 <= 1,
    "counts": lambda h, t, c: h * t * c <= 9000,
    "both": lambda h, t, c: (h * t <= 3000) & (h + t <= 130),
}
# The constraints, what they mean, and the largest relative loss.
CASES = {
    "a product": ("heat * time <= 3000", "product", 1e-3),
    "a difference": ("0 <= 3000 - heat * time", "product", 1e-3),
    "logarithms": ("log(heat) + log(time) <= log(3000)", "product", 1e-3),
    "an ellipse": ("(heat / 120) ** 2 + (time / 60) ** 2 <= 1", "ellipse", 1e-3),
    "both": (["heat * time <= 3000", "heat + time <= 130"], "both", 1e-3),
    "with counts": ("heat * time * count <= 9000", "counts", 1e-3),
    "true or false": (product, "product", 1e-2),
    "a number": (product_left, "product", 1e-2),
    "a convex function": (ellipse, "ellipse", 1e-2),
    "a function and a text": ([product, "heat + time <= 130"], "both", 1e-2),
    "a function with counts": (with_counts, "counts", 1e-2),
}
OBJECTIVES = {
    "linear": lambda h, t, c: h / 120 + 1.3 * t / 60 + 0.05 * c,
    "a peak outside": lambda h, t, c: 3 - ((h - 110) / 100) ** 2 - ((t - 50) / 60) ** 2 + c / 50,
}


def grid_maximum(value, holds, counts):
    heat = torch.linspace(20, 120, 1501, dtype=torch.float64)
    time = torch.linspace(1, 60, 1501, dtype=torch.float64)
    grid = torch.meshgrid(heat, time, indexing="ij")
    return max(float(value(*grid, c)[holds(*grid, c)].max()) for c in counts)


@pytest.mark.parametrize(
    ("name", "objective", "log", "mixed"),
    [
        each
        for each in itertools.product(CASES, OBJECTIVES, (False, True), (False, True))
        if each[3] or "counts" not in each[0]
    ],
)
def test_the_best_point_on_a_boundary_is_found(name, objective, log, mixed):
    (constraints, meaning, loss), value = CASES[name], OBJECTIVES[objective]
    holds = MEANINGS[meaning]
    given = {"heat": bx.Real(**HEAT, log=log), "time": bx.Real(**TIME, log=log)}
    if mixed:
        given |= {"count": bx.Integer(1, 5), "kind": bx.Choice(["x", "y"])}
    space = bx.Space(given, constraints=constraints)

    def function(X):
        return value(X[:, 0], X[:, 1], X[:, 2] if mixed else 0.0)

    x, found = maximize_on_box(FunctionObjective(function), space, 0, 512, 20)
    assert bool(space.contains(x).all())
    count = float(x[2]) if mixed else 0.0
    assert bool(holds(x[0], x[1] * (1 - 1e-9), count))
    best = grid_maximum(value, holds, range(1, 6) if mixed else [0.0])
    assert float(found) >= best - loss * abs(best)


def allowed(params):
    return params["kind"] != "y" or params["heat"] * params["time"] <= 1000


def test_screened_points_hold():
    space = bx.Space(
        heat=bx.Real(20, 120),
        time=bx.Real(1, 60, log=True),
        kind=bx.Choice(["x", "y"]),
        depth=bx.Real(0, 1),
        constraints=["heat * time <= 3000", allowed],
        conditions={"depth": ("kind", ["y"])},
    )
    X = screening_points(space, 200, 3)
    faces = on_faces(X, space, torch.Generator().manual_seed(3))
    for points in (X, faces, near_points(X[:5], space, 200, 3)):
        assert bool(space.contains(points).all())
        assert len(points.unique(dim=0)) > len(points) / 2


@pytest.mark.parametrize("dim", [2, 4, 6])
def test_a_ball_is_searched_without_gradients(dim):
    names = [f"x{j}" for j in range(dim)]

    def ball(params):
        return sum(number**2 for number in params.values()) <= 1

    space = bx.Space({name: bx.Real(-1, 1) for name in names}, constraints=ball)
    w = torch.linspace(-1, 1.5, dim, dtype=torch.float64)
    _, value = maximize_on_box(FunctionObjective(lambda X: X @ w), space, 1, 512, 20)
    assert float(value) == pytest.approx(float(w.norm()), rel=1e-2)
