"""Instances that the property tests are played on: random functions of exactly known norm.

A test fails when more than `MOST_VIOLATIONS` runs go wrong. Where the true failure probability
is delta, that happens with probability at most 1e-4 (the false-alarm rate).
"""

from scipy.stats import binom

from botorch_ext import FiniteSet
from botorch_ext.problems import RKHSFunction
from tests.helpers import drawn

RUNS, DELTA, NORM = 100, 0.1, 1.5
# With a true failure probability of 0.35 more runs than these fail with probability 0.99.
MOST_VIOLATIONS = int(binom.isf(1e-4, RUNS, DELTA))


def problem_of(kernel, num_points, noise_std, seed):
    """A random function of norm `NORM` on random points of a line."""
    return RKHSFunction.random(
        FiniteSet(drawn(num_points, 1, seed=1000 + seed, low=2.0, high=5.0)),
        kernel,
        norm=NORM,
        num_centers=12,
        noise_std=noise_std,
        seed=seed,
    )
