"""The nugget kernel against loops over pairs of points."""

import pytest
import torch
from gpytorch.kernels import AdditiveKernel
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernels import NuggetKernel
from botorch_ext.kernels.batching import same_form, selected_kernel, stacked_kernel
from tests.helpers import rbf, tolerance
from tests.kernel_functions.kernels import scaled

TOL = tolerance(torch.float64)
FIRST = torch.tensor([[2.0, -3.0], [2.5, -3.0], [2.0, -1.5], [2.0, -3.0]]).double()
# The last differs by the last digit in float64.
SECOND = torch.tensor([[2.5, -3.0], [2.0, -3.0], [2.0 + 1e-12, -3.0]]).double()


def frozen_on_cpu(kernel):
    return freeze(kernel, torch.float64, torch.device("cpu"))


@pytest.mark.parametrize("columns", [(0, 1), (1,)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_the_variance_where_its_columns_are_equal(dtype, columns, device):
    kernel = NuggetKernel(0.25, active_dims=columns).to(dtype=dtype, device=device)
    assert (kernel.dtype, kernel.device.type) == (dtype, device.type)
    A, B = (X.to(dtype)[:, columns] for X in (FIRST, SECOND))
    expected = 0.25 * torch.tensor([[a == b for b in B.tolist()] for a in A.tolist()]).double()
    A, B = FIRST.to(dtype).to(device), SECOND.to(dtype).to(device)
    frozen = freeze(kernel, dtype, device)
    for values in (kernel(A, B).to_dense(), frozen(A, B)):
        assert torch.equal(values.cpu().double(), expected)
    for diagonal in (kernel(A, diag=True), frozen.diagonal(A).expand(4)):
        assert diagonal.tolist() == [0.25] * 4


def test_in_a_sum_it_is_added_and_has_no_gradient():
    frozen = frozen_on_cpu(AdditiveKernel(scaled(rbf(0.7)), NuggetKernel(0.3)))
    assert frozen.has_closed_form_gradient
    K, pull = frozen.value_and_pullback(FIRST, SECOND)
    k, pull_plain = frozen_on_cpu(scaled(rbf(0.7))).value_and_pullback(FIRST, SECOND)
    assert_close(K, k + NuggetKernel(0.3)(FIRST, SECOND).to_dense(), **TOL)
    W = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3)
    assert_close(pull(W), pull_plain(W), **TOL)


def test_kernels_of_one_form_are_stacked():
    kernels = [AdditiveKernel(rbf(0.7), NuggetKernel(s)) for s in (0.1, 0.4)]
    assert same_form(*kernels)
    stacked = stacked_kernel(kernels)
    frozen = frozen_on_cpu(stacked)
    for i, kernel in enumerate(kernels):
        own = kernel(FIRST, SECOND).to_dense()
        for values in (stacked(FIRST, SECOND).to_dense()[i], frozen(FIRST, SECOND)[i]):
            assert_close(values, own, **TOL)
        assert_close(selected_kernel(stacked, i)(FIRST, SECOND).to_dense(), own, **TOL)
        assert_close(frozen.diagonal(FIRST)[i], kernel(FIRST, diag=True), **TOL)
