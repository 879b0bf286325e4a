"""RKHS norms of radial functions for Matern kernels, from their Fourier transforms.

At lengthscale 1, |g|_k^2 = (2 pi)^-d int |g^(w)|^2 / k^(w) dw with g^(w) = int g(x) e^(-i w x) dx.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from gpytorch.kernels import Kernel
from scipy.special import hyp2f1, j0, jv, rgamma, roots_jacobi

from botorch_ext.checks import whole_number
from botorch_ext.kernels.frozen.freezing import freeze, require_unbatched
from botorch_ext.kernels.frozen.stationary import StationaryKernel
from botorch_ext.kernels.smoothness import holder_constants

# With more columns, rounding errors exceed the transform of the bump where it matters.
_MOST_BUMP_COLUMNS = 4
# With a larger growth, the coefficients of the series alternate and are too large for float64.
_MOST_GROWTH = 20
# For a growth that is not even: the number of Gaussians that are summed one by one, the number of
# nodes for all further ones, and the frequency above which the transform is a power.
_NUM_GAUSSIANS, _NUM_TAIL_NODES, _LAST_FREQUENCY = 4000, 200, 4000.0


class RadialKernel(NamedTuple):
    """The parameters of the kernel variance * profile(|(x - z) / lengthscales|), RBF or Matern.

    Args:
        nu: The smoothness of the Matern kernel; infinite for RBF.
        lengthscales: One for each column; infinite for columns that the kernel does not see.
        variance: k(x, x).
    """

    nu: float
    lengthscales: tuple[float, ...]
    variance: float

    @property
    def dim(self) -> int:
        """The number of columns that the kernel sees."""
        return sum(math.isfinite(lengthscale) for lengthscale in self.lengthscales)


def radial_kernel(kernel: Kernel, dim: int) -> RadialKernel:
    """The parameters of an RBF or Matern kernel, or of a multiple of one.

    Raises:
        ValueError: If it is another kernel, has batch dimensions, or is not on ``dim`` columns.
    """
    require_unbatched(kernel)
    function = freeze(kernel, torch.float64, torch.device("cpu"))
    if not isinstance(function, StationaryKernel):
        raise ValueError(
            "kernel must be RBF or Matern, or a multiple of one, since norms in the space of other "
            f"kernels are not computed, got {type(kernel).__name__}"
        )
    constants = holder_constants(kernel, dim)
    return RadialKernel(function.nu, constants.lengthscales, constants.variance)


def spectral_density(nu: float, frequency: np.ndarray, dim: int) -> np.ndarray:
    """The spectral density k^(w) of a Matern kernel with lengthscale 1 and k(0) = 1.

    2^d pi^(d/2) Gamma(nu + d/2) (2 nu)^nu / Gamma(nu) (2 nu + |w|^2)^-(nu + d/2).

    Args:
        nu: The smoothness, positive and finite.
        frequency: |w|, in radians per lengthscale, of any shape.
        dim: d, the number of columns that the kernel sees.

    Returns:
        The densities, in the same shape.
    """
    power = nu + dim / 2
    constant = 2**dim * math.pi ** (dim / 2) * (2 * nu) ** nu
    constant *= math.gamma(power) / math.gamma(nu)
    return constant * (2 * nu + frequency**2) ** -power


def radial_weights(dim: int, radius: np.ndarray) -> np.ndarray:
    """The areas of spheres in R^dim, the weights in int g(|x|) dx = int g(r) area(r) dr.

    Returns:
        The areas, in the same shape.
    """
    return 2 * math.pi ** (dim / 2) / math.gamma(dim / 2) * radius ** (dim - 1)


@cache
def bump_norm(nu: float, dim: int) -> float:
    """M_nu, the norm of a bump in the space of a Matern kernel with lengthscale 1 and k(0) = 1.

    The bump is exp(-|x|^2 / (1 - |x|^2)) on |x| < 1, that of the lower bounds of Shekhar and Javidi
    2022, section 3; the paper prints exp(1 - ...) and means height 1. A bump of width w <= 1 and
    height 1 has a norm of at most w^-nu M_nu, with |x| and w in lengthscales. The relative error is
    1e-6 for nu up to 5/2.

    Args:
        nu: The smoothness of the kernel.
        dim: d, the number of columns that the kernel sees.

    Raises:
        ValueError: If the kernel is RBF, in whose space no function vanishes on an open set, or
            there are more than four columns.
    """
    if nu == math.inf:
        raise ValueError(
            "nu must be finite, since the space of the RBF kernel has no bump that vanishes "
            f"outside a ball, got {nu}"
        )
    if not nu > 0:
        raise ValueError(f"nu must be positive, got {nu}")
    dim = whole_number(dim, "dim", least=1)
    if dim > _MOST_BUMP_COLUMNS:
        raise ValueError(
            f"dim must be at most {_MOST_BUMP_COLUMNS}, since the norm is not accurate beyond, got "
            f"{dim}"
        )
    # The transform falls like exp(-sqrt(w)); at the end the integrand is e^-40 of its maximum.
    end = (2 * (2 * nu + 2 * dim - 1) + 25) ** 2
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(0.0, end, math.ceil(end / 8) + 1)  # the integrand oscillates with period pi
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


@cache
def growth_norm(nu: float, exponent: float, dim: int, scale: float = 1.0) -> float:
    """The norm of a function of growth b, 1 - (1 - exp(-|u|^2))^(b/2) with u = x / scale.

    It is the norm in the space of a Matern or RBF kernel with lengthscale 1 and k(0) = 1, with a
    relative error of 1e-6. The binomial series writes the function as a sum of Gaussians, which is
    finite for even b. For other b the transform falls like |w|^(-b - d), as that of |u|^b does, and
    the norm is finite for b > nu.

    Args:
        nu: The smoothness of the kernel; infinite for RBF.
        exponent: b, positive and at most 20.
        dim: d, the number of columns that the kernel sees.
        scale: The scale, in lengthscales.

    Raises:
        ValueError: If the norm is infinite (b <= nu and b not even; RBF and b not even or
            scale^2 <= b/2), or an argument is out of range.
    """
    dim = whole_number(dim, "dim", least=1)
    if not 0 < exponent <= _MOST_GROWTH:
        raise ValueError(f"exponent must be in (0, {_MOST_GROWTH}], got {exponent}")
    if not 0 < scale < math.inf:
        raise ValueError(f"scale must be positive and finite, got {scale}")
    even = exponent / 2 == round(exponent / 2)
    if not even and exponent <= nu:
        allowed = "even" if nu == math.inf else f"above nu = {nu} or even"
        raise ValueError(
            f"exponent must be {allowed}: the norm of a function that grows otherwise is infinite "
            f"in the space of this kernel, got {exponent}"
        )
    if nu == math.inf:
        return _gaussian_growth_norm(exponent, dim, scale)
    precisions, weights = _gaussians(exponent / 2, dim)
    # |u^|^2 / k^ times the area of spheres, in log frequency, up to where u^ is a power.
    end = math.log(_LAST_FREQUENCY)
    nodes, node_weights = np.polynomial.legendre.leggauss(16)
    edges = np.arange(end, -40 / dim - 1, -1.0)[::-1]
    frequency = np.exp((edges[:-1, None] + (1 + nodes) / 2).ravel())
    frequency = np.append(frequency, _LAST_FREQUENCY)
    transform = np.exp(np.outer(frequency**2 / -4, 1 / precisions)) @ (
        weights * (math.pi / precisions) ** (dim / 2)
    )
    power = transform**2 / spectral_density(nu, frequency / scale, dim)
    integrand = frequency * power * radial_weights(dim, frequency)
    total = float(np.tile(node_weights / 2, len(edges) - 1) @ integrand[:-1])
    if not even:
        # int_W^inf v^(-2 b - d - 1) (2 nu + v^2 / scale^2)^(nu + d/2) dv / its value at W.
        excess, order = exponent - nu, nu + dim / 2
        ratio = 2 * nu * (scale / _LAST_FREQUENCY) ** 2
        series = hyp2f1(-order, excess, excess + 1, -ratio) / (1 + ratio) ** order
        total += float(integrand[-1] * series) / (2 * excess)
    return math.sqrt((scale / (2 * math.pi)) ** dim * total)


def _gaussian_growth_norm(exponent: float, dim: int, scale: float) -> float:
    if scale**2 <= exponent / 2:
        raise ValueError(
            "scale must be above sqrt(exponent / 2) lengthscales for the norm in the space of the "
            f"RBF kernel to be finite, got {scale} with exponent {exponent}"
        )
    precisions, weights = _gaussians(exponent / 2, dim)
    products = np.outer(precisions, precisions)
    # The inner product of exp(-i |u|^2) and exp(-j |u|^2), by completing the square.
    width = scale**2 * (1 / precisions[:, None] + 1 / precisions) / 2 - 1
    inner = (scale**2 / (2 * np.sqrt(products * width))) ** dim
    return math.sqrt(math.fsum((np.outer(weights, weights) * inner).ravel()))


def _gaussians(half: float, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Precisions p and weights a with 1 - (1 - exp(-r^2))^half = sum of a exp(-p r^2).

    a_j = (-1)^(j + 1) binom(half, j) at p = j. Beyond the last j the sum becomes an integral, which
    Gauss-Jacobi quadrature in 1/p computes, with nodes for transforms in ``dim`` columns.
    """
    last = round(half) if half == round(half) else _NUM_GAUSSIANS
    j = np.arange(1.0, last + 1)
    coefficients = half * np.cumprod(np.append(1.0, (j[:-1] - half) / (j[:-1] + 1)))
    if half == last:
        return j, coefficients
    # a_j p^(-d/2) dp is v^edge times a smooth function of v = (last + 1/2) / p in (0, 1].
    edge = half + dim / 2 - 1
    nodes, weights = roots_jacobi(_NUM_TAIL_NODES, 0, edge)
    v = (1 + nodes) / 2
    p = (last + 0.5) / v
    # a_j = -Gamma(j - half) / (Gamma(-half) Gamma(j + 1)), to order 1/j^2.
    tail = -rgamma(-half) * (p - half / 2) ** (-half - 1)
    tail *= (last + 0.5) / v**2 * weights / (2 * v) ** edge / 2
    return np.append(j, p), np.append(coefficients, tail)
