"""Instances that the property tests are played on: random functions of exactly known norm."""

from functools import cache

import torch
from gpytorch.kernels import MaternKernel, RBFKernel
from scipy.stats import binom

from botorch_ext import FiniteSet
from botorch_ext.problems import RKHSFunction

RUNS, DELTA, NORM = 100, 0.1, 1.5
# With a true failure probability of delta more runs than these fail with probability at most 1e-4;
# with one of 0.35 they do with probability 0.99.
MOST_VIOLATIONS = int(binom.isf(1e-4, RUNS, DELTA))


def make_kernel(kind, lengthscale):
    kernel = (RBFKernel() if kind == "rbf" else MaternKernel(nu=1.5)).double()
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


@cache
def make_problem(kind, lengthscale, num_points, noise_std, seed):
    g = torch.Generator().manual_seed(1000 + seed)
    x = 2.0 + 3.0 * torch.rand(num_points, 1, generator=g, dtype=torch.float64)
    return RKHSFunction.random(
        FiniteSet(x),
        make_kernel(kind, lengthscale),
        norm=NORM,
        num_centers=12,
        noise_std=noise_std,
        seed=seed,
    )
