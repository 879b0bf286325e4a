"""Kernels in many columns, whose distances come from matrix products."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import distances
from botorch_ext.distances import _by_products, _squares_by_differences, _squares_by_products
from botorch_ext.kernel_functions import freeze
from tests.helpers import tolerance
from tests.kernel_functions.kernels import scaled, spread, stationary

TOL = tolerance(torch.float64)
CPU = torch.device("cpu")
DIM = 48


def points(num, seed, batch=()):
    """Away from the origin and not alike in all columns, in clusters, some of them almost equal."""
    generator = torch.Generator().manual_seed(seed)
    sides = 0.2 + torch.arange(DIM, dtype=torch.float64) / DIM
    middles = torch.rand(5, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    which = torch.randint(5, (*batch, num), generator=generator)
    steps = torch.rand(*batch, num, DIM, generator=generator, dtype=torch.float64)
    spans = 10.0 ** -torch.randint(0, 9, (*batch, num, 1), generator=generator)
    return 30 + sides * (3 * middles[which] + spans * steps)


KERNELS = {
    "rbf": lambda: stationary(math.inf, 4.0),
    "rbf ard": lambda: stationary(math.inf, spread(2.0, 6.0, 1, DIM)),
    "matern12": lambda: stationary(0.5, 4.0),
    "matern52 ard": lambda: scaled(stationary(2.5, spread(2.0, 6.0, 1, DIM))),
    "batched": lambda: stationary(1.5, spread(2.0, 6.0, 3, 1, 1)),
    "batched ard": lambda: stationary(1.5, spread(2.0, 6.0, 3, 1, DIM)),
}


@pytest.mark.parametrize("own_points", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_they_are_those_of_a_few_points_at_a_time(name, own_points, monkeypatch):
    frozen = freeze(KERNELS[name](), torch.float64, CPU)
    X1, X2 = points(150, 1), points(180, 2, frozen.batch_shape if own_points else ())
    X2[..., :20, :] = X1[:20]
    made = []
    original = torch.matmul
    monkeypatch.setattr(torch, "matmul", lambda *a, **k: made.append(1) or original(*a, **k))
    with torch.no_grad():
        K, (_, pullback) = frozen(X1, X2), frozen.value_and_pullback(X1, X2)
        assert made  # such products
        made.clear()
        few = [[frozen(a, b) for b in X2.split(12, dim=-2)] for a in X1.split(12)]
        assert not made
        expected = torch.cat([torch.cat(row, dim=-1) for row in few], dim=-2)
    assert_close(K, expected, rtol=1e-12, atol=1e-13)
    # Equal points have equal distances, however they are found.
    own = K[..., torch.arange(20), torch.arange(20)]
    assert torch.equal(own, frozen.diagonal(X1[:20]).expand(own.shape))
    if name == "matern12":  # near its cusps the closed form has few digits, in any dimension
        return
    X = X2.expand(*frozen.batch_shape, 180, DIM).clone().requires_grad_()
    W = spread(-1.0, 2.0, 150, 180)
    # Through autograd, by differences.
    (gradient,) = torch.autograd.grad((W * frozen(X1, X)).sum(), X)
    assert_close(pullback(W), gradient, **TOL)


def test_distances_keep_their_digits():
    for X1, X2 in (
        (points(150, 1), points(180, 2)),  # some pairs by differences
        (points(64, 1)[:1].repeat(64, 1) + 1e-6 * points(64, 3), points(400, 1)),
        (points(400, 1) - 29.5, 1e3 * points(64, 2)),
    ):
        assert _by_products(X1, X2)
        squares = (X1.unsqueeze(1) - X2).square().sum(dim=-1)
        assert_close(_squares_by_products(X1, X2), squares, rtol=1e-12, atol=0)


@pytest.mark.parametrize("most", [2**27, 1000])
def test_differences_in_chunks_are_the_distances(most, monkeypatch):
    monkeypatch.setattr(distances, "_MOST_DIFFERENCES", most)
    X1, X2 = points(20, 1), points(30, 2, (2,)).requires_grad_()
    squares = _squares_by_differences(X1, X2)
    exact = torch.cdist(X1, X2, compute_mode="donot_use_mm_for_euclid_dist").square()
    assert_close(squares, exact, rtol=1e-12, atol=0)
    (gradient,) = torch.autograd.grad(squares.sum(), X2)
    assert_close(gradient, 2 * (20 * X2 - X1.sum(dim=0)).detach(), rtol=1e-9, atol=1e-9)
