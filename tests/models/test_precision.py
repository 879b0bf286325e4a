"""Precision: posteriors of points that cannot be told apart in float32, or in float64."""

import warnings
from copy import deepcopy

import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_ext.exceptions import JitterWarning
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from tests.helpers import drawn, pairwise

NOISES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1)
LENGTHSCALES = (1e-3, 0.1, 0.3, 1.0, 30.0)
L = torch.tensor(LENGTHSCALES, dtype=torch.float64).repeat(len(NOISES))[:, None, None]
N, SCALE = 120, 1e3


def rbf(s):
    return torch.exp(-(s**2) / 2)


def matern(s):
    return (1 + 5**0.5 * s + 5 / 3 * s**2) * torch.exp(-(5**0.5) * s)


KERNELS = {
    "rbf": (RBFKernel(batch_shape=torch.Size([25])), rbf),
    "matern": (MaternKernel(nu=2.5, batch_shape=torch.Size([25])), matern),
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
