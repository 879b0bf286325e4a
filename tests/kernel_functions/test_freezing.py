"""Every frozen kernel equals GPyTorch's, in values and in gradients, single and batched."""

import math

import pytest
import torch
from gpytorch.kernels import AdditiveKernel, LinearKernel, ProductKernel
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernel_functions.columns import ColumnsKernel
from tests.helpers import tolerance
from tests.kernel_functions.kernels import periodic, points, scaled, spread, stationary

TOL = tolerance(torch.float64)
CPU = torch.device("cpu")
NUS = {"rbf": math.inf, "matern12": 0.5, "matern32": 1.5, "matern52": 2.5}
ARD = spread(0.4, 2.0, 1, 3)
MANY = spread(0.3, 2.0, 4, 1, 1)
MANY_ARD = spread(0.3, 3.0, 4, 1, 3)


def kernels():
    for name, nu in NUS.items():
        yield name, stationary(nu)
        yield f"{name} ard", stationary(nu, ARD)
        yield f"{name} scaled", scaled(stationary(nu))
        yield f"{name} batched", stationary(nu, MANY)
        yield f"{name} batched ard", stationary(nu, MANY_ARD)
        yield f"{name} batched and scaled", scaled(stationary(nu, MANY), spread(0.2, 1.5, 4))
        yield f"{name} with batched scale", scaled(stationary(nu), spread(0.2, 1.5, 4))
        yield f"{name} of two batch dimensions", stationary(nu, spread(0.3, 2.0, 2, 4, 1, 1))
    yield "columns", stationary(1.5, spread(0.3, 2.0, 1, 2), active_dims=(2, 0))
    yield "scaled columns", scaled(stationary(math.inf, active_dims=(1,)))
    yield "scaled twice", scaled(scaled(stationary(2.5, MANY)), spread(0.2, 1.5, 4))
    yield "batched columns", stationary(math.inf, MANY, active_dims=(0, 2))
    yield "sum", AdditiveKernel(stationary(math.inf, 0.4, active_dims=(0,)), stationary(2.5))
    yield "product", ProductKernel(stationary(math.inf), stationary(1.5, ARD), stationary(0.5))
    yield "scaled sum of products", scaled(stationary(1.5) * stationary(2.5, ARD) + stationary(0.5))
    yield "batched sum", scaled(stationary(1.5, MANY) + stationary(2.5, ARD), spread(0.2, 1.5, 4))
    yield "batched product", stationary(math.inf, MANY_ARD) * scaled(stationary(1.5, MANY), 0.3)
    yield "periodic", periodic()
    yield "periodic ard", periodic(spread(0.5, 3.0, 1, 3), ARD)
    yield "periodic columns", periodic(spread(0.5, 3.0, 1, 2), spread(0.4, 2.0, 1, 2), (2, 0))
    yield "scaled periodic", scaled(periodic(0.6, 1.3))
    yield "periodic of batched lengthscales", periodic(spread(0.7, 0.7, 4, 1, 1), MANY)
    yield "periodic of batched periods", periodic(MANY, spread(0.7, 0.7, 4, 1, 1))
    yield "batched periodic ard", scaled(periodic(MANY_ARD, MANY_ARD), spread(0.2, 1.5, 4))
    yield "sum and product of periodic", periodic() + periodic(MANY, MANY) * stationary(1.5)


KERNELS = dict(kernels())


def gpytorch_values(kernel, X1, X2):
    """One pair of points at a time: GPyTorch's own matrices lose digits at small distances."""

    def value(i, j):
        x1, x2 = X1[..., i : i + 1, :], X2[..., j : j + 1, :]
        return kernel(x1, x2).to_dense()[..., 0, 0]

    rows = [[value(i, j) for j in range(X2.shape[-2])] for i in range(X1.shape[-2])]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def inputs(kernel, own_points):
    """Two sets of points, shared by the batch of the kernel or one second set for each."""
    X1 = points(9, 0)
    X2 = points(5, 1, kernel.batch_shape if own_points else ())
    return X1, X2


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_values_are_those_of_gpytorch(name, own_points, device):
    kernel = KERNELS[name]
    X1, X2 = inputs(kernel, own_points)
    X2[..., :2, :] = X1[:2]
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.batch_shape == kernel.batch_shape
    with torch.no_grad():
        expected = gpytorch_values(kernel, X1, X2)
        diagonal = kernel(X2, diag=True)
    X1, X2 = X1.to(device), X2.to(device)
    got = frozen(X1, X2).expand(expected.shape).cpu()
    # GPyTorch's own Matern distances are at least 1e-8 / lengthscale.
    assert_close(got, expected, rtol=1e-10, atol=1e-7 if name != "rbf" else 1e-12)
    assert_close(frozen.diagonal(X2).expand(diagonal.shape).cpu(), diagonal, **TOL)
    K, _ = frozen.value_and_pullback(X1, X2)
    assert_close(K.expand(expected.shape).cpu(), got, **TOL)


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_the_pullback_is_the_gradient(name, own_points, device):
    kernel = KERNELS[name]
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.has_closed_form_gradient
    X1, X2 = (X.to(device) for X in inputs(kernel, own_points))
    W = points(9, 2, kernel.batch_shape)[..., :, :1].to(device) - 3  # broadcasts over columns
    for weights in (W, W * spread(-1.0, 2.0, 9, 5).to(device)):
        # Own points for each kernel, so that the gradients stay apart.
        X = X2.expand(*kernel.batch_shape, 5, 3).clone().requires_grad_()
        (expected,) = torch.autograd.grad((weights * frozen(X1, X)).sum(), X)
        K = kernel(X1.cpu(), X.cpu()).to_dense().to(device)
        (oracle,) = torch.autograd.grad((weights * K).sum(), X)
        assert_close(expected, oracle, **TOL)
        K, pullback = frozen.value_and_pullback(X1, X2)
        before = K.clone()
        assert_close(pullback(weights), expected, **TOL)
        assert torch.equal(K, before)


@pytest.mark.parametrize("name", KERNELS)
def test_values_have_derivatives_in_both_inputs(name):
    X1, X2 = (X.requires_grad_() for X in inputs(KERNELS[name], True))
    assert torch.autograd.gradcheck(freeze(KERNELS[name], torch.float64, CPU), (X1, X2))


@pytest.mark.parametrize("name", KERNELS)
def test_a_coincident_point_has_no_slope(name):
    frozen = freeze(KERNELS[name], torch.float64, CPU)
    X = points(1, 0)
    K, pullback = frozen.value_and_pullback(X, X.clone())
    assert_close(pullback(torch.ones_like(K)).abs().max().item(), 0.0, **TOL)


def test_a_kernel_without_closed_form_makes_a_sum_that_has_none():
    frozen = freeze(stationary(1.5) + LinearKernel().double(), torch.float64, CPU)
    assert not frozen.has_closed_form_gradient


def test_a_column_that_counts_twice_pulls_twice():
    frozen = freeze(stationary(math.inf, active_dims=(1, 1)), torch.float64, CPU)
    X1, X2 = points(6, 0), points(4, 1).requires_grad_()
    (expected,) = torch.autograd.grad(frozen(X1, X2).sum(), X2)
    K, pullback = frozen.value_and_pullback(X1, X2.detach())
    assert_close(pullback(torch.ones_like(K)), expected, **TOL)


def test_listed_columns_are_known_on_every_device(device):
    kernel = ColumnsKernel(freeze(stationary(1.5), torch.float64, CPU), [2, 0], 3).to(device)
    assert kernel.columns(4) == [2, 0]
    with pytest.raises(ValueError, match="at least 3 columns"):
        kernel.columns(2)
