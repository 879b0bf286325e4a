"""Memory: how much a growing finite posterior takes, and that parts and pieces change nothing."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, counting, following_memory
from botorch_ext.models import FinitePosterior, finite, triangular
from botorch_ext.models.growing_rows import GrowingRows
from tests.helpers import drawn
from tests.models.sessions import values

WIDTH = 50
X = drawn(WIDTH, 2) - 3


def script(posterior):
    """Everything that happens to a posterior."""
    Y = values(60, 5).tolist()
    posterior.add(X[3:8] + 0.01, X[3:8, 0])
    for i in range(25):
        posterior.add_candidate((7 * i) % WIDTH, None if i % 5 == 3 else Y[i])
    posterior.set_targets([8, 13], X[:2, 1])
    posterior.remove(4)
    posterior.remove(22)
    fork = posterior.fork()
    for i in range(12):
        posterior.add_candidate((3 * i) % WIDTH, Y[30 + i])
        fork.add_candidate((5 * i) % WIDTH, Y[45 + i])
    posterior.add(X[20:40] - 0.02, None)
    return [posterior, fork]


@pytest.mark.parametrize("batch", [(), (3,)], ids=["one", "a batch"])
def test_rows_that_come_and_go_in_parts_give_the_same_posterior(batch, monkeypatch):
    kernel = MaternKernel(nu=1.5, batch_shape=torch.Size(batch)).double()
    kernel.lengthscale = torch.tensor([0.2, 0.4, 0.8])[:, None, None] if batch else 0.3
    expected = script(FinitePosterior(kernel, X, 0.01, capacity=4))
    monkeypatch.setattr(finite, "_MOST_BYTES", 3 * (3 if batch else 1) * WIDTH * 8)
    in_parts = script(FinitePosterior(kernel, X, 0.01, capacity=4))
    for got, whole in zip(in_parts, expected, strict=True):
        assert got._rows_at_once == 3
        for name in ("mean", "variance"):
            assert_close(getattr(got, name), getattr(whole, name), rtol=1e-10, atol=1e-10)
        assert_close(got.cross_factor(9), whole.cross_factor(9), rtol=1e-10, atol=1e-10)


def test_growth_takes_the_memory_of_the_old_buffer_and_of_the_new_one():
    n, N = 90, 5000
    with PretendCUDA():
        candidates = torch.rand(N, 2, device="cuda", dtype=torch.float64)
        with following_memory() as memory:
            posterior = FinitePosterior(MaternKernel(nu=2.5), candidates, 0.01)
            before = 0
            for i in range(n):
                capacity = posterior._V.capacity
                posterior.add_candidate((17 * i) % N, 1.0 if i % 7 else None)
                if posterior._V.capacity > capacity:
                    before = capacity
                # The factor, which is square, and vectors of the length of the candidates.
                rest = 3 * posterior.factor.triangle.capacity**2 * 8 + 20 * N * 8
                assert memory.growth <= (before + posterior._V.capacity) * N * 8 + rest, i
        assert posterior._V.num_rows == n


@pytest.mark.slow
@pytest.mark.parametrize("forked", [False, True])
def test_a_million_candidates_have_1000_observations_in_24_gb(forked):
    like = torch.empty((), dtype=torch.float64, device="meta")  # sizes without memory
    rows = GrowingRows(like.new_empty(64, 10**6), finite._GROWTH)
    row, peak = like.new_empty(1, 10**6), 0
    for _ in range(1000):
        before = rows._buffer
        rows = rows.fork() if forked else rows
        rows.append(row)
        living = {id(buffer): buffer.nbytes for buffer in (before, rows._buffer)}
        peak = max(peak, sum(living.values()))
    assert rows.num_rows == 1000
    # Beside them: candidates and differences in ten columns, vectors as long as the candidates, and
    # what is computed of new rows.
    assert peak + (3 * 10 + 20) * 10**6 * 8 + 4 * finite._MOST_BYTES < 24e9


def test_no_solve_on_cuda_has_too_many_columns(monkeypatch):
    monkeypatch.setattr(triangular, "_MOST_COLUMNS", 1000)
    X, kernel = drawn(2500, 2), RBFKernel(batch_shape=torch.Size([3]))

    def variance(device):
        posterior = FinitePosterior(kernel.to(device), X.to(device), 0.1)
        for rows in (slice(3), slice(5, 20)):
            posterior.add(X[rows].to(device), X[rows, 0].to(device))
        return posterior.variance.cpu()

    expected = variance("cpu")
    with PretendCUDA(), counting() as tally:
        assert_close(variance("cuda"), expected, rtol=1e-12, atol=1e-12)
    assert max(right[-1] for _, right in tally.solves) == 1000
