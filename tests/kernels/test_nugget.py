"""The nugget kernel against loops over pairs of points."""

import math

import pytest
import torch
from gpytorch.kernels import AdditiveKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernels import NuggetKernel
from botorch_ext.kernels.batching import same_form, selected_kernel, stacked_kernel
from tests.helpers import tolerance

TOL = tolerance(torch.float64)
FIRST = torch.tensor([[2.0, -3.0], [2.5, -3.0], [2.0, -1.5], [2.0, -3.0]]).double()
SECOND = torch.tensor([[2.5, -3.0], [2.0, -3.0], [2.0 + 1e-12, -3.0]]).double()


def expected(variance, A, B, columns=(0, 1)):
    return torch.tensor(
        [[variance * all(a[j] == b[j] for j in columns) for b in B.tolist()] for a in A.tolist()],
        dtype=torch.float64,
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_the_variance_where_all_columns_are_equal(dtype, device):
    kernel = NuggetKernel(0.25).to(dtype=dtype, device=device)
    assert (kernel.dtype, kernel.device.type) == (dtype, device.type)
    A, B = FIRST.to(dtype).to(device), SECOND[:2].to(dtype).to(device)
    frozen = freeze(kernel, dtype, device)
    for values in (kernel(A, B).to_dense(), frozen(A, B)):
        assert torch.equal(values.cpu().double(), expected(0.25, FIRST, SECOND[:2]))
    for diagonal in (kernel(A, diag=True), frozen.diagonal(A).expand(4)):
        assert torch.equal(diagonal.cpu().double(), torch.full((4,), 0.25).double())


def test_points_differ_by_the_last_digit():
    assert torch.equal(NuggetKernel(0.25)(FIRST, SECOND).to_dense(), expected(0.25, FIRST, SECOND))


def test_it_looks_at_its_columns_alone():
    kernel = NuggetKernel(0.5, active_dims=(1,))
    frozen = freeze(kernel, torch.float64, torch.device("cpu"))
    for values in (kernel(FIRST, SECOND).to_dense(), frozen(FIRST, SECOND)):
        assert torch.equal(values, expected(0.5, FIRST, SECOND, columns=(1,)))


def test_in_a_sum_it_is_added_and_has_no_gradient():
    base = ScaleKernel(RBFKernel()).double()
    frozen = freeze(AdditiveKernel(base, NuggetKernel(0.3)), torch.float64, torch.device("cpu"))
    plain = freeze(base, torch.float64, torch.device("cpu"))
    assert frozen.has_closed_form_gradient
    (K, pull), (k, pull_plain) = (
        each.value_and_pullback(FIRST, SECOND) for each in (frozen, plain)
    )
    assert_close(K, k + expected(0.3, FIRST, SECOND), **TOL)
    W = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3)
    assert_close(pull(W), pull_plain(W), **TOL)


def test_kernels_of_one_form_are_stacked():
    kernels = [AdditiveKernel(RBFKernel().double(), NuggetKernel(s)) for s in (0.1, 0.4)]
    assert same_form(*kernels)
    stacked = stacked_kernel(kernels)
    frozen = freeze(stacked, torch.float64, torch.device("cpu"))
    for i, kernel in enumerate(kernels):
        own = kernel(FIRST, SECOND).to_dense()
        for values in (stacked(FIRST, SECOND).to_dense()[i], frozen(FIRST, SECOND)[i]):
            assert_close(values, own, **TOL)
        assert_close(selected_kernel(stacked, i)(FIRST, SECOND).to_dense(), own, **TOL)
        assert_close(frozen.diagonal(FIRST)[i], kernel(FIRST, diag=True), **TOL)


@pytest.mark.parametrize("variance", [0.0, -1.0, math.inf, "much"])
def test_impossible_variances_are_refused(variance):
    with pytest.raises(ValueError, match="variance"):
        NuggetKernel(variance)
