"""Rows in blocks: the same numbers as in one, nothing copied to grow, and no more memory."""

import pickle
from copy import deepcopy
from operator import is_not

import pytest
import torch
from gpytorch.kernels import MaternKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, following_memory
from botorch_ext.models import FinitePosterior, row_blocks
from botorch_ext.models.growing_rows import GrowingTriangle, identity
from botorch_ext.models.row_blocks import RowBlocks

WIDTH, BLOCK = 50, 7
X = torch.rand(WIDTH, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 3


@pytest.fixture(params=[(), (3,)], ids=["one", "a batch"])
def batch(request):
    return request.param


@pytest.fixture
def small_blocks(monkeypatch, batch):
    row = torch.Size([*batch, WIDTH]).numel() * 8
    monkeypatch.setattr(row_blocks, "_MOST_BYTES", BLOCK * row)


def drawn(batch, m, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*batch, m, WIDTH, generator=generator, dtype=torch.float64)


def check(rows, expected):
    """All that can be asked of rows."""
    n = expected.shape[-2]
    assert rows.num_rows == n
    assert torch.equal(rows.values, expected)
    for start in (0, n // 2, BLOCK, 2 * BLOCK, n - 1, n):
        if not 0 <= start <= n:
            continue
        generator = torch.Generator().manual_seed(start)
        shape = (*expected.shape[:-2], 2, n - start)
        weights = torch.randn(shape, generator=generator, dtype=torch.float64)
        assert_close(rows.combined(weights, start), weights @ expected[..., start:, :])
        assert torch.equal(rows.block(slice(start, n), slice(3, 4)), expected[..., start:, 3:4])
        pieces = list(rows.pieces(slice(start, n)))
        assert torch.equal(torch.cat([rows for _, rows in pieces], -2), expected[..., start:, :])
        assert [part.start for part, _ in pieces] == [start, *(p.stop for p, _ in pieces[:-1])]
        assert pieces[-1][0].stop == n


@pytest.mark.parametrize("sizes", [[1] * 30, [30], [5, 2, 7, 14, 1, 1], [3, 9, 9, 9]])
def test_rows_are_those_appended(sizes, batch, small_blocks):
    rows, expected = RowBlocks(X, (*batch, 4, WIDTH)), drawn(batch, 0)
    check(rows, expected)
    for i, m in enumerate(sizes):
        new = drawn(batch, m, i)
        rows.append(new)
        expected = torch.cat([expected, new], dim=-2)
        check(rows, expected)
    assert len(rows._blocks) == -(-expected.shape[-2] // BLOCK)


@pytest.mark.parametrize("left", [0, 3, 7, 10, 14, 20])
@pytest.mark.parametrize("forked", [False, True])
def test_rows_that_are_forgotten_are_gone_and_a_fork_keeps_its_own(
    left, forked, batch, small_blocks
):
    rows, expected = RowBlocks(X, (*batch, 4, WIDTH)), drawn(batch, 20)
    rows.append(expected)
    original, fork = rows, rows.fork()
    rows, other = (fork, original) if forked else (original, fork)
    rows.truncate(left)
    check(rows, expected[..., :left, :])
    new = drawn(batch, 17, 1)
    for row in new.split(1, dim=-2):
        rows.append(row)
    check(rows, torch.cat([expected[..., :left, :], new], dim=-2))
    check(other, expected)
    for row in new.split(1, dim=-2):
        other.append(row)
    check(other, torch.cat([expected, new], dim=-2))
    check(rows, torch.cat([expected[..., :left, :], new], dim=-2))


@pytest.mark.parametrize("index", [1, [2, 0], [1]])
def test_members_that_are_kept_lose_nothing_and_free_the_others(index, monkeypatch):
    monkeypatch.setattr(row_blocks, "_MOST_BYTES", BLOCK * 3 * WIDTH * 8)
    rows, expected = RowBlocks(X, (3, 4, WIDTH)), drawn((3,), 20)
    rows.append(expected)
    whole = rows.fork()
    rows.keep(index)
    expected = expected[index]
    check(rows, expected)
    new = drawn(expected.shape[:-2], 3, 1)
    rows.append(new)
    expected = torch.cat([expected, new], dim=-2)
    check(rows, expected)
    check(whole, drawn((3,), 20))
    held = sum(block._buffer.untyped_storage().nbytes() for block in rows._blocks[:-1])
    assert held == 3 * BLOCK * expected[..., :1, :].numel() * 8
    for copied in (pickle.loads(pickle.dumps(rows)), deepcopy(rows)):
        check(copied, expected)


def test_a_copy_that_was_made_changes_no_bit_of_what_is_computed_later():
    """A product of one member and one of a batch may differ in the last digits."""
    alone, lent = (RowBlocks(X, (3, 32, WIDTH)) for _ in range(2))
    for rows in (alone, lent):
        rows.append(drawn((3,), 20))
        rows.keep([2, 0])
    copy = lent.fork()
    for rows in (alone, lent):
        rows.truncate(13)
    assert copy.num_rows == 20
    for num_rows in range(1, 14):
        weights = drawn((2,), num_rows, num_rows)[..., :1].mT
        assert torch.equal(alone.combined(weights, 0), lent.combined(weights, 0))


def test_full_blocks_are_shared_by_copies_for_ever(small_blocks, batch):
    rows = RowBlocks(X, (*batch, 4, WIDTH))
    rows.append(drawn(batch, 16))
    fork = rows.fork()
    for own in (rows, fork):
        for row in drawn(batch, 20, 1).split(1, dim=-2):
            own.append(row)
    places = [[block._buffer.data_ptr() for block in own._blocks] for own in (rows, fork)]
    assert places[0][:2] == places[1][:2] and not set(places[0][2:]) & set(places[1][2:])


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


def test_a_posterior_in_blocks_is_that_in_one(batch, monkeypatch):
    kernel = MaternKernel(nu=1.5, batch_shape=torch.Size(batch)).double()
    kernel.lengthscale = 0.3 if not batch else torch.tensor([0.2, 0.4, 0.8])[:, None, None]

    def made():
        return script(FinitePosterior(kernel, X, 0.01, capacity=4))

    expected = made()
    monkeypatch.setattr(row_blocks, "_MOST_BYTES", BLOCK * (3 if batch else 1) * WIDTH * 8)
    for got, whole in zip(made(), expected, strict=True):
        assert len(got._V._blocks) > 4 and len(whole._V._blocks) == 1
        assert_close(got.mean, whole.mean, rtol=1e-10, atol=1e-10)
        assert_close(got.variance, whole.variance, rtol=1e-10, atol=1e-10)
        assert_close(got.cross_factor(9), whole.cross_factor(9), rtol=1e-10, atol=1e-10)


def test_growth_takes_the_memory_of_the_rows_and_of_one_block(monkeypatch):
    n, N, block = 300, 5000, 20
    monkeypatch.setattr(row_blocks, "_MOST_BYTES", block * N * 8)
    with PretendCUDA():
        candidates = torch.rand(N, 2, device="cuda", dtype=torch.float64)
        with following_memory() as memory:
            posterior = FinitePosterior(MaternKernel(nu=2.5), candidates, 0.01)
            for i in range(n):
                posterior.add_candidate((17 * i) % N, 1.0 if i % 7 else None)
                rows = posterior.num_observations * N * 8
                # The factor, which is square, and vectors of the length of the candidates.
                rest = 3 * posterior.factor.triangle.capacity**2 * 8 + 20 * N * 8
                assert memory.growth <= rows + block * N * 8 + rest, i
        assert posterior._V.num_rows == n


def test_many_observations_at_once_take_no_more(monkeypatch):
    n, N, block = 200, 5000, 20
    monkeypatch.setattr(row_blocks, "_MOST_BYTES", block * N * 8)
    with PretendCUDA():
        candidates = torch.rand(N, 2, device="cuda", dtype=torch.float64)
        with following_memory() as memory:
            posterior = FinitePosterior(MaternKernel(nu=2.5), candidates, 0.01)
            posterior.add(candidates[:n] + 0.01, candidates[:n, 0])
            posterior.remove(100)
        rest = 3 * posterior.factor.triangle.capacity**2 * 8 + 20 * N * 8
        assert memory.growth <= (n + 3 * block) * N * 8 + rest


def test_a_million_candidates_have_18000_observations_in_139_gib():
    like = torch.empty((), dtype=torch.float64, device="meta")  # sizes without memory
    V, L = RowBlocks(like, (64, 10**6)), GrowingTriangle(identity(like, 64), 1.25)
    row, corner = like.new_empty(1, 10**6), like.new_empty(1, 1)
    held, peak = [], 0
    for n in range(18_000):
        V.append(row)
        L.extend(like.new_empty(1, n), corner)
        buffers = [block._buffer for block in V._blocks] + [L._buffer]
        if len(buffers) != len(held) or any(map(is_not, buffers, held)):
            living = {id(buffer): buffer.nbytes for buffer in held + buffers}  # while it grows
            held, peak = buffers, max(peak, sum(living.values()))
    assert V.num_rows == L.num_rows == 18_000
    assert peak > 18_000 * 10**6 * 8
    # Beside them: candidates, differences in ten columns, and vectors as long as the candidates.
    assert peak + (3 * 10 + 20) * 10**6 * 8 < 139 * 2**30
