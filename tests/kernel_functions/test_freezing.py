"""Every frozen kernel equals GPyTorch's in values and gradients, single and batched."""

import math

import pytest
import torch
from gpytorch.kernels import AdditiveKernel as Sum
from gpytorch.kernels import IndexKernel, ProductKernel
from torch.testing import assert_close

from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.kernels.frozen import CombinedKernel, StationaryKernel, freeze
from botorch_ext.kernels.frozen.smoothed_matern import SmoothedMatern
from botorch_ext.kernels.frozen.stationary import weighted_squares
from tests.helpers import devices, drawn, pairwise, tolerance
from tests.kernel_functions.kernels import (
    ARD,
    BASES,
    BATCHED,
    DECOMPOSITIONS,
    batch_of,
    periodic,
    points,
    scaled,
    spread,
    stationary,
)
from tests.kernels import joint

pytestmark = joint.sparse_matrices
TOL = tolerance(torch.float64)
CPU = torch.device("cpu")
NUS = {"rbf": math.inf, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
MANY = spread(0.3, 2.0, 4, 1, 1)
MANY_ARD = spread(0.3, 3.0, 4, 1, 3)
SCALES = spread(0.2, 1.5, 4)


def kernels():
    """Names, and functions that make kernels."""
    for name, nu in NUS.items():
        yield name, lambda nu=nu: stationary(nu)
        yield f"{name} ard scaled", lambda nu=nu: scaled(stationary(nu, ARD))
        yield f"{name} batched ard", lambda nu=nu: scaled(stationary(nu, MANY_ARD), SCALES)
        yield (
            f"{name} of two batch dimensions",
            lambda nu=nu: stationary(nu, spread(0.3, 2.0, 2, 4, 1, 1)),
        )
    yield "batched scale", lambda: scaled(stationary(1.5), SCALES)
    yield "columns", lambda: stationary(1.5, spread(0.3, 2.0, 1, 2), active_dims=(2, 0))
    yield "scaled twice", lambda: scaled(scaled(stationary(2.5, MANY)), SCALES)
    yield "batched columns", lambda: stationary(math.inf, MANY, active_dims=(0, 2))
    yield "sum", lambda: Sum(stationary(math.inf, 0.4, active_dims=(0,)), stationary(2.5))
    yield "product", lambda: ProductKernel(stationary(math.inf), stationary(1.5, ARD), periodic())
    yield (
        "batched sum of products",
        lambda: scaled(stationary(1.5, MANY) * stationary(2.5, ARD) + stationary(0.5), SCALES),
    )
    yield "batched product", lambda: stationary(math.inf, MANY_ARD) * scaled(stationary(1.5, MANY))
    yield "periodic", periodic
    yield (
        "periodic columns",
        lambda: scaled(periodic(spread(0.5, 3.0, 1, 2), spread(0.4, 2.0, 1, 2), (2, 0)), 1.3),
    )
    yield "periodic of batched lengthscales", lambda: periodic(spread(0.7, 0.7, 4, 1, 1), MANY)
    yield "periodic of batched periods", lambda: periodic(MANY, spread(0.7, 0.7, 4, 1, 1))
    yield "batched periodic ard", lambda: scaled(periodic(MANY_ARD, MANY_ARD), SCALES)
    for i, (name, make) in enumerate(BASES.items()):
        groups = DECOMPOSITIONS[i % len(DECOMPOSITIONS)]
        yield f"groups of {name}", lambda make=make, g=groups: AdditiveKernel(make(), g, 3)
    for name, make in BATCHED.items():
        yield f"batched groups of {name}", lambda make=make: batch_of(make())
    yield "groups, scaled", lambda: scaled(AdditiveKernel(stationary(2.5), [(0, 1), (1, 2)], 3), 2)
    for name, make in (joint.SINGLE | joint.NO_CLOSED_FORM).items():
        yield f"joint {name}", make
    for name, make in joint.BATCHED.items():
        yield f"joint batched {name}", make


KERNELS = dict(kernels())


def inputs(name, kernel, own_points=False):
    """Two sets of points, shared by the batch of the kernel or one second set for each."""
    draw = joint.points if name.startswith("joint") else points
    return draw(6, 0), draw(5, 1, kernel.batch_shape if own_points else ())


@pairwise(name=KERNELS, own_points=[False, True], device=devices())
def test_values_and_gradients_are_those_of_gpytorch(name, own_points, device):
    kernel = KERNELS[name]()
    batch = kernel.batch_shape
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.batch_shape == batch
    assert frozen.has_closed_form_gradient == ("generic" not in name and "linear" not in name)
    X1, X2 = inputs(name, kernel, own_points)
    more = X1.expand(2, *[1] * len(batch), *X1.shape)
    near = X2.clone()
    near[..., :2, :] = X1[:2]
    own = X2.expand(*batch, *X2.shape[-2:])

    def values(A, B):
        return frozen(A.to(device), B.to(device)).cpu()

    with torch.no_grad():
        expected = kernel(X1, near).to_dense().expand(*batch, 6, 5)
        # GPyTorch's distances of a point to itself are at least 1e-8 lengthscales.
        assert_close(values(X1, near).expand(*batch, 6, 5), expected, rtol=1e-10, atol=1e-7)
        diagonal = frozen.diagonal(X2.to(device)).expand(*batch, 5).cpu()
        assert_close(diagonal, kernel(own, diag=True), **TOL)
        expected = kernel(more, X2).to_dense()
        assert_close(values(more, X2).expand(expected.shape), expected, **TOL)
    has_tasks = any(isinstance(part, TaskKernel | IndexKernel) for part in kernel.modules())
    for W in (spread(-1.0, 2.0, 6, 5), spread(0.5, 1.0, *batch, 6, 1)):
        # Own points for each kernel, so that the gradients stay apart.
        X = own.clone().requires_grad_()
        K = kernel(X1, X).to_dense()
        (expected,) = torch.autograd.grad((W * K).sum(), X)
        (through_values,) = torch.autograd.grad((W * values(X1, X)).sum(), X)
        assert_close(through_values, expected, **TOL)
        if frozen.has_closed_form_gradient:
            found, pullback = frozen.value_and_pullback(X1.to(device), X2.to(device))
            before = found.clone()
            assert_close(found.expand(K.shape).cpu(), K.detach(), **TOL)
            got = pullback(W.to(device)).cpu()
            assert_close(got, expected, **TOL)
            assert torch.equal(found, before)
            assert not (has_tasks and got[..., -1].any())


@pytest.mark.parametrize("name", ["rbf", "matern12", "product", "batched periodic ard"])
def test_values_have_derivatives_in_both_inputs_and_none_at_the_same_point(name):
    kernel = KERNELS[name]()
    frozen = freeze(kernel, torch.float64, CPU)
    X1, X2 = (X.requires_grad_() for X in inputs(name, kernel))
    assert torch.autograd.gradcheck(frozen, (X1, X2))
    X = X1[:1].detach()
    K, pullback = frozen.value_and_pullback(X, X.clone())
    assert_close(pullback(torch.ones_like(K)).abs().max().item(), 0.0, **TOL)


def test_a_column_that_counts_twice_pulls_twice():
    frozen = freeze(stationary(math.inf, active_dims=(1, 1)), torch.float64, CPU)
    X1, X2 = points(6, 0), points(4, 1).requires_grad_()
    (expected,) = torch.autograd.grad(frozen(X1, X2).sum(), X2)
    K, pullback = frozen.value_and_pullback(X1, X2.detach())
    assert_close(pullback(torch.ones_like(K)), expected, **TOL)


@pytest.mark.parametrize("name", ["product", "listed", "given tasks"])
def test_frozen_kernels_can_be_restricted_to_groups(name):
    kernel = joint.SINGLE[name]()
    masks = torch.tensor([[1.0, 0, 1, 1, 1], [0, 1, 1, 0, 1]], dtype=torch.float64)
    X1, X2 = joint.points(6, 0), joint.points(5, 1)
    with torch.no_grad():
        expected = torch.stack([kernel(X1 * m, X2 * m).to_dense() for m in masks])
    got = freeze(kernel, torch.float64, CPU).restricted(masks)(X1, X2)
    assert_close(got, expected, **TOL)


@pytest.mark.parametrize("name", ["product", "a task among contexts", "listed"])
def test_points_without_all_columns_are_refused(name):
    kernel = joint.SINGLE[name]()
    frozen = freeze(kernel, torch.float64, CPU)
    assert isinstance(kernel, ActionContextKernel)
    X = joint.points(4, 0)[:, :3]
    for act in (
        lambda: frozen(X, X),
        lambda: frozen.diagonal(X),
        lambda: frozen.value_and_pullback(X, X),
        lambda: kernel(X, X).to_dense(),
        lambda: kernel(X, diag=True),
    ):
        with pytest.raises(ValueError, match="at least 4 columns"):
            act()


@pytest.mark.parametrize("batched", [False, True])
def test_values_and_gradients_are_those_of_the_sum(batched, device):
    lengthscale = drawn(3, 1, 2, low=0.2, high=1.2).to(device)
    share = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64, device=device)
    parts = [
        StationaryKernel(math.inf, lengthscale, share, None),
        StationaryKernel(2.5, lengthscale, 1 - share, None),
    ]
    kernel, plain = SmoothedMatern(lengthscale, share), CombinedKernel(parts, False, None)
    X1, X2 = drawn(5, 2).to(device), drawn(*([3] if batched else []), 4, 2, seed=1).to(device)
    if not batched:
        X2[0] = X1[0]
    (K, pull), (expected, expected_pull) = (
        each.value_and_pullback(X1, X2) for each in (kernel, plain)
    )
    W = drawn(3, 5, 4, seed=2, low=-1.0).to(device)
    for got in (K, kernel(X1, X2)):
        assert_close(got, expected, **tolerance(K.dtype))
    assert_close(pull(W), expected_pull(W), **tolerance(K.dtype))
    assert_close(kernel.diagonal(X1), torch.ones_like(X1[:, 0]))


def test_distances_of_many_points_in_many_columns_are_those_of_few(monkeypatch):
    X1, rate = drawn(60, 8), drawn(3, 1, 8, seed=1, low=1.0, high=2.0)
    X2 = torch.cat([X1[:20] + 1e-7, drawn(30, 8, seed=2)])
    expected = weighted_squares(X1, X2, rate, -1)
    monkeypatch.setattr("botorch_ext.kernels.frozen.stationary._MOST_DIFFERENCES", 100)
    squares = weighted_squares(X1, X2, rate, -1)
    assert squares.max() <= 0
    assert_close(squares, expected, rtol=1e-13, atol=1e-13)
