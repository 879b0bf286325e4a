"""Norms of radial functions in the RKHS of a Matern kernel, from their Fourier transforms.

At lengthscale 1, |g|_k^2 = (2 pi)^-d int |g^(w)|^2 / k^(w) dw with g^(w) = int g(x) e^(-i w x) dx.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from scipy.special import j0, jv

from botorch_ext.checks import whole_number
from botorch_ext.kernel_functions import StationaryKernel, freeze, require_unbatched
from botorch_ext.smoothness import holder_constants

# Beyond this many columns rounding swamps the transform of the bump where it matters.
_MOST_BUMP_COLUMNS = 4


class RadialKernel(NamedTuple):
    """variance * profile(|(x - z) / lengthscales|), the profile RBF or Matern.

    Args:
        nu: The smoothness of the Matern kernel; infinite for RBF.
        lengthscales: One per column, infinite where the kernel does not look.
        variance: k(x, x).
    """

    nu: float
    lengthscales: tuple[float, ...]
    variance: float

    @property
    def dim(self) -> int:
        """How many columns the kernel looks at."""
        return sum(math.isfinite(lengthscale) for lengthscale in self.lengthscales)


def radial_kernel(kernel: Kernel, dim: int) -> RadialKernel:
    """The parts of an RBF or Matern kernel, or of a multiple of one.

    Args:
        kernel: A GPyTorch kernel.
        dim: d, how many columns its inputs have.

    Raises:
        ValueError: Another kernel, one with batch dimensions, or not on ``dim`` columns.
    """
    require_unbatched(kernel)
    function = freeze(kernel, torch.float64, torch.device("cpu"))
    if not isinstance(function, StationaryKernel):
        raise ValueError(
            "kernel must be RBF or Matern, or a multiple of one, for norms in its space to be "
            f"computed, got {type(kernel).__name__}"
        )
    constants = holder_constants(kernel, dim)
    return RadialKernel(function.nu, constants.lengthscales, constants.variance)


def spectral_density(nu: float, frequency: np.ndarray, dim: int) -> np.ndarray:
    """k^(w) of a Matern kernel with lengthscale 1 and k(0) = 1.

    2^d pi^(d/2) Gamma(nu + d/2) (2 nu)^nu / Gamma(nu) (2 nu + |w|^2)^-(nu + d/2).

    Args:
        nu: The smoothness, positive and finite.
        frequency: |w|, in radians per lengthscale.
        dim: d, how many columns the kernel looks at.

    Returns:
        As many densities.
    """
    power = nu + dim / 2
    constant = 2**dim * math.pi ** (dim / 2) * (2 * nu) ** nu
    constant *= math.gamma(power) / math.gamma(nu)
    return constant * (2 * nu + frequency**2) ** -power


def radial_weights(dim: int, radius: np.ndarray) -> np.ndarray:
    """The area of the spheres of these radii in R^dim: int g(|x|) dx = int g(r) area(r) dr."""
    return 2 * math.pi ** (dim / 2) / math.gamma(dim / 2) * radius ** (dim - 1)


@cache
def bump_norm(nu: float, dim: int) -> float:
    """M_nu, the norm of exp(-|x|^2 / (1 - |x|^2)) on |x| < 1 in the space of a Matern kernel with
    lengthscale 1 and k(0) = 1, to a relative 1e-6 for nu up to 5/2.

    The bump of the lower bounds (I, section 3, which prints exp(1 - ...) for it and means height
    1). At width w <= 1 and height 1 its norm is at most w^-nu M_nu; |x| and w in lengthscales.

    Args:
        nu: The smoothness of the kernel.
        dim: d, how many columns the kernel looks at.

    Raises:
        ValueError: The RBF kernel (in whose space no function vanishes on an open set), or more
            than four columns.
    """
    if nu == math.inf:
        raise ValueError(
            "nu must be finite: a bump that vanishes outside a ball is not in the space of the RBF "
            f"kernel, got {nu}"
        )
    if not nu > 0:
        raise ValueError(f"nu must be positive, got {nu}")
    dim = whole_number(dim, "dim", least=1)
    if dim > _MOST_BUMP_COLUMNS:
        raise ValueError(
            f"dim must be at most {_MOST_BUMP_COLUMNS}, beyond which the norm is not computed "
            f"accurately, got {dim}"
        )
    # The transform falls like exp(-sqrt(w)): here the integrand is e^-40 of its largest value.
    end = (2 * (2 * nu + 2 * dim - 1) + 25) ** 2
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0.0, end, math.ceil(end / 8) + 1)  # the integrand turns every pi
    half = np.diff(edges)[:, None] / 2
    frequency = (edges[:-1, None] + half * (1 + nodes)).ravel()
    power = _bump_transform(frequency, dim) ** 2 / spectral_density(nu, frequency, dim)
    integrand = power * radial_weights(dim, frequency)
    return math.sqrt((2 * math.pi) ** -dim * float((half * weights).ravel() @ integrand))


def _bump_transform(frequency: np.ndarray, dim: int) -> np.ndarray:
    """(2 pi)^(d/2) int_0^1 g(r) (w r)^(1 - d/2) J_(d/2 - 1)(w r) r^(d - 1) dr."""
    nodes, weights = np.polynomial.legendre.leggauss(800)  # resolves frequencies to 3000
    r, weights = (1 + nodes) / 2, weights / 2
    phase = np.outer(frequency, r)
    order = dim / 2 - 1
    if dim == 1:
        waves = math.sqrt(2 / math.pi) * np.cos(phase)
    else:
        waves = j0(phase) if dim == 2 else jv(order, phase) * phase**-order
    return (2 * math.pi) ** (dim / 2) * (
        waves @ (np.exp(-(r**2) / (1 - r**2)) * weights * r ** (dim - 1))
    )
