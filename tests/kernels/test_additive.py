"""Additive kernels against a plain sum over groups of columns, and nuggets."""

import copy
import itertools

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext.kernels import AdditiveKernel, NuggetKernel
from botorch_ext.kernels.batching import same_form, selected_kernel, stacked_kernel
from botorch_ext.kernels.frozen import freeze
from tests.helpers import pairwise, rbf, tolerance
from tests.kernel_functions.kernels import BASES, BATCHED, DECOMPOSITIONS, batch_of, points, scaled

TOL = tolerance(torch.float64)


def by_definition(base, groups, X1, X2):
    """1/G sum of the base where only the columns of a group are not zero."""
    total = 0
    for group in groups:
        mask = torch.tensor([float(column in group) for column in range(3)], dtype=torch.float64)
        total = total + base(X1 * mask, X2 * mask).to_dense().detach()
    return total / len(groups)


@pairwise(name=BASES, groups=DECOMPOSITIONS)
@torch.no_grad()
def test_values_are_those_of_the_definition(name, groups):
    base = BASES[name]()
    kernel, X1, X2 = AdditiveKernel(base, groups, 3), points(6, 0), points(5, 1)
    K, t_batch = kernel(X1).to_dense(), points(4, 2, (2, 3))
    for A in (X1, t_batch):
        assert_close(kernel(A, X2).to_dense(), by_definition(base, groups, A, X2), **TOL)
    assert_close(kernel(X1, diag=True), K.diagonal(), **TOL)
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-9


@pytest.mark.parametrize("name", BATCHED)
@torch.no_grad()
def test_a_batch_is_each_of_its_kernels(name):
    base = BATCHED[name]()
    batch, kernel = base.batch_shape, batch_of(base)
    assert kernel.batch_shape == batch
    X1, X2, own = points(6, 0), points(5, 1), points(5, 1, batch)
    pair = points(5, 1, (2, *(1,) * len(batch)))
    values, of_own, of_pair = (kernel(X1, Z).to_dense() for Z in (X2, own, pair))
    diagonal = kernel(X1, diag=True)
    for i in itertools.product(*map(range, batch)):
        groups, one, part = DECOMPOSITIONS[i[-1] % 4], base[i], kernel[i]
        assert_close(values[i], by_definition(one, groups, X1, X2), **TOL)
        assert_close(diagonal[i], by_definition(one, groups, X1, X1).diagonal(), **TOL)
        assert_close(of_own[i], by_definition(one, groups, X1, own[i]), **TOL)
        expected = by_definition(one, groups, X1, pair.view(2, 5, 3))
        assert_close(of_pair[(slice(None), *i)], expected, **TOL)
        assert part.batch_shape == ()
        assert part.groups == tuple(tuple(sorted(group)) for group in groups)
        assert_close(part(X1, X2).to_dense(), values[i], **TOL)


def test_groups_can_be_read_and_survive_conversion():
    kernel = AdditiveKernel(RBFKernel(), [(2, 0), [1], {1, 2}], 3)
    assert kernel.groups == copy.deepcopy(kernel).groups == ((0, 2), (1,), (1, 2))
    assert kernel.expand_batch(torch.Size([2])).groups == (kernel.groups,) * 2
    batched = batch_of(RBFKernel(batch_shape=torch.Size([2])))
    assert batched.groups == (((0,), (1,), (2,)), ((0, 2), (1,)))
    assert batched[1].groups == ((0, 2), (1,))
    assert batched[1:].groups == (((0, 2), (1,)),)
    # Decompositions have one form, and no third of float32.
    kernels = [AdditiveKernel(RBFKernel(), groups, 3) for groups in DECOMPOSITIONS[:5]]
    assert {kernel.masks.shape for kernel in kernels} == {(3, 3)}
    one = torch.ones(4, dtype=torch.float64)
    assert_close(kernels[0].double()(points(4, 0), diag=True), one, rtol=1e-15, atol=0)


def test_parameters_of_the_base_have_gradients():
    kernel = AdditiveKernel(RBFKernel().double(), [(0,), (1, 2)], 3)
    kernel(points(4, 0), points(3, 1)).to_dense().sum().backward()
    assert float(kernel.base_kernel.raw_lengthscale.grad.abs().sum()) > 0


class Moving(RBFKernel):
    """Says it is stationary and is not."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1.exp(), x2.exp(), diag=diag, **params)


RBF = RBFKernel()
BAD_GROUPS = [[], [(0,), ()], [(0, 3)], [(-1,)], [(1, 1)], [(0, 1), (1, 0)], [0, 1], ["01"]]
BAD_BASES = [
    LinearKernel(),
    RBFKernel() + LinearKernel(),
    scaled(LinearKernel()),
    Moving(),
    MaternKernel(ard_num_dims=2),
    RBFKernel(active_dims=(3,)),
    RBFKernel(ard_num_dims=4),
]


@pytest.mark.parametrize(
    ("base", "groups", "dim", "name"),
    [
        *((RBF, groups, 3, "group") for groups in BAD_GROUPS),
        *((base, [(0,)], 3, "base_kernel") for base in BAD_BASES),
        (RBF, [(0.5,)], 3, "group"),
        (RBF, [(0,)], 0, "dim"),
    ],
)
def test_bad_groups_and_bases_are_refused(base, groups, dim, name):
    with pytest.raises(ValueError, match=name):
        AdditiveKernel(base, groups, dim)


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
    frozen = frozen_on_cpu(scaled(rbf(0.7)) + NuggetKernel(0.3))
    assert frozen.has_closed_form_gradient
    K, pull = frozen.value_and_pullback(FIRST, SECOND)
    k, pull_plain = frozen_on_cpu(scaled(rbf(0.7))).value_and_pullback(FIRST, SECOND)
    assert_close(K, k + NuggetKernel(0.3)(FIRST, SECOND).to_dense(), **TOL)
    W = torch.linspace(-1, 1, 12, dtype=torch.float64).view(4, 3)
    assert_close(pull(W), pull_plain(W), **TOL)


def test_kernels_of_one_form_are_stacked():
    kernels = [rbf(0.7) + NuggetKernel(s) for s in (0.1, 0.4)]
    assert same_form(*kernels)
    stacked = stacked_kernel(kernels)
    frozen = frozen_on_cpu(stacked)
    for i, kernel in enumerate(kernels):
        own = kernel(FIRST, SECOND).to_dense()
        for values in (stacked(FIRST, SECOND).to_dense()[i], frozen(FIRST, SECOND)[i]):
            assert_close(values, own, **TOL)
        assert_close(selected_kernel(stacked, i)(FIRST, SECOND).to_dense(), own, **TOL)
        assert_close(frozen.diagonal(FIRST)[i], kernel(FIRST, diag=True), **TOL)
