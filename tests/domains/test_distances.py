"""Distances by matrix products and in chunks, against differences."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.domains import distances
from botorch_ext.domains.distances import (
    _by_products,
    _squares_by_differences,
    _squares_by_products,
)

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


@pytest.mark.parametrize("num", [30, 400])
def test_distances_and_their_squares_are_those_of_differences(num, device):
    X1, X2 = points(num, 1).to(device), points(num, 2).to(device)
    X2[:10] = X1[:10]
    squares = (X1.unsqueeze(1) - X2).square().sum(dim=-1)
    assert_close(distances.squared_distances(X1, X2), squares, rtol=1e-9, atol=0)
    assert_close(distances.distances(X1, X2), squares.sqrt(), rtol=1e-9, atol=1e-150)
