"""Quantiles of mixtures, against the roots of the cumulative distribution function in plain floats
and against sorted samples."""

import math

import pytest
import torch
from scipy.optimize import brentq
from torch.testing import assert_close

from botorch_ext.predictions.quantiles import mixture_quantiles

LEVELS = (0.001, 0.05, 0.5, 0.77, 0.95)


def _cdf(x, weights, means, stds):
    return sum(
        w * 0.5 * math.erfc((m - x) / s / math.sqrt(2))
        for w, m, s in zip(weights, means, stds, strict=True)
    )


def _mixtures(m, n, seed=3):
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(m, generator=generator, dtype=torch.float64)
    means = 20 + 3 * torch.randn(m, n, generator=generator, dtype=torch.float64)
    stds = torch.rand(m, n, generator=generator, dtype=torch.float64).add(0.02)
    return weights / weights.sum(), means, stds


@pytest.mark.parametrize("m", [1, 2, 7])
def test_they_are_the_roots_of_the_distribution_function(m):
    weights, means, stds = _mixtures(m, 5)
    found = mixture_quantiles(weights, means, stds, LEVELS)
    for i, level in enumerate(LEVELS):
        for j in range(5):
            own = weights.tolist(), means[:, j].tolist(), stds[:, j].tolist()
            root = brentq(lambda x: _cdf(x, *own) - level, -100.0, 100.0, xtol=1e-13)  # noqa: B023
            assert_close(float(found[i, j]), root, rtol=1e-10, atol=1e-9)


def test_they_are_those_of_a_sorted_sample():
    """Within five standard errors of the share of a large sample that is below."""
    weights, means, stds = _mixtures(4, 1)
    generator = torch.Generator().manual_seed(0)
    part = torch.multinomial(weights, 400_000, replacement=True, generator=generator)
    normals = torch.randn(400_000, generator=generator, dtype=torch.float64)
    sample = means[part, 0] + stds[part, 0] * normals
    for level, quantile in zip(
        LEVELS, mixture_quantiles(weights, means, stds, LEVELS), strict=True
    ):
        share = float((sample <= quantile).double().mean())
        assert abs(share - level) < 5 * math.sqrt(level * (1 - level) / len(sample))


def test_parts_without_a_deviation_are_points():
    weights = torch.tensor([0.5, 0.5], dtype=torch.float64)
    means = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    stds = torch.zeros(2, 1, dtype=torch.float64)
    found = mixture_quantiles(weights, means, stds, (0.2, 0.8))
    assert_close(found.flatten(), means.flatten(), rtol=0, atol=1e-9)
