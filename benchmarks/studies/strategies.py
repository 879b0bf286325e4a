"""Strategies of the studies that are measured here."""

from __future__ import annotations

import torch

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from botorch_ext.strategies import Strategy

BOX = bx.Box([(-1.0, 1.0), (2.0, 5.0)])


def box() -> Strategy:
    """GP-BUCB on a rectangle."""
    return bx.algorithms.gp_bucb(BOX, matern(0.7), noise_variance=0.01, width=2.0)


def finite(num_ticks: int = 40) -> Strategy:
    """GP-BUCB on a grid."""
    axis = torch.linspace(-5, 5, num_ticks, dtype=torch.float64)
    domain = bx.FiniteSet(torch.cartesian_prod(axis, axis))
    return bx.algorithms.gp_bucb(domain, rbf(1.0), noise_variance=0.01, width=2.0)
