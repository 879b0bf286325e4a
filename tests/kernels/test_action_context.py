"""Kernels on actions and contexts against their parts, and tasks against their covariances."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.kernels.frozen import freeze
from tests.helpers import drawn, tolerance
from tests.kernels.joint import (
    COVARIANCE,
    COVARIANCES,
    OF_PARTS,
    index_kernel,
    points,
    sparse_matrices,
)

pytestmark = sparse_matrices
TOL = tolerance(torch.float64)


def by_parts(kernel, action, context, s, z, X1, X2):
    """The product or the mean of the values of both parts on their columns."""
    first = action(X1[..., s], X2[..., s]).to_dense()
    second = context(X1[..., z], X2[..., z]).to_dense()
    return first * second if kernel.combination == "product" else (first + second) / 2


@pytest.mark.parametrize("name", OF_PARTS)
@torch.no_grad()
def test_values_are_those_of_the_parts(name):
    kernel, *parts = OF_PARTS[name]()
    X1, X2, batch = points(6, 0), points(5, 1), points(4, 2, (2, 3))
    K = kernel(X1).to_dense()
    for A, B in ((X1, X2), (X1, X1), (batch, X2)):
        assert_close(kernel(A, B).to_dense(), by_parts(kernel, *parts, A, B), **TOL)
    assert_close(kernel(X1, diag=True), K.diagonal(), **TOL)
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-9
    assert_close(kernel(batch, diag=True)[1], kernel(batch[1], diag=True), **TOL)


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


FIRST, SECOND = [2, 0, 3, 3, 1], [1, 3, 2]


def column(tasks, dtype=torch.float64):
    return torch.tensor(tasks, dtype=dtype).unsqueeze(-1)


def entries(covariance, first, second):
    return torch.stack([torch.stack([covariance[i, j] for j in second]) for i in first])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_the_entries(dtype, device):
    covariance = COVARIANCE.to(dtype)
    kernel = TaskKernel(covariance).to(device)
    assert (kernel.num_tasks, kernel.dtype, kernel.device.type) == (4, dtype, device.type)
    X1, X2 = (column(tasks, dtype).to(device) for tasks in (FIRST, SECOND))
    frozen = freeze(kernel, dtype, device)
    for values in (kernel(X1, X2).to_dense(), frozen(X1, X2)):
        assert torch.equal(values.cpu(), entries(covariance, FIRST, SECOND))
    for variances in (kernel(X1, diag=True), frozen.diagonal(X1)):
        assert torch.equal(variances.cpu(), covariance.diagonal()[FIRST])


@sparse_matrices
@pytest.mark.parametrize("kernel", [TaskKernel(COVARIANCES), index_kernel((3,))])
def test_a_batch_is_each_covariance(kernel, device):
    given = COVARIANCES if isinstance(kernel, TaskKernel) else kernel.covar_matrix.to_dense()
    frozen, given = freeze(kernel, torch.float64, device), given.detach()
    X1 = column(FIRST).to(device)
    own = torch.stack([column([(i + task) % 4 for task in SECOND]) for i in range(3)]).to(device)
    more = torch.stack([own, own.flip(-2)])
    for i in range(3):
        tasks = [int(task) for task in own[i].flatten()]
        for got in (frozen(X1, own)[i], frozen(X1, more)[0, i], frozen(own, X1)[i].mT):
            assert_close(got.cpu(), entries(given[i], FIRST, tasks), **TOL)
        for got in (frozen.diagonal(own)[i], frozen.diagonal(more)[0, i]):
            assert_close(got.cpu(), given[i].diagonal()[tasks], **TOL)
        assert_close(frozen.diagonal(X1)[i].cpu(), given[i].diagonal()[FIRST], **TOL)


def test_what_is_given_is_copied_and_not_learned():
    covariance = COVARIANCE.clone()
    kernel = TaskKernel(covariance)
    covariance.zero_()
    assert torch.equal(kernel.covariance, COVARIANCE)
    assert not list(kernel.parameters())
    assert TaskKernel([[1, 0], [0, 1]]).dtype == torch.float64
    assert TaskKernel(torch.eye(2, dtype=torch.int64)).dtype == torch.float64
    assert torch.equal(TaskKernel(COVARIANCES)[1].covariance, COVARIANCES[1])


@pytest.mark.parametrize("rank", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_covariances_of_low_rank_pass_in_spite_of_rounding(rank, dtype):
    B = drawn(40, rank, low=-2.0, high=2.0).to(dtype)
    kernel = TaskKernel(B @ B.mT)
    assert torch.equal(kernel.covariance, kernel.covariance.mT)


def test_covariances_that_are_hardly_none_are_refused():
    asymmetric, of_eigenvalue = [[1.0, 0.5], [0.4, 1.0]], [[1.0, 1.001], [1.001, 1.0]]
    for covariance in (asymmetric, of_eigenvalue, torch.stack([COVARIANCE, -COVARIANCE])):
        with pytest.raises(ValueError, match="covariance"):
            TaskKernel(covariance)


@pytest.mark.parametrize("kernel", [TaskKernel(COVARIANCE), index_kernel()])
@pytest.mark.parametrize(("task", "shown"), [(4.0, "4"), (-1.0, "-1"), (0.5, "0.5")])
def test_what_is_no_task_is_refused_on_the_cpu_and_nan_elsewhere(kernel, task, shown, device):
    frozen = freeze(kernel, torch.float64, device)
    good, bad = column(FIRST).to(device), column([0.0, task]).to(device)
    acts = [
        lambda: frozen(good, bad),
        lambda: frozen(bad, good),
        lambda: frozen.diagonal(bad),
        lambda: frozen.value_and_pullback(good, bad)[0],
    ]
    if device.type != "cpu":
        assert [int(act().isnan().sum()) for act in acts] == [5, 5, 1, 5]
        acts = []
    if isinstance(kernel, TaskKernel):
        acts += [lambda: kernel.to(device)(bad, good).to_dense(), lambda: kernel(bad, diag=True)]
    for act in acts:
        with pytest.raises(ValueError, match=f"whole numbers from 0 to 3, got {shown}$"):
            act()


def test_several_columns_are_refused():
    X = torch.zeros(3, 2, dtype=torch.float64)
    for kernel in (TaskKernel(COVARIANCE), index_kernel()):
        with pytest.raises(ValueError, match=r"tasks must be one column of numbers, got .*\(3, 2"):
            freeze(kernel, torch.float64, torch.device("cpu"))(X, X)
