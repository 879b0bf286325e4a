import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.search.objectives import FunctionObjective
from tests.helpers import tolerance

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
NORMS = ("l2", "linf")
RADII = (0.0, 0.3, (0.5, 0.2), (0.4, 0.0))


def size(offset, radius, norm):
    """The norm of an offset in units of the radius; infinite where there is none."""
    radius = torch.tensor(radius, dtype=torch.float64).expand(offset.shape[-1])
    scaled = torch.where(radius > 0, offset / radius, torch.where(offset == 0, 0, math.inf))
    return scaled.norm(dim=-1) if norm == "l2" else scaled.abs().amax(dim=-1)


# --- finite sets --------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", RADII)
def test_finite_worst_case_by_loops(norm, radius):
    X = BOX.sample(60, 0)
    X = torch.cat([X, X[:3], X[0] + 0.01 * BOX.sample(30, 1)])  # repeated and crowded points
    balls = Perturbations(radius, norm).on(FiniteSet(X))
    values = torch.randn(2, 3, len(X), generator=torch.Generator().manual_seed(0))
    worst, where = balls.worst_case(values)
    for i in range(len(X)):
        near = (size(X - X[i], radius, norm) <= 1).nonzero().flatten().tolist()
        assert balls.neighbours(i).tolist() == near
        expected, column = values[..., near].min(dim=-1)
        assert_close(worst[..., i], expected, rtol=0, atol=0)
        assert where[..., i].tolist() == torch.tensor(near)[column].tolist()


@pytest.mark.parametrize("norm", NORMS)
def test_neighbours_on_a_grid_are_not_lost_to_rounding(norm):
    axis = 2.0 + 0.1 * torch.arange(11, dtype=torch.float64)
    balls = Perturbations(0.2, norm).on(FiniteSet(torch.cartesian_prod(axis, axis - 7)))
    inner = {len(balls.neighbours(11 * i + j)) for i in range(2, 9) for j in range(2, 9)}
    assert inner == {13 if norm == "l2" else 25}


# --- boxes --------------------------------------------------------------------------------------


def function(Z):
    return torch.sin(2 * Z[..., 0]) * torch.cos(3 * Z[..., 1]) + 0.3 * Z[..., 0] * Z[..., 1]


def centres(num, seed=0):
    """Points of the box, some of them at its faces and corners."""
    X = BOX.sample(num, seed)
    X[::4] = BOX.bounds[torch.arange(len(X[::4])) % 2]
    X[1::4, 0] = BOX.lower[0]
    return X


def fine_worst_case(f, x, radius, norm, count=161):
    """By a grid of the ball."""
    radius = torch.tensor(radius, dtype=torch.float64).expand(2)
    axis = torch.linspace(-1, 1, count, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = torch.cat([U, U / U.norm(dim=-1, keepdim=True).clamp_min(1e-9)])
    if norm == "l2":
        U = U[U.norm(dim=-1) <= 1 + 1e-12]
    Z = x + radius * U
    return f(Z[((Z >= BOX.lower) & (Z <= BOX.upper)).all(dim=-1)]).min()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.3, 1.5, (1.0, 0.2), (0.7, 0.0)])
def test_worst_case_on_a_box_is_that_of_a_fine_grid(norm, radius):
    X = centres(12)
    balls = Perturbations(radius, norm).on(BOX)
    values, Z = balls.worst_case(FunctionObjective(function), X)
    assert_close(values, function(Z))
    assert bool(BOX.contains(Z).all())
    assert bool((size(Z - X, radius, norm) <= 1 + 1e-9).all())
    for x, value in zip(X, values, strict=True):
        assert value <= fine_worst_case(function, x, radius, norm) + 1e-12


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", RADII)
def test_lowest_known_values_by_loops(norm, radius):
    balls = Perturbations(radius, norm).on(BOX)
    X, Z = BOX.sample(12, 0).view(4, 3, 2), BOX.sample(50, 1)
    Z = torch.cat([Z, X[0], X[1] + torch.tensor([0.1, 0.0], dtype=torch.float64)])
    values = torch.randn(len(Z), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    least, rows = balls.lowest_known(X, Z, values)
    for x, value, row in zip(X.view(-1, 2), least.flatten(), rows.flatten(), strict=True):
        within = size(Z - x, radius, norm) <= 1
        assert value == min([math.inf, *values[within].tolist()])
        assert value == math.inf or (within[row] and values[row] == value)


@pytest.mark.parametrize("norm", NORMS)
def test_narrow_dips_that_are_known_are_descended_into(norm):
    dip = torch.tensor([3.123, -2.345], dtype=torch.float64)

    def narrow(X):
        return 0.01 * X.sum(dim=-1) - torch.exp(-(((X - dip) / 0.003) ** 2).sum(dim=-1))

    balls, f = Perturbations(0.3, norm).on(BOX), FunctionObjective(narrow)
    X = dip + torch.tensor([[[0.17, 0.13]], [[0.5, 0.0]]], dtype=torch.float64)
    missed, _ = balls.worst_case(f, X)
    assert missed.min() > -0.1  # no offset is near
    near = (dip + 0.002).unsqueeze(0)
    values, Z = balls.knowing(near, narrow(near)).worst_case(f, X)
    assert values[0] < -0.99 + 0.01 * dip.sum()
    assert_close(Z[0, 0], dip, rtol=0, atol=1e-4)
    assert_close(values[1], missed[1])  # out of reach


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.3, (0.9, 0.2), (0.4, 0.0)])
def test_gradients_of_the_worst_case(norm, radius):
    # Kinks, where two offsets are worst, are left out: there the gradient jumps.
    X, h = 0.999 * (centres(60) - BOX.lower) + BOX.lower + 1e-3, 1e-4
    # Centres so near to a face that the balls are cut.
    X[::3, 0], X[1::5, 1] = BOX.upper[0] - 0.1, BOX.lower[1] + 0.07
    balls = Perturbations(radius, norm).on(BOX)

    def attached(X):
        objective = FunctionObjective(function)
        return function(balls.follow(X, balls.worst_case(objective, X)[1]))

    X.requires_grad_()
    (gradient,) = torch.autograd.grad(attached(X).sum(), X)
    with torch.no_grad():
        columns, jumps = [], torch.zeros(len(X), dtype=torch.bool)
        for step in h * torch.eye(2, dtype=torch.float64):
            near = [attached(X + k * step) for k in (-2, -1, 0, 1, 2)]
            columns.append((near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * h))
            third = near[4] - 3 * near[3] + 3 * near[2] - near[1]
            jumps |= third.abs() > 1e-8
    assert jumps.sum() < 12
    difference = (gradient - torch.stack(columns, dim=-1))[~jumps]
    assert_close(difference, torch.zeros_like(difference), **tolerance(torch.float64))


def test_radii_and_norms_are_read_or_refused_by_name():
    for given in (np.array([0.5, 0.25]), torch.tensor([0.5, 0.25])):
        assert Perturbations(given).radius == (0.5, 0.25)  # pyright: ignore[reportArgumentType]
    assert Perturbations(torch.tensor(0.5)).radius == 0.5
    for bad in (-0.1, math.inf, math.nan, "0.3", True, None, (), (0.1, -0.2), [[0.1], [0.2]]):
        with pytest.raises(ValueError, match="radius must "):
            Perturbations(bad)
    with pytest.raises(ValueError, match="norm must "):
        Perturbations(0.1, 2)  # pyright: ignore[reportArgumentType]
    for domain in (BOX, FiniteSet(BOX.bounds)):
        with pytest.raises(ValueError, match="one for each of 2 coordinates, got 3"):
            Perturbations((0.1, 0.2, 0.3)).on(domain)
