"""The tight widths and the weights of observations, against their definitions."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import botorch_ext as bx
from botorch_ext import widths
from tests.helpers import drawn, matern, rbf, tolerance
from tests.oracles.tight import Tight

RIDGES = (0.5, 1.0, 8.0)


def points(num: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return drawn(num, 2, seed=seed).to(dtype)


def oracle_of(model: bx.KernelGP, X: Tensor, at: Tensor, y: Tensor, **numbers: float) -> Tight:
    def kernel(A: Tensor, B: Tensor) -> np.ndarray:
        return model.kernel(A.double(), B.double()).to_dense().detach().numpy()

    K, k, prior = kernel(X, X), kernel(X, at), np.diag(kernel(at, at))
    return Tight(K, k, prior, y.double().numpy(), float(model.noise_variance), **numbers)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("ridges", [(1.0,), RIDGES])
def test_the_widths_are_those_of_the_formula(dtype: torch.dtype, ridges: tuple[float, ...]) -> None:
    X, y = points(12, 1, dtype), drawn(12, seed=2, low=-1).to(dtype)
    model = bx.KernelGP(rbf(0.4).to(dtype), 0.05, dtype=dtype)
    model.add(X, y)
    numbers = {"B": 1.3, "sigma": 0.2, "delta": 0.05}
    oracle = oracle_of(model, X, X[:1], y, **numbers)
    oracle.ridges = ridges
    given = tuple(numbers.values())
    ladder = widths.Ladder(*given, ridges=ridges)
    for ridge in ridges:
        own = bx.KernelGP(rbf(0.4).to(dtype), 0.05 * ridge, dtype=dtype)
        own.add(X, y)
        expected = torch.tensor(oracle.width(0.05 * ridge), dtype=dtype)
        torch.testing.assert_close(ladder(13, own), expected, **tolerance(dtype))
    mixture = widths.Mixture(*given)(13, model)
    assert torch.equal(widths.Ladder(*given, ridges=(1,))(13, model), mixture)
    published = widths.SelfNormalized(*given)(13, model)
    assert published / math.sqrt(2) <= mixture <= published


@pytest.mark.parametrize(
    "ridges", [(), (4.0,), (1.0, 1.0), (1.0, -2.0), (1.0, math.inf), "1", 1.0, (1.0, "4")]
)
def test_ridges_that_are_refused(ridges: object) -> None:
    with pytest.raises(ValueError, match="ridges"):
        widths.Ladder(1.0, 0.1, 0.1, ridges=ridges)  # pyright: ignore


@pytest.mark.parametrize("kernel", [rbf(0.4), matern(0.3)])
@pytest.mark.parametrize("pending", [0, 3])
def test_weight_norms_are_those_of_the_mean_of_known_observations(
    kernel: object, pending: int
) -> None:
    X, at = points(11, 3), points(40, 4)
    told = X[: len(X) - pending]
    y = drawn(len(told), seed=5, low=-1)
    model = bx.KernelGP(kernel, 0.05)  # pyright: ignore
    model.add(told[:4], y[:4])
    if pending:
        model.add(X[len(told) :], None)
    model.add(told[4:], y[4:])
    expected = torch.tensor(oracle_of(model, told, at, y).norms(0.05))
    torch.testing.assert_close(model.weight_norms(at), expected, **tolerance(at.dtype))
    Z = at.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model.weight_norms(Z).sum(), Z)
    *moments, norms, gradient = model.weight_norms_and_gradients(at)
    torch.testing.assert_close(norms, expected, **tolerance(at.dtype))
    torch.testing.assert_close(gradient, slope, rtol=1e-6, atol=1e-6)
    for own, plain in zip(moments, model.mean_std_and_gradients(at), strict=True):
        assert torch.equal(own, plain)


@pytest.mark.parametrize("kept", [True, False])
def test_weight_norms_of_a_finite_set_follow_its_observations(
    kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, noise = points(30, 6), 0.05 * torch.tensor([1.0, 7.0], dtype=torch.float64)
    posterior = bx.FinitePosterior(matern(0.3), at, noise)
    if kept:
        monkeypatch.setattr("botorch_ext.models.finite._FRESH", 9)
        posterior.keep_weights()
    rows, y = [3, 7, 3, 21, 0, 11, 12, 29, 7, 8, 15], drawn(11, seed=7, low=-1)
    for row, value in zip(rows[:7], y[:7].tolist(), strict=True):
        posterior.add_candidate(row, value)
    before = posterior.fork()
    posterior.add_candidate(rows[7], None)
    posterior.add(at[rows[8:]], y[8:])
    posterior.add_candidate(2, None)
    posterior.set_targets([7], [float(y[7])])
    for state, count in ((posterior, 11), (before, 7)):
        model = bx.KernelGP(matern(0.3), 0.05)
        oracle = oracle_of(model, at[rows[:count]], at, y[:count])
        for own, a in zip(state.weight_norms_of_candidates(), noise.tolist(), strict=True):
            expected = torch.tensor(oracle.norms(a))
            torch.testing.assert_close(own, expected, rtol=1e-10, atol=1e-10)
    posterior.remove(4)
    rows, y = [*rows[:4], *rows[5:]], torch.cat([y[:4], y[5:]])
    oracle = oracle_of(bx.KernelGP(matern(0.3), 0.05), at[rows], at, y)
    expected = torch.tensor(oracle.norms(0.05))
    torch.testing.assert_close(posterior.weight_norms_of_candidates()[0], expected)
    assert (posterior._weights is not None) == kept
