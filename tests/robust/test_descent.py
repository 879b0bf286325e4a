import numpy as np
import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.robust.descent import CutBall, descend
from botorch_ext.robust.newton import polish
from botorch_ext.robust.ridges import along_ridges
from botorch_ext.search.objectives import FunctionObjective
from tests.helpers import tolerance

NORMS = ["l2", "linf"]
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


BOX = Box([[2.0, -3.0], [5.0, -1.0]])
STARTS = np.array([[2.2, -2.9], [2.3, -1.2], [4.7, -2.6]])


def cones(tops, heights):
    """Of each top the four planes of a pyramid; the least of four, the highest pyramid of each
    point: a function ``r x d`` to ``4 x r`` values and their gradients."""
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
