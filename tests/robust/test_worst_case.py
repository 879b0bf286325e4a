import math

import numpy as np
import pytest
import torch
from torch.nn.functional import max_pool3d
from torch.testing import assert_close

from botorch_ext import Box, CandidateModels, FiniteSet
from botorch_ext.search.ball_descent import CutBall, descend
from botorch_ext.search.ball_newton import polish
from botorch_ext.search.box_balls import BoxBalls
from botorch_ext.search.models import UpperBounds
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.own_bounds import OwnBounds
from botorch_ext.search.perturbations import Perturbations
from botorch_ext.search.ridges import along_ridges
from botorch_ext.search.worst_case import WorstCase, lowest_bound, maximize_worst_case
from tests.helpers import fine_ball, matern, rbf, tolerance


def upper_bounds(dim, num_models, seed=0, num_data=20, device="cpu"):
    """Models of two forms, not in the order of the parts they make."""
    box = Box([[2.0] * dim, [4.0] * dim])
    kernels = [(rbf if i % 2 else matern)(0.4 + 0.2 * i) for i in range(num_models)]
    models = CandidateModels(kernels, 0.01, device=device)
    X = box.sample(num_data, seed)
    models.add(X.to(device), torch.sin(3 * X.sum(dim=-1) + seed).to(device))
    widths = torch.linspace(1.5, 2.5, num_models, dtype=torch.float64).to(device)
    box = box.to(device=device)
    return UpperBounds(models, widths, 0.1 * widths), box


def test_own_bounds_by_loops():
    bounds, box = upper_bounds(2, 5)
    X = box.sample(30, 1).view(6, 5, 2)
    expected = torch.stack([bounds.values(X[:, i])[i] for i in range(5)], dim=-1)
    own = OwnBounds.of(bounds)
    exact = tolerance(torch.float64)
    values, gradients = own.value_and_gradient(X)
    assert_close(own.value(X), expected, **exact)
    assert_close(values, expected, **exact)

    def one(Z):
        mean, std = (
            torch.stack([m.mean_and_std(Z[:, i])[k] for i, m in enumerate(singles)], dim=-1)
            for k in range(2)
        )
        return mean + bounds.widths * std

    singles = [bounds.models.single(i) for i in range(5)]
    assert_close(gradients, FunctionObjective(one).value_and_gradient(X)[1], **exact)


@pytest.mark.parametrize(
    ("dim", "num_models", "norm"), [(1, 1, "l2"), (2, 1, "linf"), (2, 2, "l2")]
)
def test_at_least_as_good_as_a_fine_search(dim, num_models, norm):
    seed = dim
    bounds, box = upper_bounds(dim, num_models, seed)
    balls = Perturbations(0.25, norm).on(box)
    x, position = maximize_worst_case(bounds, balls, seed)
    assert bool(box.contains(x))
    value = WorstCase(bounds.select([position]), balls).value(x.unsqueeze(0))
    g, own = torch.Generator().manual_seed(seed), OwnBounds.of(bounds)
    clouds = [box.sample(300, seed + 99)]
    for spread in (0.1, 1e-3):  # and closer and closer to the pick
        near = x + spread * (2 * torch.rand(80, dim, generator=g, dtype=torch.float64) - 1)
        clouds.append(torch.minimum(torch.maximum(near, box.lower), box.upper))
    X = torch.cat(clouds).unsqueeze(1).expand(-1, num_models, -1)
    assert value >= balls.worst_case(own, X)[0].max() - 1e-7


def hills(box, data, lengthscale, width):
    """A bound of a model of data in hundredths: points of the unit cube, and values."""
    data = torch.tensor(data, dtype=torch.float64) / 100
    side = box.upper - box.lower
    models = CandidateModels([matern(*(lengthscale * side).tolist())], 1e-4)
    models.add(box.from_unit(data[:, :-1]), data[:, -1])
    widths = torch.tensor([width], dtype=torch.float64)
    best = data[data[:, -1].topk(5).indices, :-1]
    return UpperBounds(models, widths, 0 * widths), box.from_unit(best)


def test_no_centre_of_a_grid_is_above_the_best_of_several_hills():
    # The three highest ends of the first climbs were on one hill, which is not the best.
    box = Box([[2.0, -3.0, 0.5], [5.0, -2.5, 2.5]])
    data = [
        *((90, 65, 9, -109), (13, 9, 96, -83), (0, 99, 35, 17), (2, 37, 4, 35), (25, 4, 20, 63)),
        *((62, 0, 32, 27), (6, 43, 40, 105), (28, 68, 46, 313), (33, 61, 63, 234)),
        *((50, 74, 56, 174), (26, 79, 28, 126), (22, 67, 38, 296), (26, 44, 41, 151)),
        *((4, 69, 48, 70), (20, 64, 51, 282), (20, 64, 51, 282)),
    ]
    bounds, _ = hills(box, data, 0.25, 2.0)
    balls = BoxBalls(box, 0.1 * (box.upper - box.lower), "linf")
    axis = torch.linspace(0, 1, 41, dtype=torch.float64)
    grid = box.from_unit(torch.cartesian_prod(axis, axis, axis))
    values = bounds.values(grid).view(1, 41, 41, 41)
    # Four steps of the grid to either side are within reach, as far as there are any.
    lowest = -max_pool3d(-values, kernel_size=9, stride=1, padding=4)
    x, _ = maximize_worst_case(bounds, balls, 5)
    assert WorstCase(bounds, balls).value(x.unsqueeze(0)) >= lowest.max()


@pytest.mark.slow
def test_a_plateau_is_left():
    # The worst point of many centres is the same: no slope leads from there to the best. 17 of 20
    # searches find it, 8 without a second screening, 10 where each centre counts what its own
    # offsets see alone; the others end on another hill.
    box = Box([[2.0, -3.0], [5.0, -2.5]])
    data = [
        *((0, 40, 43), (29, 76, -114), (100, 83, 97), (94, 26, -123), (40, 8, -125)),
        *((57, 66, -187), (18, 5, -85), (65, 19, -8), (68, 80, 51), (23, 98, -30), (75, 48, 76)),
        *((100, 44, 119), (42, 55, -77), (85, 98, 2), (98, 7, 125), (6, 75, -128)),
        *((50, 80, -102), (32, 27, 87), (69, 1, -66), (89, 34, -78), (79, 68, 98), (99, 60, 146)),
        *((87, 46, 96), (86, 85, 177)),
    ]
    bounds, extra = hills(box, data, 0.15, 4.0)
    balls = BoxBalls(box, 0.2 * (box.upper - box.lower), "l2")
    found = [maximize_worst_case(bounds, balls, seed, extra)[0] for seed in range(6)]
    many = BoxBalls(box, balls.radii, "l2", num_screened=4096, num_starts=32)
    better = box.from_unit(torch.tensor([1.0, 0.6225], dtype=torch.float64))
    *values, known = WorstCase(bounds, many).value(torch.stack([*found, better]))
    assert sum(bool(value >= known - 1e-7) for value in values) >= 4


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_lowest_bound_by_a_fine_search(norm):
    bounds, box = upper_bounds(2, 3)
    lower = UpperBounds(bounds.models, -bounds.widths, -bounds.offsets)
    balls = Perturbations((0.3, 0.2), norm).on(box)
    axis = torch.linspace(-1, 1, 41, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = U[U.norm(dim=-1) <= 1] if norm == "l2" else U
    for x in torch.cat([box.sample(6, 3), box.bounds]):
        z, position = lowest_bound(lower, balls, x)
        Z = balls.points(x, U)
        assert lower.values(z.unsqueeze(0))[position] <= lower.values(Z).min() + 1e-9
        assert bool(Perturbations((0.3, 0.2), norm).reach(x.unsqueeze(0), z.unsqueeze(0)))


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
        assert value <= function(fine_ball(BOX.bounds, x, radius, norm, 161)).min() + 1e-12


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
    for bad in (math.inf, (), (0.1, -0.2), [[0.1], [0.2]]):
        with pytest.raises(ValueError, match="radius must "):
            Perturbations(bad)
    for domain in (BOX, FiniteSet(BOX.bounds)):
        with pytest.raises(ValueError, match="one for each of 2 coordinates, got 3"):
            Perturbations((0.1, 0.2, 0.3)).on(domain)


TOL = tolerance(torch.float64)


def limits(n, d, seed=0):
    g = torch.Generator().manual_seed(seed)
    low, high = torch.rand(2, n, d, generator=g, dtype=torch.float64).clamp_max(0.8) / 0.8
    low[: n // 3, 0], high[n // 4 : n // 2, -1] = 0, 0  # at faces
    return -low, high


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_nearest_offsets_by_bisection(d):
    low, high = limits(60, d)
    g = torch.Generator().manual_seed(1)
    U = torch.randn(60, d, generator=g, dtype=torch.float64) * torch.logspace(-2, 2, 60)[:, None]
    U[:5], U[5:10, 0] = 0, 0
    U[10:15] = high[10:15]  # ties
    least, most = torch.zeros(60, 1, dtype=torch.float64), torch.ones(60, 1, dtype=torch.float64)
    for _ in range(100):
        s = (least + most) / 2
        inside = (s * U).clamp(low, high).norm(dim=-1, keepdim=True) <= 1
        least, most = torch.where(inside, s, least), torch.where(inside, most, s)
    got = CutBall(low, high, "l2").nearest(U)
    assert_close(got, (most * U).clamp(low, high), **TOL)
    assert_close(CutBall(low, high, "linf").nearest(U), U.clamp(low, high), rtol=0, atol=0)
    both = CutBall(low, high, "l2").nearest(torch.stack([U, got]))
    assert_close(both, torch.stack([got, got]), rtol=0, atol=1e-15)


def valleys(X, U):
    """Curved valleys around each centre, with steps that are too long at first."""
    Z = X + U
    a, b = Z[..., 0], Z[..., 1:]
    values = (a - 0.3) ** 2 + 20 * (b - a.unsqueeze(-1) ** 2).square().sum(dim=-1)
    return values + torch.cos(7 * a)


def started(n=40, d=3):
    low, high = limits(n, d)
    g = torch.Generator().manual_seed(2)
    X = torch.randn(n, d, generator=g, dtype=torch.float64)
    U = CutBall(low, high, "l2").nearest(torch.randn(n, d, generator=g, dtype=torch.float64))
    moving = torch.arange(n) % 5 > 0
    return X, U, low, high, torch.full((n,), 3.0, dtype=torch.float64), moving


def searching(search, max_iterations, norm, function=valleys):
    """Descents or polishing of a function of a centre and an offset."""

    def run(X, U, low, high, spread, moving):
        def value_and_gradient(X, U):
            return FunctionObjective(lambda U: function(X, U)).value_and_gradient(U)

        ball = CutBall(low, high, norm)
        given = (spread, moving) if search is descend else (moving,)
        return search(value_and_gradient, X, U, ball, *given, max_iterations)

    return run


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize(("search", "steps"), [(descend, 200), (polish, 60)])
def test_ends_are_local_minima_not_above_their_starts(norm, search, steps):
    X, start, low, high, spread, moving = started()
    U, values = searching(search, steps, norm)(X, start, low, high, spread, moving)
    first = valleys(X, start)
    assert bool((values <= first + 1e-12).all()) and torch.equal(U[~moving], start[~moving])
    assert_close(values, valleys(X, U), **TOL)
    assert bool((low <= U + 1e-12).all()) and bool((high >= U - 1e-12).all())
    if norm == "l2":
        assert U.norm(dim=-1).max() <= 1 + 1e-12
    g = torch.Generator().manual_seed(3)
    for size in (1e-2, 1e-3, 1e-5):
        near = U + size * torch.randn(500, *U.shape, generator=g, dtype=torch.float64)
        near = CutBall(low, high, norm).nearest(near)
        assert (values - valleys(X, near).amin(dim=0))[moving].max() < 1e-9


@pytest.mark.parametrize("search", [descend, polish])
def test_what_is_no_number_stays_at_its_start(search):
    def holes(X, U):
        return torch.where(U[..., 0] > 0.2, torch.nan, valleys(X, U))

    X, start, low, high, spread, moving = started()
    U, values = searching(search, 50, "l2", holes)(X, start, low, high, spread, moving)
    ill = start[:, 0] > 0.2
    assert torch.equal(U[ill], start[ill]) and bool(values[~ill].isfinite().all())
    assert bool((U[~ill, 0] <= 0.2).all())


# --- polishing with second derivatives ------------------------------------------------------------


@pytest.mark.parametrize(("search", "steps"), [(descend, 60), (polish, 30)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("d", [2, 3])
def test_starts_at_the_poles_of_a_ball_that_no_face_cuts_move_along_the_sphere(
    d, dtype, search, steps
):
    start = torch.cat([torch.eye(d), -torch.eye(d)]).to(dtype)
    slope = torch.arange(1.0, d + 1, dtype=dtype) - 0.5
    slope = slope / slope.norm()
    low = -torch.ones_like(start)
    moving = torch.ones(2 * d, dtype=torch.bool)
    arguments = (0 * start, start, low, -low, moving, moving)
    U, values = searching(search, steps, "l2", lambda X, U: U @ slope)(*arguments)
    assert_close(values, -torch.ones_like(values), **tolerance(dtype))
    assert_close(U, -slope.expand_as(U), rtol=0, atol=10 * tolerance(dtype)["atol"])
    # Where one face cuts it, the poles of the others are none of its corners.
    low[:, 0] = -0.5
    expected = CutBall(low, torch.ones_like(low), "l2").nearest(-1e3 * slope.expand_as(start))
    start = CutBall(low, torch.ones_like(low), "l2").clamp(start)
    U, values = searching(search, steps, "l2", lambda X, U: U @ slope)(
        0 * start, start, low, torch.ones_like(low), moving, moving
    )
    assert_close(values, expected @ slope, **tolerance(dtype))


STARTS = np.array([[2.2, -2.9], [2.3, -1.2], [4.7, -2.6]])


def cones(tops, heights):
    """Pyramids, one for each top. The value of a pyramid is the least of its four planes.

    Returns a function from ``r x d`` points to the ``4 x r`` values of the planes of the pyramid
    that is highest at each point, and their gradients.
    """
    tops, heights, slopes = (
        torch.tensor(a, dtype=torch.float64)
        for a in (tops, heights, [[1.0, 0.3], [-0.4, 1.0], [-1.0, -0.5], [0.3, -1.0]])
    )

    def cuts(X):
        values = heights - ((X[:, None] - tops) @ slopes.mT).movedim(-1, 0)
        best = values.amin(dim=0).argmax(dim=-1)  # of each point
        values = values.gather(2, best.expand(4, -1).unsqueeze(-1)).squeeze(-1)
        return values, -slopes[:, None].expand(4, len(X), 2)

    return cuts


def test_climbs_end_at_the_tops_of_pyramids():
    heights, X = along_ridges(cones([[3.0, -2.0]], [1.5]), BOX, STARTS, 1e-10, 60)
    # One of them goes to the end, the others stop where it is higher and near.
    assert heights.max() == pytest.approx(1.5, abs=1e-9)
    np.testing.assert_allclose(X[heights.argmax()], [3.0, -2.0], atol=1e-8)
    # Of two tops far apart each is climbed.
    tops, starts = [[2.4, -2.5], [4.6, -1.5]], np.array([[2.2, -2.9], [4.9, -1.1]])
    heights, X = along_ridges(cones(tops, [1.0, 2.0]), BOX, starts, 1e-10, 60)
    np.testing.assert_allclose(heights, [1.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(X, tops, atol=1e-8)


def test_a_top_outside_ends_at_the_face():
    heights, X = along_ridges(cones([[6.0, -2.0]], [0.0]), BOX, STARTS, 1e-10, 60)
    x, first = torch.as_tensor(X), torch.as_tensor(STARTS)
    cuts = cones([[6.0, -2.0]], [0.0])
    np.testing.assert_allclose(heights, cuts(x)[0].amin(dim=0))
    assert (heights >= cuts(first)[0].amin(dim=0).numpy()).all()
    assert X[heights.argmax()][0] == pytest.approx(5.0)
    assert bool(BOX.contains(x).all())
