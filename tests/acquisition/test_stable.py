import pytest
import torch
from gpytorch.kernels import PeriodicKernel
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.acquisition import OptimisticModelUCB, StableUCB
from tests.acquisition.test_optimistic import (
    BOUNDS,
    NOISE,
    batched,
    draw,
    ensemble,
    single_task_gp,
    singles,
    upper_bounds,
)
from tests.helpers import tolerance

NORMS = ("l2", "linf")


def inside(X):
    return ((X >= BOUNDS[0]) & (X <= BOUNDS[1])).all(dim=-1)


def fine_ball(x, radius, norm, count=25):
    axis = torch.linspace(-1, 1, count, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = torch.cat([U, U / U.norm(dim=-1, keepdim=True).clamp_min(1e-9)])
    if norm == "l2":
        U = U[U.norm(dim=-1) <= 1 + 1e-12]
    Z = x + radius * U
    return Z[inside(Z)]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("models", [batched, singles])
def test_largest_worst_case_by_a_fine_search(models, norm):
    X = torch.cat([draw(5, 1)[0], BOUNDS])
    values = StableUCB(models(), 1.7, 0.3, norm, bounds=BOUNDS)(X[:, None])
    for x, value in zip(X, values, strict=True):
        fine = upper_bounds(fine_ball(x, 0.3, norm), 1.7).amin(dim=-1).amax()
        assert fine - 1e-2 <= value <= fine + 1e-9


def test_the_order_of_models_and_radii():
    # Models of different forms have different worst points: mixing them up would show.
    X, y = draw(12, 0)
    periodic = KernelGP(PeriodicKernel().double(), NOISE, mean=lambda X: 1.0 + 0 * X[..., 0])
    periodic.add(X, y)
    parts = [periodic, ensemble(), batched(), single_task_gp()]
    width = torch.linspace(0.5, 2.5, 9, dtype=torch.float64)
    Z = draw(6, 1)[0][:, None]
    together = StableUCB(parts, width, (0.3, 0.1), bounds=BOUNDS)(Z)
    alone = [
        StableUCB(part, w, (0.3, 0.1), bounds=BOUNDS)(Z)
        for part, w in zip(parts, width.split([1, 4, 3, 1]), strict=True)
    ]
    assert_close(together, torch.stack(alone).amax(dim=0), **tolerance(torch.float64))


@pytest.mark.parametrize("models", [batched, ensemble, single_task_gp])
def test_without_a_radius_it_is_the_bound_itself(models):
    Z = draw(8, 1)[0][:, None]
    stable = StableUCB(models(), 1.7, 0.0, bounds=BOUNDS)(Z)
    assert_close(stable, OptimisticModelUCB(models(), 1.7)(Z), **tolerance(torch.float64))


@pytest.mark.parametrize(("models", "norm"), [(batched, "linf"), (ensemble, "l2")])
def test_gradients(models, norm):
    acqf, h = StableUCB(models(), 1.0, 0.25, norm, bounds=BOUNDS), 1e-4
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
        kink = (third > 1e-9).any(dim=-1)
    assert kink.sum() < 5
    numeric = numeric[~kink]
    assert_close(gradient.squeeze(1)[~kink], numeric, rtol=1e-5, atol=1e-5)


def test_pending_points_are_hallucinated_for_every_model():
    pending, X = draw(3, 3)[0], draw(5, 1)[0]
    acqf = StableUCB(batched(), 2.0, 0.2, bounds=BOUNDS, X_pending=pending)
    plain = OptimisticModelUCB(batched(), 2.0, X_pending=pending)
    for x, value in zip(X, acqf(X[:, None]), strict=True):
        Z = fine_ball(x, 0.2, "l2")[:, None]
        with torch.no_grad():
            fine = plain._upper_bounds(Z).amin(dim=0).amax()
        assert fine - 1e-2 <= value <= fine + 1e-9
    acqf.set_X_pending(None)
    told = StableUCB(batched(), 2.0, 0.2, bounds=BOUNDS)
    assert_close(acqf(X[:, None]), told(X[:, None]))


def test_minimisation():
    X = draw(6, 1)[0]
    negative = [KernelGP(model.kernel, NOISE) for model in singles()]
    for model in negative:
        data, y = draw(12, 0)
        model.add(data, -y)
    acqf = StableUCB(negative, 2.0, 0.2, bounds=BOUNDS, maximize=False)
    plain = StableUCB(singles(), 2.0, 0.2, bounds=BOUNDS)
    assert_close(acqf(X[:, None]), plain(X[:, None]), **tolerance(torch.float64))


def test_dtype_and_device_follow_the_points(device):
    kernel = batched().kernel.float()
    model = KernelGP(kernel, NOISE, dtype=torch.float32, device=device)
    model.add(*(values.float().to(device) for values in draw(12, 0)))
    Z = draw(5, 1)[0][:, None]
    acqf = StableUCB(model, 2.0, 0.2, bounds=BOUNDS)
    values = acqf(Z.float().to(device))
    assert values.dtype == torch.float32 and values.device.type == device.type
    expected = StableUCB(batched(), 2.0, 0.2, bounds=BOUNDS)(Z)
    assert_close(values.cpu().double(), expected, **tolerance(torch.float32))
