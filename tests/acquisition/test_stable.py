"""StableUCB: worst cases by fine searches of the ball, their gradients, and climbs."""

import pytest
import torch
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.optim import optimize_acqf
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import StableUCB
from tests.acquisition.every_function import (
    BOUNDS,
    NOISE,
    batched,
    draw,
    ensemble,
    kernel_gp,
    members,
    of_many_forms,
    single_task_gp,
    singles,
)
from tests.helpers import fine_ball, pairwise, rbf, tolerance

NORMS = ("l2", "linf")
MODELS = {
    "batched": batched,
    "a list": singles,
    "SingleTaskGP": single_task_gp,
    "an ensemble": ensemble,
}


def stable(models, norm="l2", radius=0.3, width=1.7, **more):
    return StableUCB(models, width, radius, norm, bounds=BOUNDS, **more)


def inside(X):
    return ((X >= BOUNDS[0]) & (X <= BOUNDS[1])).all(dim=-1)


@pairwise(name=MODELS, norm=NORMS, pending=[0, 3], maximize=[True, False])
def test_the_value_is_the_largest_worst_case_of_a_fine_search(name, norm, pending, maximize):
    models, X, P = MODELS[name](), torch.cat([draw(5, 1)[0], BOUNDS]), draw(pending, 3)[0]
    acqf = stable(models, norm, maximize=maximize, X_pending=P if pending else None)
    sign = 1.0 if maximize else -1.0
    for x, value in zip(X, acqf(X[:, None]), strict=True):
        mean, std = members(models, fine_ball(BOUNDS, x, 0.3, norm, 25), P)
        fine = (sign * mean + 1.7 * std).amin(dim=-1).amax()
        assert fine - 1e-2 <= value <= fine + 1e-6


def test_the_order_of_models_and_radii():
    # Models of different forms have different worst points: mixing them up would show.
    parts = [ensemble(), *of_many_forms()]
    width, Z = torch.linspace(0.5, 2.5, 10, dtype=torch.float64), draw(6, 1)[0][:, None]
    together = stable(parts, radius=(0.3, 0.1), width=width)(Z)
    alone = [
        stable(part, radius=(0.3, 0.1), width=own)(Z)
        for part, own in zip(parts, width.split([4, 1, 3, 1, 1]), strict=True)
    ]
    assert_close(together, torch.stack(alone).amax(dim=0), **tolerance(torch.float64))


@pytest.mark.parametrize(
    ("models", "norm", "radius"),
    [(batched, "linf", 0.25), (ensemble, "l2", 0.25), (kernel_gp, "l2", (0.5, 0.0))],
)
def test_gradients_are_those_of_the_values(models, norm, radius):
    acqf, h = stable(models(), norm, radius, width=1.0), 1e-4
    X = draw(9, 2)[0]
    X[::4, 0] = BOUNDS[1, 0] - 0.1  # where the ball is cut
    X[1::4, 1] = BOUNDS[0, 1] + 0.05
    Z = X[:, None].requires_grad_()
    (gradient,) = torch.autograd.grad(acqf(Z).sum(), Z)
    with torch.no_grad():
        steps = h * torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=torch.float64)
        near = X + steps.view(5, 1, 1, 1) * torch.eye(2, dtype=torch.float64).unsqueeze(1)
        near = acqf(near.reshape(-1, 1, 2)).view(5, 2, 9).mT  # (5, 9, 2)
        numeric = (near[0] - 8 * near[1] + 8 * near[3] - near[4]) / (12 * h)
        third = (near[4] - 3 * near[3] + 3 * near[2] - near[1]).abs()
        third += (near[3] - 3 * near[2] + 3 * near[1] - near[0]).abs()
        smooth = (third <= 1e-9).all(dim=-1)
    assert smooth.sum() > 4
    assert_close(gradient.squeeze(1)[smooth], numeric[smooth], rtol=1e-5, atol=1e-5)


def test_a_transform_and_models_without_data_do_without_closed_forms():
    X, empty = draw(5, 1)[0][:, None], KernelGP(rbf(0.5), NOISE)
    turn = ScalarizedPosteriorTransform(torch.tensor([-1.0], dtype=torch.float64))
    turned = stable(kernel_gp(), posterior_transform=turn)(X)
    assert_close(turned, stable(kernel_gp(), maximize=False)(X), rtol=1e-5, atol=1e-5)
    assert_close(stable([kernel_gp(), empty])(X), stable(kernel_gp())(X).clamp_min(1.7))


@pytest.mark.parametrize("norm", NORMS)
def test_a_climb_finds_what_a_fine_grid_finds(norm):
    acqf = stable(kernel_gp(lengthscales=(0.5, 0.8, 1.2)), norm)
    axes = [torch.linspace(*BOUNDS[:, j].tolist(), 21, dtype=torch.float64) for j in range(2)]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        x, value = optimize_acqf(
            acqf, BOUNDS, 1, num_restarts=4, raw_samples=64, gen_candidates=acqf.gen_candidates
        )
    assert bool(inside(x).all())
    with torch.no_grad():
        assert_close(acqf(x), value.view(1), **tolerance(torch.float64))
        assert value >= acqf(torch.cartesian_prod(*axes).unsqueeze(-2)).max() - 1e-6


def test_dtype_and_device_follow_the_points(device):
    model = KernelGP(batched().kernel.float(), NOISE, dtype=torch.float32, device=device)
    model.add(*(values.float().to(device) for values in draw(8, 0)))
    Z = draw(5, 1)[0][:, None]
    values = stable(model)(Z.float().to(device))
    assert values.dtype == torch.float32 and values.device.type == device.type
    assert_close(values.cpu().double(), stable(batched())(Z), **tolerance(torch.float32))


def test_points_outside_the_bounds_are_refused():
    acqf, X = stable(kernel_gp()), BOUNDS[:, None] + torch.tensor([[[1e-9, 0.0]]]).double()
    assert bool(acqf(X).isfinite().all())
    with pytest.raises(ValueError, match="X must be within bounds"):
        acqf(X + 0.1)
