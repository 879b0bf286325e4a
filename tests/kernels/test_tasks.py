"""Given covariances of tasks against their entries, and what is no task."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.kernels import TaskKernel
from tests.helpers import drawn, tolerance
from tests.kernels.joint import COVARIANCE, COVARIANCES, index_kernel, sparse_matrices

TOL = tolerance(torch.float64)
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
