"""StableUCB by Newton steps and climbs along ridges: as low as descents, as high as grids, and of
the function as it is now."""

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.optim import optimize_acqf, optimize_acqf_mixed
from gpytorch.kernels import MaternKernel
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import OptimisticModelUCB, StableUCB
from botorch_ext.acquisition.stable import closed_bounds
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.search.objectives import FunctionObjective
from tests.acquisition.every_function import BOUNDS, draw, kernel_gp, single_task_gp
from tests.helpers import tolerance

NORMS = ("l2", "linf")
TOL = tolerance(torch.float64)
FUNCTION, NAN = "acquisition_function", float("nan")
ALL = {"batched": (0.5, 0.8, 1.2), "single": (0.8,)}


def models(name):
    if name == "mixed":
        matern = KernelGP(MaternKernel().double(), 0.02)
        matern.add(*draw(8, 0))
        return [kernel_gp(), kernel_gp(lengthscales=(0.5, 1.2)), matern]
    return kernel_gp(lengthscales=ALL[name])


def stable(models, norm="l2", radius=0.3, width=1.5, **more):
    return StableUCB(models, width, radius, norm, bounds=BOUNDS, **more)


@pytest.mark.parametrize("name", [*ALL, "mixed"])
@pytest.mark.parametrize("maximize", [True, False])
def test_closed_bounds_are_those_of_autograd(name, maximize):
    acqf = stable(models(name), maximize=maximize)
    count = acqf.num_models
    if name == "mixed":
        acqf = stable(models(name), width=[1.0, 2.0, 0.5, 3.0], maximize=maximize)
    closed, X = closed_bounds(acqf), draw(5 * count, 1)[0].view(5, count, 2)
    expected = FunctionObjective(acqf._upper_bounds)
    assert_close(closed.value(X), expected.value(X), **TOL)
    for got, same in zip(closed.value_and_gradient(X), expected.value_and_gradient(X), strict=True):
        assert_close(got, same, **TOL)


def test_where_there_is_no_closed_form():
    transform = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    empty = KernelGP(MaternKernel().double(), 0.02)
    for acqf in (
        stable(single_task_gp()),
        stable(kernel_gp(), posterior_transform=transform),
        stable([kernel_gp(), empty]),
    ):
        assert closed_bounds(acqf) is None
        assert bool(acqf(draw(3, 1)[0][:, None]).isfinite().all())


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("radius", [0.3, (0.5, 0.0), 1.5])
def test_gradients_of_worst_points_are_those_of_autograd(norm, radius):
    acqf = stable(kernel_gp(), norm, radius)
    X = torch.cat([draw(20, 2)[0], BOUNDS, BOUNDS[0] + torch.tensor([[0.1, 0.05]]).double()])
    balls = Perturbations(radius, norm).on(acqf.box)
    _, Z = balls.quick_worst_case(closed_bounds(acqf), X.unsqueeze(1))
    G = torch.randn(X.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moving = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad((balls.follow(moving, Z.squeeze(1)) * G).sum(), moving)
    assert_close(balls.pulled_back(X, Z.squeeze(1), G), expected, **TOL)


def test_values_and_gradients_where_the_worst_points_are_near_the_poles_of_the_ball():
    acqf, h = stable(kernel_gp()), 1e-5
    X = draw(1200, 6)[0]
    X = X[((X > BOUNDS[0] + 0.31) & (X < BOUNDS[1] - 0.31)).all(dim=-1)].unsqueeze(1)
    bounds, balls = closed_bounds(acqf), Perturbations(0.3).on(acqf.box)
    least, worst = balls.worst_case(bounds, X)
    near = ((worst - X).abs() > 0.29).any(dim=-1).squeeze(1)
    assert near.sum() > 50
    X, least = X[near].requires_grad_(), least[near].squeeze(1)
    values = acqf(X)
    assert_close(values, least, **TOL)
    (gradient,) = torch.autograd.grad(values.sum(), X)
    steps = h * torch.eye(2, dtype=torch.float64).view(2, 1, 1, 2)
    moved = ((X.detach() + step).flatten(0, 1) for step in (steps, -steps))
    up, down = (balls.worst_case(bounds, Z)[0].view(2, -1).mT for Z in moved)
    smooth = ((up + down - 2 * least.unsqueeze(-1)).abs() < 1e-7).all(dim=-1)
    assert smooth.double().mean() > 0.95
    numeric = (up - down) / (2 * h)
    assert_close(gradient.squeeze(1)[smooth], numeric[smooth], rtol=0, atol=1e-6)


# --- climbs --------------------------------------------------------------------------------------


def found(acqf, **more):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return optimize_acqf(
            acqf,
            BOUNDS,
            num_restarts=4,
            raw_samples=64,
            gen_candidates=acqf.gen_candidates,
            **{"q": 1} | more,
        )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", ["batched", "single"])
def test_a_climb_finds_what_a_fine_grid_finds(norm, name):
    acqf = stable(models(name), norm)
    axes = [torch.linspace(*BOUNDS[:, j].tolist(), 21, dtype=torch.float64) for j in range(2)]
    x, value = found(acqf)
    assert bool(((x >= BOUNDS[0]) & (x <= BOUNDS[1])).all())
    with torch.no_grad():
        assert_close(acqf(x), value.view(1), **TOL)
        assert value >= acqf(torch.cartesian_prod(*axes).unsqueeze(-2)).max() - 1e-6


@pytest.mark.slow
def test_climbs_in_batches_and_with_fixed_columns():
    acqf = stable(kernel_gp())
    X, values = found(acqf, q=3, sequential=True)
    assert X.shape == (3, 2) and torch.pdist(X).min() > 1e-2 and values.shape == (3,)
    X, _ = found(acqf, fixed_features={0: 3.0})
    assert X[0, 0] == 3.0
    line = torch.linspace(-3, -1, 200, dtype=torch.float64)
    line = torch.stack([torch.full_like(line, 3.0), line], dim=-1).unsqueeze(-2)
    with torch.no_grad():
        assert acqf(X) >= acqf(line).max() - 1e-6
    X, _ = optimize_acqf_mixed(
        acqf,
        BOUNDS,
        q=2,
        num_restarts=2,
        raw_samples=16,
        fixed_features_list=[{0: 2.0}, {0: 4.0}],
        gen_candidates=acqf.gen_candidates,
    )
    assert set(X[:, 0].tolist()) <= {2.0, 4.0}
    start = draw(2, 1)[0][:, None]
    ends, _ = acqf.gen_candidates(start, acqf, fixed_features={0: 3.0, 1: -2.0})
    assert ends.flatten(1).tolist() == [[3.0, -2.0]] * 2


def test_no_candidate_is_below_its_start():
    acqf, X = stable(models("mixed"), "linf"), draw(6, 8)[0][:, None]
    ends, values = acqf.gen_candidates(X, acqf, BOUNDS[0] + 0.3, BOUNDS[1] - 0.3)
    inside = torch.minimum(torch.maximum(X, BOUNDS[0] + 0.3), BOUNDS[1] - 0.3)
    with torch.no_grad():
        assert bool((values >= acqf(inside) - 1e-12).all())
        assert_close(acqf(ends), values, **TOL)
    assert bool(((ends >= BOUNDS[0] + 0.3) & (ends <= BOUNDS[1] - 0.3)).all())
    none = acqf.gen_candidates(X, acqf, options={"maxiter": 0})[0]
    assert_close(none, X)


def test_climbs_that_cannot_be_are_refused():
    acqf, X = stable(kernel_gp()), draw(2, 8)[0]
    with pytest.raises(ValueError, match="inequality_constraints must be None"):
        acqf.gen_candidates(X[:, None], acqf, inequality_constraints=[1])
    with pytest.raises(ValueError, match="acquisition_function must be the one"):
        acqf.gen_candidates(X[:, None], OptimisticModelUCB(kernel_gp(), 1.0))
    with pytest.raises(ValueError, match=r"initial_conditions must have shape \(n, 1, d\)"):
        acqf.gen_candidates(X[None], acqf)
    for name, wrong in (
        ("fixed_features", [{5: 3.0}, {"x": 3.0}, {0: NAN}, {0: "a"}, {0: [3.0] * 3}, {0: 1.5}, 3]),
        ("lower_bounds", [[2.0] * 3, 7.0]),
        ("upper_bounds", [[NAN, 1.0], -8]),
        ("options", ["fast"]),
        ("initial_conditions", [X[:0, None], NAN * X[:, None]]),
    ):
        for value in wrong:
            given = {"initial_conditions": X[:, None], FUNCTION: acqf, name: value}
            with pytest.raises(ValueError, match=f"{name}|lower_bounds"):
                acqf.gen_candidates(**given)
    with pytest.raises(ValueError, match="maxiter"):
        acqf.gen_candidates(X[:, None], acqf, options={"maxiter": -1})


def test_points_outside_the_bounds_are_refused():
    acqf, X = stable(kernel_gp()), BOUNDS[:, None] + torch.tensor([[[1e-9, 0.0]]]).double()
    assert bool(acqf(X).isfinite().all())
    with pytest.raises(ValueError, match="X must be within bounds"):
        acqf(X + 0.1)
