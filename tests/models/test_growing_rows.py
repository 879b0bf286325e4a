"""Finite posteriors: their memory, points that cannot be told apart, and designs with repeats."""

import warnings
from copy import deepcopy

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, counting, following_memory
from botorch_ext import KernelGP
from botorch_ext.exceptions import JitterWarning
from botorch_ext.models import FinitePosterior, finite, triangular
from botorch_ext.models.growing_rows import GrowingRows
from botorch_ext.models.repeated_points import RepeatedDesign, mean_from_counts
from tests.helpers import drawn, matern, pairwise, rbf, tolerance
from tests.kernel_functions.kernels import scaled
from tests.models.sessions import values
from tests.oracles.posterior import dense_information_gain, dense_posterior

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


NOISES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1)
LENGTHSCALES = (1e-3, 0.1, 0.3, 1.0, 30.0)
L = torch.tensor(LENGTHSCALES, dtype=torch.float64).repeat(len(NOISES))[:, None, None]
N, SCALE = 120, 1e3


def rbf_profile(s):
    return torch.exp(-(s**2) / 2)


def matern_profile(s):
    return (1 + 5**0.5 * s + 5 / 3 * s**2) * torch.exp(-(5**0.5) * s)


KERNELS = {
    "rbf": (RBFKernel(batch_shape=torch.Size([25])), rbf_profile),
    "matern": (MaternKernel(nu=2.5, batch_shape=torch.Size([25])), matern_profile),
}


def sweep(kernel, dtype, duplicates):
    """A kernel and a noise variance for each pair of the sweep, and the data."""
    X = drawn(N, 3).to(dtype)
    if duplicates:
        X[N // 2 :] = X[: N // 2]
    Y = (SCALE * torch.sin(3 * X).sum(dim=-1)).to(dtype)
    noises = torch.tensor(NOISES, dtype=torch.float64).repeat_interleave(len(LENGTHSCALES))
    kernel = deepcopy(kernel).to(torch.float64).requires_grad_(False)
    kernel.lengthscale = L
    Z = drawn(50, 3, seed=1).to(dtype)
    return kernel, noises.to(dtype), X, Y, torch.cat([Z, X[:20]])


def check(mean, std, formula, noises, jitter, X, Y, Z):
    """The posterior is that of a dense solve in float64 with the same jitter, as accurately as the
    condition of the matrix allows, and never worse than nothing."""
    X, Y, Z = X.double(), Y.double(), Z.double()
    K, cross = (formula((P[:, None] - X).square().sum(dim=-1).sqrt() / L) for P in (X, Z))
    A = K + torch.diag_embed(noises.double()[:, None] + jitter.double())
    values, vectors = torch.linalg.eigh(A)
    weights = vectors @ ((vectors.mT @ Y[:, None]) / values[..., None])
    expected = (cross @ weights).squeeze(-1)
    assert bool(mean.isfinite().all())
    assert bool(std.isfinite().all())
    error = (mean.double() - expected).abs().amax(dim=-1) / Y.abs().max()
    condition = values[:, -1] / values[:, 0]
    allowed = torch.finfo(mean.dtype).eps * (30 + condition)
    assert bool((error <= allowed.clamp_max(0.5)).all()), (error / allowed, error)
    assert bool((std >= 0).all())
    assert bool((std <= 1 + 1e-6).all())


@pairwise(name=KERNELS, dtype=[torch.float32, torch.float64], duplicates=[False, True])
def test_points_one_by_one_and_in_blocks_are_never_nan(name, dtype, duplicates):
    kernel, formula = KERNELS[name]
    kernel, noises, X, Y, Z = sweep(kernel, dtype, duplicates)
    model, blocks = (KernelGP(kernel, noises, dtype=dtype) for _ in range(2))
    finite = FinitePosterior(kernel, torch.cat([Z, X]), noises)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for i in range(N):
            model.add(X[i : i + 1], Y[i : i + 1])
            finite.add_candidate(len(Z) + i, float(Y[i]))
        for block in torch.arange(N).split(40):
            blocks.add(X[block], Y[block])
    among, jitters = slice(0, len(Z)), []
    for one in (model, blocks, finite):
        moments = (
            one.mean_and_std(Z) if one is not finite else (one.mean[:, among], one.std[:, among])
        )
        jitters.append(one.factor.jitter[:, :N])
        check(*moments, formula, noises, jitters[-1], X, Y, Z)
    named = [one for one in raised if one.category is JitterWarning]
    assert len(named) == sum(dtype == torch.float32 and bool(jitter.any()) for jitter in jitters)


LAMBDA = 0.03
EXACT = tolerance(torch.float64)


def candidates(N):
    return 3 + drawn(N, 2) * torch.tensor([1.0, 4.0])


def evaluated(N, n):
    # Few candidates often, some never.
    return (N * drawn(n, seed=1) ** 2).long()


def design_of(kernel, X, rows):
    design = RepeatedDesign(KernelGP(kernel, LAMBDA), X)
    for row in rows.tolist():
        design.add(row)
    return design


def require_dense(design, kernel, X, rows):
    _, covariance = dense_posterior(kernel, X[rows], X[rows, 0], X, LAMBDA)
    assert_close(design.std, covariance.diagonal().sqrt(), **EXACT)
    gain = X.new_tensor(dense_information_gain(kernel, X[rows], LAMBDA))
    assert_close(design.information_gain(), gain, **EXACT)
    assert_close(design.counts, torch.bincount(rows, minlength=len(X)))
    assert (design.num_observations, design.dim) == (len(rows), 2)


# Fewer evaluations than candidates; more; and so many that rows are folded several times.
@pytest.mark.parametrize(
    ("kernel", "N", "n"),
    [
        (scaled(rbf(0.7), 0.7), 40, 25),
        (matern(0.7, 0.9, nu=1.5), 30, 90),
        (matern(0.7, 0.9), 30, 300),
        (rbf(0.7), 140, 300),
        (matern(0.7, nu=1.5), 1, 5),
    ],
)
def test_a_design_is_the_dense_posterior_also_of_counts_and_after_removals(kernel, N, n):
    X, rows = candidates(N), evaluated(N, n)
    design = design_of(kernel, X, rows)
    require_dense(design, kernel, X, rows)
    counts = torch.bincount(rows, minlength=N)
    of_counts = RepeatedDesign.from_counts(KernelGP(kernel, LAMBDA), X, counts)
    counts.zero_()  # they are copied
    require_dense(of_counts, kernel, X, rows)
    design.remove(int(rows[3]))
    more = torch.tensor([7, 7, 2]) % N
    for row in more.tolist():
        design.add(row)
    require_dense(design, kernel, X, torch.cat([rows[:3], rows[4:], more]))


def numbers_of(design):
    return design.variance.clone(), design.information_gain().clone(), design.counts.clone()


@pytest.mark.parametrize("seed", range(3))
def test_successors_leave_what_came_before(seed):
    generator = torch.Generator().manual_seed(seed)
    model, some = KernelGP(matern(0.7), LAMBDA), candidates(20)
    design, counts = RepeatedDesign(model, some), torch.zeros(20, dtype=torch.long)
    for _ in range(60):
        before, new, own = numbers_of(design), design.successor(), counts.clone()
        row = int(torch.randint(20, (), generator=generator))
        removes = own[row] and torch.rand((), generator=generator) < 0.2
        (new.remove if removes else new.add)(row)
        own[row] += -1 if removes else 1
        known = RepeatedDesign.from_counts(model, some, own)
        for ours, theirs in zip(numbers_of(new), numbers_of(known), strict=True):
            assert_close(ours, theirs, **EXACT)
        assert all(map(torch.equal, numbers_of(design), before))
        if torch.rand((), generator=generator) < 0.7:  # else it is dropped
            design, counts = new, own
    assert counts.sum() > 20


@pytest.mark.parametrize("mean", [None, lambda X: X.sum(dim=-1)])
def test_means_from_counts_are_those_of_all_observations(mean):
    X, rows, kernel = candidates(30), evaluated(30, 90), matern(0.7, nu=1.5)
    values = torch.sin(5 * X[rows, 0]) + torch.linspace(-1, 1, 90, dtype=torch.float64)
    counts = torch.bincount(rows, minlength=30)
    sums = torch.zeros(30, dtype=torch.float64).index_add(0, rows, values)
    model = KernelGP(kernel, LAMBDA, mean=mean)
    prior = torch.zeros(30, dtype=torch.float64) if mean is None else mean(X)
    expected, _ = dense_posterior(kernel, X[rows], values - prior[rows], X, LAMBDA)
    assert_close(mean_from_counts(model, X, counts, sums), prior + expected, **EXACT)
    assert_close(mean_from_counts(model, X, 0 * counts, 0 * sums), prior)


def test_float32_is_kept_and_repeats_at_little_noise_do_no_harm():
    X = candidates(20).float()
    design = RepeatedDesign(KernelGP(matern(0.7), 1e-10, dtype=torch.float32), X)
    for _ in range(40):
        design.add(3)
    assert design.std.dtype == torch.float32
    assert bool(torch.isfinite(design.std).all())
    assert float(design.std[3]) < 1e-2
