"""The smoothed Matern kernel against the sum that it is."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.kernel_functions import CombinedKernel, StationaryKernel, stationary
from botorch_ext.kernel_functions.smoothed_matern import SmoothedMatern
from botorch_ext.kernel_functions.stationary import weighted_squares
from tests.helpers import tolerance


def both(device, m=3, d=2):
    g = torch.Generator().manual_seed(0)
    lengthscale = (0.2 + torch.rand(m, 1, d, generator=g, dtype=torch.float64)).to(device)
    share = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64, device=device)
    parts = [
        StationaryKernel(math.inf, lengthscale, share, None),
        StationaryKernel(2.5, lengthscale, 1 - share, None),
    ]
    return SmoothedMatern(lengthscale, share), CombinedKernel(parts, False, None)


@pytest.mark.parametrize("batched", [False, True])
def test_values_and_gradients_are_those_of_the_sum(batched, device):
    kernel, plain = both(device)
    g = torch.Generator().manual_seed(1)
    X1 = torch.rand(5, 2, generator=g, dtype=torch.float64).to(device)
    X2 = torch.rand(*([3] if batched else []), 4, 2, generator=g, dtype=torch.float64).to(device)
    if not batched:
        X2[0] = X1[0]
    W = torch.randn(3, 5, 4, generator=g, dtype=torch.float64).to(device)
    (K, pull), (expected, expected_pull) = (
        each.value_and_pullback(X1, X2) for each in (kernel, plain)
    )
    assert_close(K, expected, **tolerance(K.dtype))
    assert_close(kernel(X1, X2), expected, **tolerance(K.dtype))
    assert_close(pull(W), expected_pull(W), **tolerance(K.dtype))
    assert_close(kernel.diagonal(X1), torch.ones_like(X1[:, 0]))


def test_distances_of_many_points_in_many_columns_are_those_of_few(monkeypatch):
    g = torch.Generator().manual_seed(0)
    X1 = torch.rand(60, 8, generator=g, dtype=torch.float64)
    X2 = torch.cat([X1[:20] + 1e-7, torch.rand(30, 8, generator=g, dtype=torch.float64)])
    rate = 1 + torch.rand(3, 1, 8, generator=g, dtype=torch.float64)
    expected = weighted_squares(X1, X2, rate, -1)
    monkeypatch.setattr(stationary, "_MOST_DIFFERENCES", 100)
    squares = weighted_squares(X1, X2, rate, -1)
    assert squares.max() <= 0
    assert_close(squares, expected, rtol=1e-13, atol=1e-13)
