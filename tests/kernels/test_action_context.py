"""Kernels on actions and contexts against formulas written out as loops."""

import itertools

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.kernels.batching import selected_kernel
from tests.helpers import tolerance
from tests.kernels.joint import BATCHED, BY_FORMULA, COVARIANCE, points, sparse_matrices

pytestmark = sparse_matrices
TOL = tolerance(torch.float64)


def by_formula(kernel, action, context, s, z, X1, X2):
    """A loop over pairs of points."""
    values = torch.empty(len(X1), len(X2), dtype=torch.float64)
    for (i, x), (j, y) in itertools.product(enumerate(X1.tolist()), enumerate(X2.tolist())):
        first = action([x[c] for c in s], [y[c] for c in s])
        second = context([x[c] for c in z], [y[c] for c in z])
        product = kernel.combination == "product"
        values[i, j] = first * second if product else 0.5 * (first + second)
    return values


@pytest.mark.parametrize("name", BY_FORMULA)
@torch.no_grad()
def test_values_are_those_of_the_formula(name):
    kernel, *parts = BY_FORMULA[name]()
    X1, X2, batch = points(6, 0), points(5, 1), points(4, 2, (2, 3))
    K, values = kernel(X1).to_dense(), kernel(batch, X2).to_dense()
    assert_close(kernel(X1, X2).to_dense(), by_formula(kernel, *parts, X1, X2), **TOL)
    assert_close(K, by_formula(kernel, *parts, X1, X1), **TOL)
    assert_close(kernel(X1, diag=True), K.diagonal(), **TOL)
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-9
    assert values.shape == (2, 3, 4, 5)
    assert_close(values[1, 2], by_formula(kernel, *parts, batch[1, 2], X2), **TOL)
    assert_close(kernel(batch, diag=True)[1], kernel(batch[1], diag=True), **TOL)


@pytest.mark.parametrize("name", BATCHED)
@torch.no_grad()
def test_a_batch_is_each_of_its_kernels(name):
    kernel = BATCHED[name]()
    batch = kernel.batch_shape
    X1, X2, own = points(6, 0), points(5, 1), points(5, 1, batch)
    values, diagonal = kernel(X1, X2).to_dense(), kernel(X1, diag=True)
    of_own = kernel(X1, own).to_dense()
    assert values.shape == (*batch, 6, 5)
    assert kernel.expand_batch(2, *batch).batch_shape == (2, *batch)
    # GPyTorch's way loses all but the first of the active_dims.
    by_gpytorch = name not in ("equal parts", "scaled")
    for i in itertools.product(*map(range, batch)):
        one = kernel[i] if by_gpytorch else selected_kernel(kernel, *i)
        assert one.batch_shape == ()
        assert_close(one(X1, X2).to_dense(), values[i], **TOL)
        assert_close(one(X1, diag=True), diagonal[i], **TOL)
        assert_close(one(X1, own[i]).to_dense(), of_own[i], **TOL)


@pytest.mark.parametrize(
    ("columns", "action", "context"),
    [
        ((2,), (0, 1), None),
        ((2, 3), (0, 1), (2, 3, 4)),
        (((1, 0),), (1, 0), None),
        (((3, 1), (0,)), (3, 1), (0,)),
        ((torch.tensor([1, 2]), [0]), (1, 2), (0,)),
    ],
)
def test_columns_can_be_read(columns, action, context):
    kernel = ActionContextKernel(RBFKernel(), RBFKernel(), *columns)
    assert (kernel.action_columns, kernel.context_columns) == (action, context)


def test_it_is_stationary_where_both_parts_are():
    both = ActionContextKernel(RBFKernel(), MaternKernel(), 1)
    assert both.is_stationary
    assert not ActionContextKernel(RBFKernel(), TaskKernel(COVARIANCE), 1).is_stationary
    AdditiveKernel(both, [(0,), (1, 2)], 3)


BAD_ACTIONS = [0, 1.5, True, [], [0, 0], [0, -1], "01"]
BAD_CONTEXTS = [[], 0, [3, 3], [-1]]


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        *(((action,), "action_columns") for action in BAD_ACTIONS),
        *(((2, context), "context_columns") for context in BAD_CONTEXTS),
        ((2, [2, 1]), "context_columns .* overlap"),
        (([1, 3], None), "context_columns"),
        (([1, 3], 2), "context_columns"),
        ((1, None, "mean"), "combination"),
    ],
)
def test_bad_columns_are_refused(columns, name):
    with pytest.raises(ValueError, match=name):
        ActionContextKernel(RBFKernel(), RBFKernel(), *columns)
