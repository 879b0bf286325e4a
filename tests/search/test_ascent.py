import math

import numpy as np
import pytest
import torch
from scipy.optimize import lsq_linear
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.search.ascent import ascent_of_least, batched_lbfgsb, feasible_ascent
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.sliding import sliding_ascent
from tests.helpers import drawn


def with_gradient(function):
    def value_and_gradient(X):
        X = X.detach().requires_grad_()
        values = function(X)
        (gradient,) = torch.autograd.grad(values.sum(), X)
        return values.detach(), gradient

    return value_and_gradient


def rosenbrock(X):
    # The valley y = x^2, its peak at (0.8, 0.64), in the unit square.
    return -((X[:, 0] - 0.8) ** 2) - 100 * (X[:, 1] - X[:, 0] ** 2) ** 2


def concave_quadratics(dim, num):
    """Functions -|L'(x - peak)|^2 / 2, stacked, and their exact maxima in the unit cube.

    Condition numbers are up to 1,000, half of the peaks lie outside, and values vary by about 1.
    """
    g = np.random.default_rng(dim)
    roots, peaks, best = np.empty((num, dim, dim)), np.empty((num, dim)), np.empty(num)
    for i in range(num):
        Q, _ = np.linalg.qr(g.standard_normal((dim, dim)))
        lowest = -g.uniform(0, 3)
        L = Q * 10 ** (0.5 * np.linspace(0, lowest, dim))
        peak = g.uniform(0, 1, dim) if i % 2 else 0.5 + 0.8 * g.standard_normal(dim)
        values = -0.5 * np.square((g.uniform(size=(64, dim)) - peak) @ L).sum(axis=-1)
        roots[i], peaks[i] = L / np.ptp(values) ** 0.5, peak
        # Bounded-variable least squares: an active-set method, exact but for rounding.
        target = roots[i].T @ peak
        found = lsq_linear(roots[i].T, target, bounds=(0, 1), method="bvls", tol=1e-15)
        best[i] = -found.cost
    return tuple(torch.as_tensor(each) for each in (roots, peaks, best))


def starts(num, dim, seed=0):
    return drawn(num, dim, seed=seed)


@pytest.mark.parametrize(("dim", "num"), [(1, 20), (2, 150), (3, 100), (6, 40), (15, 40)])
def test_no_ascent_of_a_concave_quadratic_ends_on_a_slope(dim, num):
    roots, peaks, best = (each.repeat_interleave(4, dim=0) for each in concave_quadratics(dim, num))

    def f(X):
        residual = ((X - peaks).unsqueeze(-2) @ roots).squeeze(-2)
        return -0.5 * residual.square().sum(dim=-1), -(roots @ residual.unsqueeze(-1)).squeeze(-1)

    X, values = batched_lbfgsb(f, starts(4 * num, dim), 1e-11, together=True)
    assert bool(((X >= 0) & (X <= 1)).all())
    assert_close(values, f(X)[0], rtol=0, atol=1e-12)
    assert_close(values, best, rtol=0, atol=1e-9)


def test_no_start_gets_worse_on_a_rough_function():
    def rough(X):
        return (30 * X).sin().sum(dim=-1) + (97 * X).cos().sum(dim=-1) - (X - 0.3).abs().sum(dim=-1)

    f, U = with_gradient(rough), starts(200, 3, seed=1)
    before = f(U)[0]
    X, after = batched_lbfgsb(f, U, 1e-9)
    assert_close(after, f(X)[0], rtol=0, atol=0)
    assert bool((after >= before).all())
    assert after.mean() > before.mean() + 1


def test_a_start_stays_where_its_gradient_leads_downhill():
    def misled(X):
        return -(X - 0.4).square().sum(dim=-1), 2 * (X - 0.4)

    U = starts(6, 2, seed=1)
    X, values = batched_lbfgsb(misled, U, 1e-9)
    assert torch.equal(X, U)
    assert_close(values, misled(U)[0], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_start_at_a_maximum_ends_there_and_is_not_evaluated_again(dtype):
    sizes = []

    def bowl(X):
        sizes.append(len(X))
        return -(X - 0.25).square().sum(dim=-1) + X[:, 0], 0.5 - 2 * X + X.new_tensor([1.0, 0.0])

    # The maximum: on a face in the first coordinate, inside in the second.
    U = torch.tensor([[0.75, 0.25]] * 4 + [[0.1, 0.9]], dtype=dtype)
    X, values = batched_lbfgsb(bowl, U, 1e-9)
    assert X.dtype == values.dtype == dtype
    assert sizes[0] == 5 and len(sizes) > 1 and {*sizes[1:]} == {1}
    assert torch.equal(X[:4], U[:4])
    assert_close(values, bowl(X)[0], rtol=0, atol=0)
    corner = torch.tensor([[0.0, 1.0, 0.0]], dtype=dtype)
    X, _ = batched_lbfgsb(with_gradient(lambda X: X[:, 1] - X[:, 0] - X[:, 2]), corner, 1e-9)
    assert torch.equal(X, corner)


def test_iterations_are_limited():
    f, U = with_gradient(rosenbrock), starts(8, 2)
    few, more, all_of_them = (batched_lbfgsb(f, U, 1e-12, most)[1] for most in (2, 8, 200))
    assert (few >= f(U)[0]).all() and (few <= more).all() and (more <= all_of_them).all()
    assert (few < all_of_them).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_stepped_back_from(bad):
    def cliff(X):
        return torch.where(X[:, 0] < 0.7, X[:, 0], bad)

    U = torch.tensor([[0.2, 0.9], [0.6, 0.1], [0.9, 0.5]], dtype=torch.float64)
    sizes = []

    def counted(X):
        sizes.append(len(X))
        return with_gradient(cliff)(X)

    X, values = batched_lbfgsb(counted, U, 1e-9)
    assert values[:2].min() > 0.65
    assert sum(sizes) < 400  # no ascent begins again at the cliff
    # Nothing leads away from a start without a value.
    assert torch.equal(X[2], U[2])
    assert values[2] == -math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_an_entry_of_a_gradient_that_is_not_finite_is_zero(bad):
    def bowl(X):
        gradient = -2 * (X - 0.4)
        gradient[:, 1] = bad
        return -(X - 0.4).square().sum(dim=-1), gradient

    U = starts(4, 2, seed=2)
    X, values = batched_lbfgsb(bowl, U, 1e-12)
    assert_close(X[:, 0], torch.full((4,), 0.4, dtype=torch.float64), rtol=0, atol=1e-6)
    assert torch.equal(X[:, 1], U[:, 1])
    assert_close(values, bowl(X)[0], rtol=0, atol=0)


def test_a_race_ends_as_high_with_fewer_evaluations():
    peaks = starts(12, 3, seed=3)
    heights = torch.linspace(0.5, 1.0, 12, dtype=torch.float64)
    counts = []

    def narrow_hills(X):
        counts[-1] += len(X)
        return (heights * (-20 * torch.cdist(X, peaks).square()).exp()).sum(dim=-1)

    found = []
    for race in (False, True):
        counts.append(0)
        found.append(
            batched_lbfgsb(with_gradient(narrow_hills), starts(40, 3, seed=8), 1e-9, race=race)
        )
    assert_close(found[1][1].max(), found[0][1].max(), rtol=0, atol=1e-9)
    assert counts[1] < 0.8 * counts[0]
    # The values are those of the points, of starts that gave up too.
    counts.append(0)
    assert_close(found[1][1], narrow_hills(found[1][0]), rtol=0, atol=1e-12)
    assert found[1][1].min() < found[0][1].min()


# --- feasible ascent ------------------------------------------------------------------------------


def slope(*coefficients):
    c = torch.tensor(coefficients, dtype=torch.float64)
    return lambda X: (X * c).sum(dim=-1)


def hills_with_a_common_kink(dim, num, at, outwards):
    """Concave functions whose values are 0 at a point, and whose gradients there have the sum
    ``outwards``. If these are the normal of a face at the point, or 0, the maximum of the least of
    them in the unit cube is at the point: the average of the functions is at most 0 there."""
    g = np.random.default_rng(dim)
    slopes = g.standard_normal((num, dim))
    slopes[-1] = num * outwards.numpy() - slopes[:-1].sum(axis=0)
    slopes, bends = torch.as_tensor(slopes), torch.as_tensor(g.uniform(0.1, 10, (num, dim)))

    def cuts(X):
        step = X - at
        values = slopes @ step.mT - 0.5 * bends @ step.square().mT
        return values, slopes[:, None] - bends[:, None] * step

    return cuts


@pytest.mark.parametrize(("dim", "num"), [(1, 2), (2, 3), (4, 2), (4, 5), (10, 3)])
@pytest.mark.parametrize("is_at_face", [False, True])
def test_the_top_of_a_kink_is_reached(dim, num, is_at_face):
    at, outwards = torch.full((dim,), 0.4).double(), torch.zeros(dim).double()
    if is_at_face:
        at[0], outwards[0] = 1.0, 0.7
    cuts = hills_with_a_common_kink(dim, num, at, outwards)
    for start in starts(4, dim, seed=dim):
        end = ascent_of_least(cuts, start)
        assert float(cuts(end[None])[0].min()) > -1e-9
        assert bool(((end >= 0) & (end <= 1)).all())


def test_the_top_of_a_kink_at_the_edge_of_a_set_is_reached():
    def functions(X):
        in_disc = 0.04 - (X - 0.5).square().sum(dim=-1)
        values = torch.stack([X[:, 0], X[:, 1] + 0.1, in_disc])
        slopes = torch.eye(2, dtype=X.dtype)[:, None].expand(2, len(X), 2)
        return values, torch.cat([slopes, -2 * (X - 0.5)[None]])

    for start in 0.4 + 0.2 * starts(4, 2, seed=5):
        end = ascent_of_least(functions, start, num_slacks=1)
        x, y = end.tolist()
        assert y == pytest.approx(x - 0.1, abs=1e-6)
        assert (x - 0.5) ** 2 + (y - 0.5) ** 2 == pytest.approx(0.04, abs=2e-6)
        assert x > 0.5
        few = ascent_of_least(functions, start, 1, tolerance=0.5)
        assert functions(few[None])[0][:2].min() >= min(start[0], start[1] + 0.1)


@pytest.mark.parametrize(("dim", "num"), [(1, 2), (2, 2), (4, 2), (4, 5), (10, 3)])
def test_a_search_of_a_box_ends_on_top_of_a_kink(dim, num):
    box = Box(2.0 * drawn(1, dim, seed=1) + torch.tensor([[-3.0], [1.5]], dtype=torch.float64))
    at = box.from_unit(torch.full((1, dim), 0.4).double())[0]

    class Least:
        cuts = staticmethod(hills_with_a_common_kink(dim, num, at, torch.zeros(dim)))

        def value(self, X):
            return self.cuts(X)[0].amin(dim=0)

        def value_and_gradient(self, X):
            values, gradients = self.cuts(X)
            least, which = values.min(dim=0)
            return least, gradients[which, torch.arange(len(X))]

    _, value = maximize_on_box(Least(), box, seed=3)
    assert float(value) > -1e-8


def test_an_ascent_of_the_least_stays_where_values_are_not_finite():
    start = torch.tensor([0.3, 0.6]).double()
    end = ascent_of_least(lambda X: (X.new_full((2, 1), torch.nan), X.new_zeros(2, 1, 2)), start)
    assert_close(end, start)


def test_feasible_ascent_never_leaves_the_set_nor_descends():
    def rough(X):
        return (30 * X).sin().sum(dim=-1) + (97 * X).cos().sum(dim=-1)

    def in_ring(U):
        r = (U - 0.5).norm(dim=-1)
        return (r >= 0.25) & (r <= 0.45)

    f, U = with_gradient(rough), starts(600, 2, seed=1)
    U = U[in_ring(U)]
    before, tried = f(U)[0], []

    def feasible(X):
        tried.append(X.clone())
        return in_ring(X)

    X, after = feasible_ascent(f, U, feasible, 10)
    assert bool(in_ring(X).all())
    assert not bool(in_ring(torch.cat(tried)).all())  # it was tempted
    assert bool((after >= before).all())
    assert after.mean() > before.mean() + 0.5
    assert_close(after, f(X)[0], rtol=0, atol=0)


def test_feasible_ascent_holds_coordinates_at_faces():
    U = torch.tensor([[1.0, 0.3], [0.9, 0.0], [0.5, 0.5]], dtype=torch.float64)
    f = with_gradient(lambda X: 2 * X[:, 0] - (X[:, 1] - 0.6).square())
    X, _ = feasible_ascent(f, U, None, 40)
    assert bool((X[:, 0] == 1).all())  # the face is reached exactly, and the other coordinate moves
    assert_close(X[:, 1], torch.full((3,), 0.6, dtype=torch.float64), rtol=0, atol=1e-3)
    # In a corner that the gradient points out of, nothing moves.
    corner = torch.ones(1, 2, dtype=torch.float64)
    X, values = feasible_ascent(with_gradient(slope(1.0, 3.0)), corner, None, 5)
    assert torch.equal(X, corner)
    assert values.item() == 4.0


BOX = Box([[2.0, -3.0], [5.0, -1.0]])
CENTER = [3.0, -2.0]
SCALE = torch.tensor([1.5, 1.0], dtype=torch.float64)


def hill(X):
    """A smooth hill with its top outside the box."""
    return 3 + (-0.1 * (X - X.new_tensor([6.0, 0.5])).square().sum(dim=-1))


def disc(X):
    return 0.9 - (X - X.new_tensor(CENTER)).norm(dim=-1)


def below(X):
    return -1.8 - X[:, 1] + 0.2 * torch.sin(3 * X[:, 0])


def climb(constraints, starts, objective=hill, num_steps=10):
    met = [FunctionObjective(constraint) for constraint in constraints]

    def feasible(X):
        return torch.stack([m.value(X) >= 0 for m in met]).all(dim=0)

    return sliding_ascent(
        FunctionObjective(objective),
        [m.value_and_gradient for m in met],
        feasible if met else None,
        BOX,
        torch.tensor(starts, dtype=torch.float64),
        SCALE,
        num_steps,
    )


def dense_maximum(constraints, objective=hill):
    """The largest value on a fine grid, refined twice around its best point."""
    lower, upper = BOX.lower, BOX.upper
    for _ in range(4):
        axes = [
            torch.linspace(float(a), float(b), 801).double()
            for a, b in zip(lower, upper, strict=True)
        ]
        X = torch.cartesian_prod(*axes)
        for constraint in constraints:
            X = X[constraint(X) >= 0]
        best = X[objective(X).argmax()]
        width = (upper - lower) / 40
        lower, upper = (best - width).maximum(BOX.lower), (best + width).minimum(BOX.upper)
    return float(objective(X).max())


CASES = {
    "the box alone": [],
    "one constraint": [disc],
    "the tip of two": [disc, below],
    "a tip on a face": [lambda X: X[:, 0] - 2.2, lambda X: -1.4 - X[:, 1] + 0.1 * X[:, 0].sin()],
}


@pytest.mark.parametrize("case", CASES)
def test_the_constrained_maximum_is_reached(case):
    constraints = CASES[case]
    starts = [[2.6, -2.4], [3.2, -2.6], [2.5, -2.3]]
    ends, values = climb(constraints, starts)
    best = dense_maximum(constraints)
    assert float(values.max()) == pytest.approx(best, rel=1e-5)
    assert torch.equal(values, hill(ends))
    assert bool(BOX.contains(ends).all())
    for constraint in constraints:
        assert bool((constraint(ends) >= 0).all())
    assert bool((values >= hill(torch.tensor(starts, dtype=torch.float64))).all())


def test_a_climb_does_not_end_where_whole_steps_would_leave():
    # All whole steps leave a disc much smaller than the scale: without parts of them it is .94.
    def small(X):
        return 0.1 - (X - X.new_tensor(CENTER)).norm(dim=-1)

    _, values = climb([small], [[3.0, -2.025]], num_steps=8)
    assert float(values.max()) >= 0.999 * dense_maximum([small])
    # Where nothing else is feasible, a start stays.
    ends, _ = climb([lambda X: -(X - X.new_tensor(CENTER)).abs().sum(dim=-1)], [CENTER])
    assert ends.tolist() == [CENTER]
