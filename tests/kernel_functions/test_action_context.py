"""Frozen kernels on actions and contexts equal the kernels, in values and in gradients."""

import pytest
import torch
from gpytorch.kernels import IndexKernel
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernels import TaskKernel
from tests.helpers import tolerance
from tests.kernel_functions.kernels import spread
from tests.kernels.joint import BATCHED, NO_CLOSED_FORM, SINGLE, points, sparse_matrices

pytestmark = sparse_matrices
TOL = tolerance(torch.float64)
CPU = torch.device("cpu")
CLOSED = SINGLE | {f"batched {name}": make for name, make in BATCHED.items()}
ALL = CLOSED | NO_CLOSED_FORM


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_the_frozen_kernel_has_the_same_values(name, own_points, device):
    kernel = ALL[name]()
    batch = kernel.batch_shape
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.batch_shape == batch
    X1, X2 = points(6, 0), points(5, 1, batch if own_points else ())
    more = points(5, 1, (2, *batch))
    with torch.no_grad():
        expected = kernel(X1, X2).to_dense()
        got = frozen(X1.to(device), X2.to(device)).cpu()
        assert_close(got, expected, **TOL)
        diagonal = kernel(X2.expand(*batch, 5, 5), diag=True)
        got = frozen.diagonal(X2.to(device)).expand(*batch, 5).cpu()
        assert_close(got, diagonal, **TOL)
        got = frozen(more.to(device), X1.to(device)).cpu()
        assert_close(got, kernel(more, X1).to_dense(), **TOL)
        if frozen.has_closed_form_gradient:
            K, _ = frozen.value_and_pullback(X1.to(device), X2.to(device))
            assert_close(K.cpu(), expected, **TOL)


def finite_differences(kernel, W, X1, X, columns, step=1e-5):
    """The gradient of sum W k(X1, X) in some columns of X, one entry at a time."""
    gradient = torch.zeros_like(X)
    with torch.no_grad():
        for j in range(X.shape[-2]):
            for c in columns:
                move = torch.zeros_like(X)
                move[..., j, c] = step
                up, down = ((W * kernel(X1, X + m).to_dense()).sum((-2, -1)) for m in (move, -move))
                gradient[..., j, c] = (up - down) / (2 * step)
    return gradient


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", CLOSED)
def test_the_frozen_kernel_has_its_gradient(name, own_points, device):
    """In actions and real contexts; none in tasks."""
    kernel = CLOSED[name]()
    batch = kernel.batch_shape
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.has_closed_form_gradient
    has_tasks = any(isinstance(part, TaskKernel | IndexKernel) for part in kernel.modules())
    X1, X2 = points(6, 0), points(5, 1, batch if own_points else ())
    for W in (spread(-1.0, 2.0, 6, 5), spread(0.5, 1.0, *batch, 6, 1)):
        X = X2.expand(*batch, 5, 5).clone().requires_grad_()
        K = kernel(X1, X).to_dense()
        (expected,) = torch.autograd.grad((W * K).sum(), X)
        (through_values,) = torch.autograd.grad(
            (W.to(device) * frozen(X1.to(device), X.to(device))).sum(), X
        )
        _, pullback = frozen.value_and_pullback(X1.to(device), X2.to(device))
        got = pullback(W.to(device)).cpu()
        assert got.shape == expected.shape
        assert_close(got, expected, **TOL)
        assert_close(through_values, expected, **TOL)
        if has_tasks:
            assert not got[..., 4].any()
    if not own_points:
        numerical = finite_differences(kernel, W, X1, X.detach(), range(4 if has_tasks else 5))
        assert_close(got, numerical, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NO_CLOSED_FORM)
def test_without_a_closed_form_there_is_autograd(name):
    kernel = NO_CLOSED_FORM[name]()
    frozen = freeze(kernel, torch.float64, CPU)
    assert not frozen.has_closed_form_gradient
    X1, X2 = points(6, 0), points(5, 1).requires_grad_()
    got, expected = (
        torch.autograd.grad(K.sum(), X2)[0] for K in (frozen(X1, X2), kernel(X1, X2).to_dense())
    )
    assert_close(got, expected, **TOL)


@pytest.mark.parametrize("name", ["product", "listed", "given tasks"])
def test_frozen_kernels_can_be_restricted_to_groups(name):
    kernel = CLOSED[name]()
    frozen = freeze(kernel, torch.float64, CPU)
    masks = torch.tensor([[1.0, 0, 1, 1, 1], [0, 1, 1, 0, 1]], dtype=torch.float64)
    X1, X2 = points(6, 0), points(5, 1)
    with torch.no_grad():
        expected = torch.stack([kernel(X1 * m, X2 * m).to_dense() for m in masks])
    assert_close(frozen.restricted(masks)(X1, X2), expected, **TOL)


@pytest.mark.parametrize("name", ["product", "a task among contexts", "listed"])
def test_frozen_kernels_miss_columns_too(name):
    frozen = freeze(CLOSED[name](), torch.float64, CPU)
    X = points(4, 0)[:, :3]
    for act in (
        lambda: frozen(X, X),
        lambda: frozen.diagonal(X),
        lambda: frozen.value_and_pullback(X, X),
    ):
        with pytest.raises(ValueError, match=r"points must have at least 4 columns, of actions"):
            act()
