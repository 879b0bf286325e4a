"""Functions of known norm that fall from their maximum as a given power of the distance."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Box, host
from botorch_ext.kernels.rkhs_norms import growth_norm, radial_kernel
from botorch_ext.problems.base import KnownFunction, pointwise


class GrowthFunction(KnownFunction):
    """A function of known RKHS norm that falls off around its maximum like a power of the distance.

    f(x) = height (1 - (1 - exp(-|u|^2))^(b/2)) with u = (x - center) / (scale lengthscales).

    f* - f = height (1 - exp(-|u|^2))^(b/2), which is height |u|^b near the maximum. This is the
    growth condition under which the cost of an instance is known (Shekhar and Javidi 2022,
    assumption 3). The height is chosen so that f has the given norm, by the Fourier transform of f
    (relative error 1e-6). That is the norm on R^d; the norm on the box is at most as large.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import MaternKernel
        >>> f = bx.problems.GrowthFunction(
        ...     MaternKernel(nu=2.5), bx.Box([(0, 1), (0, 2)]), exponent=4, norm=2.0
        ... )
        >>> round(f.optimal_value, 4) == round(float(f(f.optimizer)), 4)
        True

    Args:
        kernel: An RBF or Matern kernel, or a multiple of one; a copy is kept. The RKHS of a Matern
            kernel contains f if b > nu or b is even; that of RBF if b is even and scale^2 > b / 2.
        domain: The domain on which the function is maximised; it gives dtype and device.
        exponent: b, in (0, 20].
        norm: The norm |f|_k, positive.
        center: The maximiser, ``d``; None for a point that shares no coordinate with the corners or
            centres of dyadic cells.
        scale: The width of the peak, in lengthscales.
        noise_std: The standard deviation of the observation noise, in units of f.

    Raises:
        ValueError: If the RKHS of the kernel contains no such function, it is another kernel, the
            center lies outside the box, or a number is out of range.
    """

    def __init__(
        self,
        kernel: Kernel,
        domain: Box,
        exponent: float,
        norm: float,
        *,
        center: Tensor | Sequence[float] | None = None,
        scale: float = 1.0,
        noise_std: float = 0.0,
    ) -> None:
        if not isinstance(domain, Box):
            raise ValueError(f"domain must be a Box, got {domain!r}")
        super().__init__(domain, noise_std)
        known = radial_kernel(kernel, domain.dim)
        self.kernel: Kernel = copy.deepcopy(kernel).to(domain.like).requires_grad_(False)
        self.exponent: float = one_number(exponent, "exponent")
        self.norm: float = one_number(norm, "norm")
        self.scale: float = one_number(scale, "scale")
        if not 0.0 < self.norm < math.inf:
            raise ValueError(f"norm must be positive and finite, got {self.norm}")
        of_height_one = growth_norm(known.nu, self.exponent, known.dim, self.scale)
        self.height: float = self.norm * math.sqrt(known.variance) / of_height_one
        self.center: Tensor = _default_center(domain) if center is None else _one(center, domain)
        lengthscales = host.tensor(known.lengthscales, dtype=torch.float64)
        self._rates = (1 / (self.scale * lengthscales)).to(domain.like)

    def gap(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The gap f* - f, accurate also where it is far smaller than f.

        Args:
            X: Points, ``n x d``, or one point, ``d``.

        Returns:
            The gaps, ``n``, or a 0-dim tensor for one point; differentiable in ``X``.

        Raises:
            ValueError: If ``X`` has the wrong shape, dtype or device, or is not finite.
        """
        return pointwise(self._gap, X, self.domain)

    def _gap(self, X: Tensor) -> Tensor:
        squared = ((X - self.center) * self._rates).square().sum(dim=-1)
        q = -torch.expm1(-squared)
        # At the maximum the slope can be infinite; 0 is the symmetric choice there.
        top = q == 0
        power = torch.where(top, 1, q) ** (self.exponent / 2)
        return self.height * torch.where(top, 0, power)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self.height - self._gap(X)

    @property
    def optimal_value(self) -> float:
        """The exact maximum, which is the height."""
        return self.height

    @property
    def optimizer(self) -> Tensor:
        """The exact maximiser, which is the center, ``d``."""
        return self.center

    def __repr__(self) -> str:
        return (
            f"GrowthFunction(kernel={type(self.kernel).__name__}, exponent={self.exponent:g}, "
            f"norm={self.norm:g}, height={self.height:g}, scale={self.scale:g}, "
            f"domain={self.domain!r}, noise_std={self.noise_std:g})"
        )


def _default_center(box: Box) -> Tensor:
    """The point at the shares 1 / z, ..., 1 / z^d of the sides, with z^(d + 1) = z + 1; for d = 1
    the golden section."""
    root = 2.0
    for _ in range(60):
        root = (1 + root) ** (1 / (box.dim + 1))
    unit = host.tensor([root ** -(j + 1) for j in range(box.dim)], dtype=torch.float64)
    return box.from_unit(unit.to(box.like))


def _one(center: Tensor | Sequence[float], box: Box) -> Tensor:
    points = box.require_contains(center, "center")
    if len(points) != 1:
        raise ValueError(f"center must be one point, got {len(points)}")
    return points[0].detach().clone()
