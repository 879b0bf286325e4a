"""The smoothed Matern kernel against the sum that it is."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.kernel_functions import CombinedKernel, StationaryKernel, stationary
from botorch_ext.kernel_functions.smoothed_matern import SmoothedMatern
from botorch_ext.kernel_functions.stationary import weighted_squares
from tests.helpers import drawn, tolerance


@pytest.mark.parametrize("batched", [False, True])
def test_values_and_gradients_are_those_of_the_sum(batched, device):
    lengthscale = drawn(3, 1, 2, low=0.2, high=1.2).to(device)
    share = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64, device=device)
    parts = [
        StationaryKernel(math.inf, lengthscale, share, None),
        StationaryKernel(2.5, lengthscale, 1 - share, None),
    ]
    kernel, plain = SmoothedMatern(lengthscale, share), CombinedKernel(parts, False, None)
    X1, X2 = drawn(5, 2).to(device), drawn(*([3] if batched else []), 4, 2, seed=1).to(device)
    if not batched:
        X2[0] = X1[0]
    (K, pull), (expected, expected_pull) = (
        each.value_and_pullback(X1, X2) for each in (kernel, plain)
    )
    W = drawn(3, 5, 4, seed=2, low=-1.0).to(device)
    for got in (K, kernel(X1, X2)):
        assert_close(got, expected, **tolerance(K.dtype))
    assert_close(pull(W), expected_pull(W), **tolerance(K.dtype))
    assert_close(kernel.diagonal(X1), torch.ones_like(X1[:, 0]))


def test_distances_of_many_points_in_many_columns_are_those_of_few(monkeypatch):
    X1, rate = drawn(60, 8), drawn(3, 1, 8, seed=1, low=1.0, high=2.0)
    X2 = torch.cat([X1[:20] + 1e-7, drawn(30, 8, seed=2)])
    expected = weighted_squares(X1, X2, rate, -1)
    monkeypatch.setattr(stationary, "_MOST_DIFFERENCES", 100)
    squares = weighted_squares(X1, X2, rate, -1)
    assert squares.max() <= 0
    assert_close(squares, expected, rtol=1e-13, atol=1e-13)
