"""Additive kernels against their definition: a plain sum over groups of columns."""

import copy
import math

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext.kernels import AdditiveKernel
from tests.helpers import pairwise, tolerance
from tests.kernel_functions.additive import BASES, BATCHED, DECOMPOSITIONS, batch_of
from tests.kernel_functions.kernels import points, scaled

TOL = tolerance(torch.float64)


def by_definition(base, groups, X1, X2):
    """1/G sum of the base where only the columns of a group are not zero."""
    total = 0
    for group in groups:
        Z1, Z2 = torch.zeros_like(X1), torch.zeros_like(X2)
        for column in group:
            Z1[..., column], Z2[..., column] = X1[..., column], X2[..., column]
        total = total + base(Z1, Z2).to_dense()
    return total / len(groups)


@pairwise(name=BASES, groups=DECOMPOSITIONS)
def test_values_are_those_of_the_definition(name, groups):
    base = BASES[name]()
    kernel = AdditiveKernel(base, groups, 3)
    X1, X2 = points(6, 0), points(5, 1)
    with torch.no_grad():
        assert_close(kernel(X1, X2).to_dense(), by_definition(base, groups, X1, X2), **TOL)
        K = kernel(X1).to_dense()
        assert_close(kernel(X1, diag=True), K.diagonal(), **TOL)
        assert float(torch.linalg.eigvalsh(K).min()) > -1e-9
        t_batch = points(4, 2, (2, 3))
        expected = by_definition(base, groups, t_batch, X2)
        assert_close(kernel(t_batch, X2).to_dense(), expected, **TOL)
        if "scaled" not in name and name not in ("sum",):
            assert_close(kernel(X1, diag=True), torch.ones(6, dtype=torch.float64), **TOL)


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_each_of_its_kernels(name):
    base = BATCHED[name]()
    batch = base.batch_shape
    kernel = batch_of(base)
    assert kernel.batch_shape == batch
    X1, X2 = points(6, 0), points(5, 1)
    with torch.no_grad():
        values = kernel(X1, X2).to_dense()
        diagonal = kernel(X1, diag=True)
        own = kernel(X1, points(5, 1, batch)).to_dense()
        more = kernel(X1, points(5, 1, (2, *(1,) * len(batch)))).to_dense()
        for index in torch.cartesian_prod(*(torch.arange(n) for n in batch)).reshape(
            -1, len(batch)
        ):
            i = tuple(index.tolist())
            groups = DECOMPOSITIONS[math.prod(batch[1:]) * i[0] % 4 if len(i) == 1 else i[1]]
            one = base[i]
            assert_close(values[i], by_definition(one, groups, X1, X2), **TOL)
            assert_close(diagonal[i], by_definition(one, groups, X1, X1).diagonal(), **TOL)
            Z = points(5, 1, batch)[i]
            assert_close(own[i], by_definition(one, groups, X1, Z), **TOL)
            Z = points(5, 1, (2,))
            assert_close(more[(slice(None), *i)], by_definition(one, groups, X1, Z), **TOL)
            part = kernel[i]
            assert part.batch_shape == torch.Size()
            assert part.groups == kernel_groups(groups)
            assert_close(part(X1, X2).to_dense(), values[i], **TOL)


def kernel_groups(groups):
    return tuple(tuple(sorted(group)) for group in groups)


def test_groups_can_be_read():
    kernel = AdditiveKernel(RBFKernel(), [(2, 0), [1], {1, 2}], 3)
    assert kernel.groups == ((0, 2), (1,), (1, 2))
    batched = batch_of(RBFKernel(batch_shape=torch.Size([2])))
    assert batched.groups == (((0,), (1,), (2,)), ((0, 2), (1,)))
    assert batched[1].groups == ((0, 2), (1,))
    assert batched[1:].groups == (((0, 2), (1,)),)


def test_decompositions_have_one_form_and_survive_conversion():
    kernels = [AdditiveKernel(RBFKernel(), groups, 3) for groups in DECOMPOSITIONS[:5]]
    assert {kernel.masks.shape for kernel in kernels} == {(3, 3)}
    kernel = AdditiveKernel(RBFKernel(), [(0,), (1,), (2,)], 3).double()
    assert kernel.masks.dtype == torch.float64
    X = points(4, 0)
    one = torch.ones(4, dtype=torch.float64)
    assert_close(kernel(X, diag=True), one, rtol=1e-15, atol=0)  # no third of float32
    copied = copy.deepcopy(kernel)
    assert copied.groups == kernel.groups
    expanded = kernel.expand_batch(torch.Size([2]))
    assert expanded.batch_shape == (2,)
    assert expanded.groups == (kernel.groups,) * 2


def test_parameters_of_the_base_have_gradients():
    kernel = AdditiveKernel(RBFKernel().double(), [(0,), (1, 2)], 3)
    kernel(points(4, 0), points(3, 1)).to_dense().sum().backward()
    assert float(kernel.base_kernel.raw_lengthscale.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    "groups",
    [[], [(0,), ()], [(0, 3)], [(-1,)], [(1, 1)], [(0, 1), (1, 0)], [0, 1], ["01"], [(0.5,)]],
)
def test_bad_groups_are_refused(groups):
    with pytest.raises(ValueError, match="group"):
        AdditiveKernel(RBFKernel(), groups, 3)


class Moving(RBFKernel):
    """Says it is stationary and is not."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1.exp(), x2.exp(), diag=diag, **params)


@pytest.mark.parametrize(
    "base",
    [
        LinearKernel(),
        RBFKernel() + LinearKernel(),
        scaled(LinearKernel()),
        Moving(),
        MaternKernel(ard_num_dims=2),
        RBFKernel(active_dims=(3,)),
        RBFKernel(ard_num_dims=4),
    ],
)
def test_a_base_that_is_not_stationary_or_on_other_columns_is_refused(base):
    with pytest.raises(ValueError, match="base_kernel"):
        AdditiveKernel(base, [(0,)], 3)
    with pytest.raises(ValueError, match="dim"):
        AdditiveKernel(RBFKernel(), [(0,)], 0)
