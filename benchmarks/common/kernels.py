"""Kernels in float64."""

from __future__ import annotations

from gpytorch.kernels import Kernel, MaternKernel, RBFKernel


def rbf(lengthscale: float) -> Kernel:
    """An RBF kernel in float64."""
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def matern(lengthscale: float) -> Kernel:
    """A Matern kernel with nu = 5/2 in float64."""
    kernel = MaternKernel(nu=2.5).double()
    kernel.lengthscale = lengthscale
    return kernel
