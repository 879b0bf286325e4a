"""The kernels of a step on a finite set, interpreted on the CPU, against what PyTorch computes."""

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

pytest.importorskip("triton")

from botorch_ext import FiniteSet, algorithms
from botorch_ext.domains.shards import Shard
from botorch_ext.exceptions import NoTritonWarning
from botorch_ext.models import FinitePosterior, fused_step, fusing, row_blocks

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
N = 300
KERNELS = {
    "RBF": lambda: RBFKernel(),
    "RBF, ARD": lambda: RBFKernel(ard_num_dims=3),
    "Matern 1/2": lambda: MaternKernel(nu=0.5),
    "Matern 3/2, ARD": lambda: MaternKernel(nu=1.5, ard_num_dims=3),
    "Matern 5/2, scaled": lambda: ScaleKernel(MaternKernel(nu=2.5)),
}
DTYPES = {torch.float64: 1e-10, torch.float32: 2e-3}


@pytest.fixture
def calls(monkeypatch):
    """The kernels that run; they run wherever the tensors are."""
    fusing._kernels(torch.device(DEVICE))  # tries them once
    ran, launch = [], fused_step._launch

    def counted(kernel, *arguments, **constants):
        ran.append(kernel.fn.__name__)
        launch(kernel, *arguments, **constants)

    monkeypatch.setattr(fused_step, "_launch", counted)
    monkeypatch.setattr(fusing, "_is_on_a_gpu", lambda x: True)
    return ran


def points(dtype=torch.float64, n=N, dim=3):
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(n, dim, generator=generator, dtype=torch.float64) * 2 - 5
    return X.to(DEVICE, dtype)


def kernel_of(name, dtype=torch.float64):
    kernel = KERNELS[name]().to(DEVICE, dtype)
    for module in kernel.modules():
        if getattr(module, "has_lengthscale", False):
            module.lengthscale = torch.tensor([0.6, 0.9, 0.7])[: module.lengthscale.shape[-1]]
    if isinstance(kernel, ScaleKernel):
        kernel.outputscale = 0.7
    return kernel


def script(posterior, data, steps=30):
    """Observations at candidates, known and pending, and everything else that may happen."""
    posterior.add(data[:2] + 0.01, data[:2, 0])
    for i in range(steps):
        if i in (5, 6, 17):  # the next ones move the means at what pends
            posterior.add_candidate((11 * i) % N, None)
        else:
            posterior.add_candidate((7 * i) % N, float(data[i, 1]))
        if i in (8, 20):
            posterior.set_targets(list(posterior.factor.pending), data[: 2 if i == 8 else 1, 2])
    posterior.remove(9)
    fork = posterior.fork()
    for i in range(6):
        posterior.add_candidate(i, 0.5)
        fork.add_candidate(20 + i, None)
    return posterior, fork


def numbers(posterior):
    factor, n = posterior.factor, posterior.num_observations
    vectors = [getattr(factor, name)[:n] for name in ("z", "y", "gains", "jitter")]
    return [posterior.mean, posterior.variance, posterior._V.values, factor.L, *vectors]


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float64) for name in KERNELS),
        ("RBF, ARD", torch.float32),
        ("Matern 5/2, scaled", torch.float32),
    ],
)
def test_a_posterior_is_that_without_them(name, dtype, calls, monkeypatch):
    data = points(dtype)
    for most in (2**29, 9 * N * data.element_size()):  # rows in one block, and in several
        monkeypatch.setattr(row_blocks, "_MOST_BYTES", most)
        with monkeypatch.context() as without:
            without.setattr(fusing, "_is_on_a_gpu", lambda x: False)
            expected = script(FinitePosterior(kernel_of(name, dtype), data, 0.01, capacity=3), data)
        assert not calls
        got = script(FinitePosterior(kernel_of(name, dtype), data, 0.01, capacity=3), data)
        assert len(calls) == 25 + 6 + 1  # not after a pending one, nor in a fork without own rows
        calls.clear()
        for own, other in zip(got, expected, strict=True):
            assert own.factor.pending == other.factor.pending
            assert torch.equal(own.train_inputs[0], other.train_inputs[0])
            for a, b in zip(numbers(own), numbers(other), strict=True):
                assert_close(a, b, rtol=DTYPES[dtype], atol=DTYPES[dtype])


class Alone(Shard):
    """Whose rows alone are asked for."""

    def from_owners(self, columns, rows):
        return columns


def test_a_shard_is_a_part_of_the_whole(calls):
    data, part = points(), slice(90, 210)
    whole = FinitePosterior(kernel_of("RBF, ARD"), data, 0.01)
    shard = FinitePosterior(kernel_of("RBF, ARD"), data, 0.01, shard=Alone(90, 210, None))
    for i in range(20):
        for posterior in (whole, shard):
            posterior.add_candidate(90 + 6 * i, float(data[i, 0]))
    assert len(calls) == 40
    for a, b in zip(numbers(shard), numbers(whole), strict=True):
        own = b[..., part] if b.shape[-1] == N else b
        assert_close(a, own, rtol=1e-12, atol=1e-12)


def test_a_step_with_more_rows_than_are_read_at_once(calls, monkeypatch):
    monkeypatch.setattr(fused_step, "_NUMBERS", 16)
    data = points()
    expected = FinitePosterior(kernel_of("RBF"), data, 0.01)
    got = FinitePosterior(kernel_of("RBF"), data, 0.01)
    for i in range(40):
        got.add_candidate(3 * i, float(data[i, 0]))
    expected.add(data[0:120:3], data[:40, 0])
    assert len(calls) == 40
    for a, b in zip(numbers(got), numbers(expected), strict=True):
        assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.JitterWarning")
def test_pivots_that_are_rounding_are_raised(dtype, calls):
    posterior = FinitePosterior(kernel_of("RBF", dtype), points(dtype), 1e-14)
    for i in (3, 3, 4, 3, 4, 7):
        posterior.add_candidate(i, 1.0)
    assert calls and bool((posterior.factor.jitter[:6] > 0).any())
    for values in numbers(posterior):
        assert bool(values.isfinite().all())


@pytest.mark.parametrize("n", [1, 5, 512, 513, 1300])
def test_the_highest_bound_is_the_first_of_equal_ones(n):
    generator = torch.Generator().manual_seed(n)
    mean = torch.randint(0, 4, (n,), generator=generator).double().to(DEVICE)
    variance = torch.randint(-1, 3, (n,), generator=generator).double().to(DEVICE)
    width, offset = mean.new_tensor([1.5]), mean.new_tensor([0.25])
    std = variance.clamp_min(0).sqrt()
    row = int((mean + 0.25 + 1.5 * std).argmax())
    expected = [row, float(mean[row]), float(std[row]), 1.5, 0.25]
    assert fused_step.highest(mean, variance, width, offset).tolist() == pytest.approx(expected)


def test_the_highest_among_what_is_no_number_is_some_row():
    nothing, one = torch.full((700,), torch.nan, device=DEVICE), torch.ones(1, device=DEVICE)
    row, mean, *_ = fused_step.highest(nothing, nothing, one, one).tolist()
    assert 0 <= row < 700 and mean != mean


def test_where_triton_does_not_run_a_warning_says_so(monkeypatch):
    def launch(*arguments, **constants):
        raise RuntimeError("Failed to find C compiler")

    monkeypatch.setattr(fused_step, "_launch", launch)
    monkeypatch.setattr(fusing, "_is_on_a_gpu", lambda x: True)
    monkeypatch.setattr(fusing, "_kernels", fusing._kernels.__wrapped__)
    with pytest.warns(NoTritonWarning, match="C compiler"):
        assert fusing.fused_step(points()) is None


@pytest.mark.parametrize("pending", [0, 3])
def test_a_study_picks_what_it_picks_without_them(pending, calls, monkeypatch):
    domain, kernel = FiniteSet(points()), kernel_of("Matern 5/2, scaled")

    def played():
        strategy = algorithms.gp_ucb(
            domain, kernel, noise_variance=1e-3, rkhs_bound=1.0, noise_std=0.03
        )
        trials = []
        for i in range(25):
            trials.append(strategy.ask())
            if i >= pending:
                x = trials[i - pending].x
                strategy.tell(trials[i - pending].id, float((3 * x).sin().sum()))
        return [trial.info for trial in trials]

    got = played()
    assert calls.count("_highest_of_all") == 25 and "_enter" in calls
    monkeypatch.setattr(fusing, "_is_on_a_gpu", lambda x: False)
    for own, other in zip(got, played(), strict=True):
        assert own == pytest.approx(other, rel=1e-8)
