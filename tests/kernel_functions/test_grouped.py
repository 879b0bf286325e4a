"""Frozen additive kernels equal the kernels, in values and in gradients."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernels import AdditiveKernel
from botorch_ext.models import KernelGP
from tests.helpers import tolerance
from tests.kernel_functions.additive import (
    BASES,
    BATCHED,
    DECOMPOSITIONS,
    Distance,
    with_masks_of,
)
from tests.kernel_functions.kernels import points, scaled, spread, stationary

TOL = tolerance(torch.float64)
CPU = torch.device("cpu")


def frozen_cases():
    for name, make in BASES.items():
        for groups in DECOMPOSITIONS:
            yield f"{name} {groups}", lambda make=make, g=groups: AdditiveKernel(make(), g, 3)
    for name, make in BATCHED.items():
        yield (
            f"batched {name}",
            lambda make=make: with_masks_of(AdditiveKernel(make(), [(0,)], 3), DECOMPOSITIONS[:4]),
        )
    yield (
        "scaled",
        lambda: scaled(AdditiveKernel(stationary(2.5), [(0, 1), (1, 2)], 3), spread(0.3, 1.0, 4)),
    )


FROZEN = dict(frozen_cases())


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", FROZEN)
def test_the_frozen_kernel_has_the_same_values(name, own_points, device):
    kernel = FROZEN[name]()
    batch = kernel.batch_shape
    frozen = freeze(kernel, torch.float64, device)
    X1, X2 = points(6, 0).to(device), points(5, 1, batch if own_points else ()).to(device)
    assert frozen.batch_shape == batch
    with torch.no_grad():
        expected = kernel(X1.cpu(), X2.cpu()).to_dense()
        assert_close(frozen(X1, X2).cpu(), expected, **TOL)
        diagonal = kernel(X2.cpu(), diag=True)
        assert_close(frozen.diagonal(X2).expand(diagonal.shape).cpu(), diagonal, **TOL)
        more = points(5, 1, (2, *batch)).to(device)
        assert_close(frozen(more, X1).cpu(), kernel(more.cpu(), X1.cpu()).to_dense(), **TOL)
        if frozen.has_closed_form_gradient:
            assert_close(frozen.value_and_pullback(X1, X2)[0].cpu(), expected, **TOL)


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", [name for name in FROZEN if "generic" not in name])
def test_the_frozen_kernel_has_its_gradient(name, own_points, device):
    kernel = FROZEN[name]()
    batch = kernel.batch_shape
    frozen = freeze(kernel, torch.float64, device)
    assert frozen.has_closed_form_gradient
    X1, X2 = points(6, 0).to(device), points(5, 1, batch if own_points else ()).to(device)
    W = spread(-1.0, 2.0, 6, 5).to(device)
    X = X2.expand(*batch, 5, 3).clone().requires_grad_()
    K = kernel(X1.cpu(), X.cpu()).to_dense().to(device)
    (expected,) = torch.autograd.grad((W * K).sum(), X)
    (through_values,) = torch.autograd.grad((W * frozen(X1, X)).sum(), X)
    assert_close(through_values, expected, **TOL)
    _, pullback = frozen.value_and_pullback(X1, X2)
    assert_close(pullback(W), expected, **TOL)
    each = W[:, :1] * spread(0.5, 1.0, *batch, 1, 1).to(device)
    K = kernel(X1.cpu(), X.cpu()).to_dense().to(device)
    (expected,) = torch.autograd.grad((each * K).sum(), X)
    assert_close(pullback(each), expected, **TOL)


def test_equal_kernels_on_one_column_count_once():
    base = stationary(1.5, spread(0.7, 0.7, 4, 1, 1), active_dims=(1,))
    frozen = freeze(AdditiveKernel(base, [(0,), (1, 2)], 3), torch.float64, CPU)
    one = AdditiveKernel(stationary(1.5, 0.7, active_dims=(1,)), [(0,), (1, 2)], 3)
    X1, X2 = points(6, 0), points(5, 1)
    with torch.no_grad():
        assert_close(frozen(X1, X2), one(X1, X2).to_dense().expand(4, 6, 5), **TOL)


def test_without_a_closed_form_there_is_autograd():
    kernel = AdditiveKernel(Distance().double(), [(0,), (1, 2)], 3)
    frozen = freeze(kernel, torch.float64, CPU)
    assert not frozen.has_closed_form_gradient
    X1, X2 = points(6, 0), points(5, 1).requires_grad_()
    got, expected = (
        torch.autograd.grad(K.sum(), X2)[0] for K in (frozen(X1, X2), kernel(X1, X2).to_dense())
    )
    assert_close(got, expected, **TOL)


def test_a_model_of_many_decompositions_is_each_of_them():
    kernel = with_masks_of(
        AdditiveKernel(stationary(1.5, spread(0.7, 0.7, 4, 1, 1)), [(0,)], 3), DECOMPOSITIONS[:4]
    )
    model = KernelGP(kernel, 0.05)
    X, Z = points(20, 0), points(7, 1)
    y = X.sin().sum(dim=-1)
    model.add(X, y)
    mean, std = model.mean_and_std(Z)
    joint = model.posterior(Z).covariance_matrix
    for i, groups in enumerate(DECOMPOSITIONS[:4]):
        one = KernelGP(AdditiveKernel(stationary(1.5, 0.7), groups, 3), 0.05)
        one.add(X, y)
        for a, b in zip((mean[i], std[i]), one.mean_and_std(Z), strict=True):
            assert_close(a, b, **TOL)
        assert_close(joint[i], one.posterior(Z).covariance_matrix, **TOL)
