import pytest
import torch
from scipy.optimize import lsq_linear
from torch.testing import assert_close

from botorch_ext.search import ascent
from botorch_ext.search.ascent import feasible_ascent, projected_bfgs


@pytest.fixture(params=["those that move", "all to the end"], autouse=True)
def form(request, monkeypatch):
    """Both forms pass the same tests, wherever they are used."""
    if request.param == "all to the end":
        monkeypatch.setattr(ascent, "_those_that_move", ascent.climb_in_step)


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


def concave_quadratic(seed, dim):
    """-|L'(x - peak)|^2 / 2, and its exact maximum on the cube."""
    g = torch.Generator().manual_seed(seed)
    A = torch.randn(dim, dim, generator=g, dtype=torch.float64)
    L = torch.linalg.cholesky(A @ A.mT + 0.05 * torch.eye(dim, dtype=torch.float64))
    # The unconstrained peak lies outside the cube in some coordinates.
    peak = 0.5 + 0.8 * torch.randn(dim, generator=g, dtype=torch.float64)
    # Bounded-variable least squares: an active-set method, exact but for rounding.
    exact = lsq_linear(L.mT.numpy(), (L.mT @ peak).numpy(), bounds=(0, 1), method="bvls")
    return lambda X: -0.5 * ((X - peak) @ L).square().sum(dim=-1), -exact.cost


def starts(num, dim, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(num, dim, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("dim", [1, 2, 6, 15])
def test_constrained_quadratics_are_solved_exactly(dim):
    for seed in range(10):
        function, best = concave_quadratic(seed, dim)
        f = with_gradient(function)
        X, values = projected_bfgs(f, starts(5, dim, seed), 1e-8, 1e-15)
        assert bool(((X >= 0) & (X <= 1)).all())
        # One concave function has one maximum: every start finds it.
        assert_close(values, torch.full((5,), best, dtype=torch.float64), rtol=0, atol=1e-9)


def test_each_start_climbs_its_own_function_where_it_is_told_its_row():
    centres = starts(6, 3, seed=1)

    def own(X, rows):
        residual = centres[rows] - X
        scale = 1 + rows.to(X)
        return -(scale * residual.square().sum(dim=-1)), 2 * scale[:, None] * residual

    X, _ = projected_bfgs(own, starts(6, 3, seed=2), 1e-9, 1e-15, with_rows=True)
    assert_close(X, centres, rtol=0, atol=1e-7)


def test_a_curved_valley_is_followed_in_few_evaluations():
    count = 0
    f = with_gradient(rosenbrock)

    def counted(X):
        nonlocal count
        count += 1
        return f(X)

    X, values = projected_bfgs(counted, starts(8, 2), 1e-8, 1e-15)
    assert_close(
        X, torch.tensor([[0.8, 0.64]], dtype=torch.float64).expand(8, 2), rtol=0, atol=1e-5
    )
    assert values.max() > -1e-12
    # Steepest ascent needs thousands.
    assert count < 200


def test_starts_do_not_influence_each_other():
    f = with_gradient(rosenbrock)
    U = starts(6, 2, seed=3)
    together, values = projected_bfgs(f, U)
    for i in range(6):
        alone, value = projected_bfgs(f, U[i : i + 1])
        assert_close(together[i], alone[0], rtol=0, atol=1e-12)
        assert_close(values[i], value[0], rtol=0, atol=1e-12)


def test_no_start_gets_worse_on_a_rough_function():
    def rough(X):
        return (30 * X).sin().sum(dim=-1) + (97 * X).cos().sum(dim=-1) - (X - 0.3).abs().sum(dim=-1)

    f, U = with_gradient(rough), starts(200, 3, seed=1)
    before = f(U)[0]
    _, after = projected_bfgs(f, U)
    assert bool((after >= before).all())
    assert after.mean() > before.mean() + 1


def test_nan_beside_a_cliff_is_stepped_back_from():
    def cliff(X):
        return torch.where(X[:, 0] < 0.7, X[:, 0], torch.nan)

    _, values = projected_bfgs(
        with_gradient(cliff), torch.tensor([[0.2], [0.6]], dtype=torch.float64)
    )
    assert bool(torch.isfinite(values).all())
    assert values.min() > 0.65


# --- feasible ascent ------------------------------------------------------------------------------


def slope(*coefficients):
    c = torch.tensor(coefficients, dtype=torch.float64)
    return lambda X: (X * c).sum(dim=-1)


def in_disc(U):
    return (U - 0.5).norm(dim=-1) <= 0.3


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


def test_a_race_ends_as_high_with_fewer_steps():
    peaks = starts(12, 3, seed=3)
    heights = torch.linspace(0.5, 1.0, 12, dtype=torch.float64)
    counts = []

    def hills(X):
        counts[-1] += len(X)
        return (heights * (-20 * torch.cdist(X, peaks).square()).exp()).sum(dim=-1)

    ends = []
    for race in (False, True):
        counts.append(0)
        ends.append(projected_bfgs(with_gradient(hills), starts(40, 3, seed=8), race=race)[1])
    assert_close(ends[1].max(), ends[0].max(), rtol=0, atol=1e-9)
    assert counts[1] < 0.8 * counts[0]


def test_feasible_ascent_reaches_a_constrained_maximum():
    # The maximum of 2 x + y over the disc is on its boundary, in the direction (2, 1).
    U = starts(400, 2, seed=4)
    U = U[in_disc(U)]
    X, values = feasible_ascent(with_gradient(slope(2.0, 1.0)), U, in_disc, 60)
    best = 1.5 + 0.3 * 5**0.5
    assert values.max() <= best + 1e-12
    # Straight gradient steps stop where the boundary stops them; those that head for the maximum
    # get there.
    assert best - values.max() < 1e-3
    # With the maximum inside the disc all of them do.
    peak = torch.tensor([0.6, 0.45], dtype=torch.float64)
    bowl = with_gradient(lambda X: -(X - peak).square().sum(dim=-1))
    X, _ = feasible_ascent(bowl, U, in_disc, 60)
    assert_close(X, peak.expand_as(X), rtol=0, atol=1e-6)


def test_feasible_ascent_stays_where_nothing_is_feasible():
    U = starts(5, 3)
    f = with_gradient(slope(1.0, 1.0, 1.0))
    X, values = feasible_ascent(f, U, lambda X: torch.zeros_like(X[:, 0], dtype=torch.bool), 5)
    assert torch.equal(X, U)
    assert torch.equal(values, f(U)[0])
