"""Kernels on actions and contexts against formulas written out as loops."""

import itertools

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.kernels.batching import selected_kernel
from tests.helpers import tolerance
from tests.kernels.joint import (
    BATCHED,
    BY_FORMULA,
    COVARIANCE,
    NO_CLOSED_FORM,
    points,
    sparse_matrices,
)

pytestmark = sparse_matrices
TOL = tolerance(torch.float64)


def by_formula(kernel, action, context, s, z, X1, X2):
    """A loop over pairs of points."""
    X1, X2 = X1.tolist(), X2.tolist()
    values = torch.empty(len(X1), len(X2), dtype=torch.float64)
    for (i, x), (j, y) in itertools.product(enumerate(X1), enumerate(X2)):
        first = action([x[c] for c in s], [y[c] for c in s])
        second = context([x[c] for c in z], [y[c] for c in z])
        product = kernel.combination == "product"
        values[i, j] = first * second if product else 0.5 * (first + second)
    return values


@pytest.mark.parametrize("name", BY_FORMULA)
def test_values_are_those_of_the_formula(name):
    kernel, *parts = BY_FORMULA[name]()
    X1, X2 = points(6, 0), points(5, 1)
    with torch.no_grad():
        assert_close(kernel(X1, X2).to_dense(), by_formula(kernel, *parts, X1, X2), **TOL)
        K = kernel(X1).to_dense()
        # GPyTorch's distances of a point to itself are 1e-15 at least.
        assert_close(K, by_formula(kernel, *parts, X1, X1), **TOL)
        assert_close(kernel(X1, diag=True), K.diagonal(), **TOL)
        assert float(torch.linalg.eigvalsh(K).min()) > -1e-9
        batch = points(4, 2, (2, 3))
        values = kernel(batch, X2).to_dense()
        assert values.shape == (2, 3, 4, 5)
        assert_close(values[1, 2], by_formula(kernel, *parts, batch[1, 2], X2), **TOL)
        assert_close(kernel(batch, diag=True)[1], kernel(batch[1], diag=True), **TOL)


@pytest.mark.parametrize("name", BATCHED)
def test_a_batch_is_each_of_its_kernels(name):
    kernel = BATCHED[name]()
    batch = kernel.batch_shape
    X1, X2 = points(6, 0), points(5, 1)
    own = points(5, 1, batch)
    with torch.no_grad():
        values, diagonal = kernel(X1, X2).to_dense(), kernel(X1, diag=True)
        of_own = kernel(X1, own).to_dense()
        assert values.shape == (*batch, 6, 5)
        assert kernel.expand_batch(2, *batch).batch_shape == (2, *batch)
        for i in itertools.product(*map(range, batch)):
            # GPyTorch's way loses all but the first of the active_dims.
            one = (
                kernel[i] if name not in ("equal parts", "scaled") else selected_kernel(kernel, *i)
            )
            assert one.batch_shape == ()
            assert_close(one(X1, X2).to_dense(), values[i], **TOL)
            assert_close(one(X1, diag=True), diagonal[i], **TOL)
            assert_close(one(X1, own[i]).to_dense(), of_own[i], **TOL)


def test_columns_can_be_read():
    made = [
        ActionContextKernel(RBFKernel(), RBFKernel(), *columns)
        for columns in ((2,), (2, 3), ((1, 0),), ((3, 1), (0,)), (torch.tensor([1, 2]), [0]))
    ]
    assert [(kernel.action_columns, kernel.context_columns) for kernel in made] == [
        ((0, 1), None),
        ((0, 1), (2, 3, 4)),
        ((1, 0), None),
        ((3, 1), (0,)),
        ((1, 2), (0,)),
    ]


def test_it_is_stationary_where_both_parts_are():
    assert ActionContextKernel(RBFKernel(), MaternKernel(), 1).is_stationary
    assert not ActionContextKernel(RBFKernel(), TaskKernel(COVARIANCE), 1).is_stationary
    AdditiveKernel(ActionContextKernel(RBFKernel(), MaternKernel(), 1), [(0,), (1, 2)], 3)


@pytest.mark.parametrize("name", NO_CLOSED_FORM)
def test_parameters_of_both_parts_have_gradients(name):
    kernel = NO_CLOSED_FORM[name]()
    kernel(points(4, 0), points(3, 1)).to_dense().sum().backward()
    assert float(kernel.action_kernel.raw_variance.grad.abs().sum()) > 0
    kernel, *_ = BY_FORMULA["learned tasks"]()
    kernel(points(4, 0), points(3, 1)).to_dense().sum().backward()
    assert float(kernel.action_kernel.raw_lengthscale.grad.abs().sum()) > 0
    assert float(kernel.context_kernel.covar_factor.grad.abs().sum()) > 0


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ((0,), "action_columns"),
        ((1.5,), "action_columns"),
        ((True,), "action_columns"),
        (([],), "action_columns"),
        (([0, 0],), "action_columns"),
        (([0, -1],), "action_columns"),
        (("01",), "action_columns"),
        ((2, []), "context_columns"),
        ((2, 0), "context_columns"),
        ((2, [3, 3]), "context_columns"),
        ((2, [-1]), "context_columns"),
        ((2, [2, 1]), "context_columns .* overlap"),
        (([1, 3], None), "context_columns"),
        (([1, 3], 2), "context_columns"),
        ((1, None, "mean"), "combination"),
    ],
)
def test_bad_columns_are_refused(columns, name):
    with pytest.raises(ValueError, match=name):
        ActionContextKernel(RBFKernel(), RBFKernel(), *columns)
