"""Growing rows: what copies share, and how much memory growth takes."""

import pickle
from copy import deepcopy

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, counting, following_memory
from botorch_ext.models import FinitePosterior, finite, triangular
from botorch_ext.models.growing_rows import GrowingRows
from tests.helpers import drawn, pairwise

WIDTH = 50
X = drawn(WIDTH, 2) - 3


@pytest.fixture(params=[(), (3,)], ids=["one", "a batch"])
def batch(request):
    return request.param


def made(batch, capacity=4):
    return GrowingRows(X.new_empty(*batch, capacity, WIDTH), 1.5)


def rows_of(batch, m, seed=0):
    return drawn(*batch, m, WIDTH, seed=seed, low=-1.0)


def check(rows, expected):
    """All that can be asked of rows."""
    n = expected.shape[-2]
    assert rows.num_rows == n
    assert torch.equal(rows.values, expected)
    for start in {0, n // 2, max(n - 1, 0), n}:
        weights = drawn(*expected.shape[:-2], 2, n - start, seed=start, low=-1.0)
        assert_close(rows.combined(weights, start), weights @ expected[..., start:, :])
        assert torch.equal(rows.block(slice(start, n), slice(3, 4)), expected[..., start:, 3:4])


@pytest.mark.parametrize("sizes", [[1] * 30, [30], [5, 2, 7, 14, 1, 1], [3, 9, 9, 9]])
def test_rows_are_those_appended(sizes, batch):
    rows, expected = made(batch), rows_of(batch, 0)
    check(rows, expected)
    for i, m in enumerate(sizes):
        new = rows_of(batch, m, i)
        rows.append(new)
        expected = torch.cat([expected, new], dim=-2)
        check(rows, expected)


@pairwise(left=[0, 3, 10, 14, 20], forked=[False, True])
def test_rows_that_are_forgotten_are_gone_and_a_fork_keeps_its_own(left, forked, batch):
    rows, expected = made(batch), rows_of(batch, 20)
    rows.append(expected)
    original, fork = rows, rows.fork()
    rows, other = (fork, original) if forked else (original, fork)
    rows.truncate(left)
    check(rows, expected[..., :left, :])
    new = rows_of(batch, 17, 1)
    for row in new.split(1, dim=-2):
        rows.append(row)
    check(rows, torch.cat([expected[..., :left, :], new], dim=-2))
    check(other, expected)
    for row in new.split(1, dim=-2):
        other.append(row)
    check(other, torch.cat([expected, new], dim=-2))
    check(rows, torch.cat([expected[..., :left, :], new], dim=-2))


@pytest.mark.parametrize("index", [1, [2, 0], [1]])
def test_members_that_are_kept_lose_nothing_and_free_the_others(index):
    rows, expected = made((3,)), rows_of((3,), 20)
    rows.append(expected)
    whole = rows.fork()
    rows.keep(index)
    expected = expected[index]
    check(rows, expected)
    new = rows_of(expected.shape[:-2], 40, 1)
    rows.append(new)
    expected = torch.cat([expected, new], dim=-2)
    check(rows, expected)
    check(whole, rows_of((3,), 20))
    assert rows._buffer.shape[:-2] == expected.shape[:-2]
    for copied in (pickle.loads(pickle.dumps(rows)), deepcopy(rows)):
        check(copied, expected)


def test_a_copy_that_was_made_changes_no_bit_of_what_is_computed_later():
    """A product of one member and one of a batch may differ in the last digits."""
    alone, lent = (made((3,), 32) for _ in range(2))
    for rows in (alone, lent):
        rows.append(rows_of((3,), 20))
        rows.keep([2, 0])
    copy = lent.fork()
    for rows in (alone, lent):
        rows.truncate(13)
    assert copy.num_rows == 20
    for num_rows in range(1, 14):
        weights = rows_of((2,), num_rows, num_rows)[..., :1].mT
        assert torch.equal(alone.combined(weights, 0), lent.combined(weights, 0))


def script(posterior):
    """Everything that happens to a posterior."""
    generator = torch.Generator().manual_seed(5)
    values = torch.randn(60, generator=generator, dtype=torch.float64).tolist()
    posterior.add(X[3:8] + 0.01, X[3:8, 0])
    for i in range(25):
        posterior.add_candidate((7 * i) % WIDTH, None if i % 5 == 3 else values[i])
    posterior.set_targets([8, 13], X[:2, 1])
    posterior.remove(4)
    posterior.remove(22)
    fork = posterior.fork()
    for i in range(12):
        posterior.add_candidate((3 * i) % WIDTH, values[30 + i])
        fork.add_candidate((5 * i) % WIDTH, values[45 + i])
    posterior.add(X[20:40] - 0.02, None)
    return [posterior, fork]


def test_rows_that_come_and_go_in_parts_give_the_same_posterior(batch, monkeypatch):
    kernel = MaternKernel(nu=1.5, batch_shape=torch.Size(batch)).double()
    kernel.lengthscale = 0.3 if not batch else torch.tensor([0.2, 0.4, 0.8])[:, None, None]

    def posteriors():
        return script(FinitePosterior(kernel, X, 0.01, capacity=4))

    expected = posteriors()
    monkeypatch.setattr(finite, "_MOST_BYTES", 3 * (3 if batch else 1) * WIDTH * 8)
    for got, whole in zip(posteriors(), expected, strict=True):
        assert got._rows_at_once == 3
        assert_close(got.mean, whole.mean, rtol=1e-10, atol=1e-10)
        assert_close(got.variance, whole.variance, rtol=1e-10, atol=1e-10)
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
    X = drawn(2500, 2)
    kernel = RBFKernel(batch_shape=torch.Size([3]))
    y = X.sum(dim=-1)

    def variance(device):
        posterior = FinitePosterior(kernel.to(device), X.to(device), 0.1)
        posterior.add(X[:3].to(device), y[:3].to(device))
        posterior.add(X[5:20].to(device), y[5:20].to(device))
        return posterior.variance.cpu()

    expected = variance("cpu")
    with PretendCUDA(), counting() as tally:
        assert_close(variance("cuda"), expected, rtol=1e-12, atol=1e-12)
    columns = [right[-1] for _, right in tally.solves]
    assert max(columns) == 1000
