"""Functions whose norm in a reproducing kernel Hilbert space is known exactly."""

from __future__ import annotations

import copy

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import amount, whole_number
from botorch_ext.domains import Domain, as_points, host
from botorch_ext.domains.points import PointsLike, checked_tensor
from botorch_ext.domains.reading import as_domain
from botorch_ext.kernels.frozen import KernelFunction, freeze, require_unbatched
from botorch_ext.problems.base import KnownFunction


class RKHSFunction(KnownFunction):
    """A function whose RKHS norm is known: a finite kernel expansion.

    f(x) = sum_i a_i k(c_i, x), with |f|_k = sqrt(a' K a).

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> f = bx.problems.RKHSFunction(RBFKernel(), [[0.2], [0.8]], [1.0, 2.0], bx.Box([(0, 1)]))
        >>> round(f.norm, 3), round(f.optimal_value, 3)
        (2.784, 2.766)

    Args:
        kernel: Any GPyTorch kernel without batch dimensions; a frozen copy is kept.
        centers: The c_i, ``m x d``, anywhere in R^d.
        weights: The a_i, ``m``.
        domain: The domain on which the function is maximised; it gives dtype and device.
        noise_std: The standard deviation of the observation noise, in units of f.

    Raises:
        ValueError: If the kernel is batched, or centers, weights or noise_std do not fit.
    """

    def __init__(
        self,
        kernel: Kernel,
        centers: PointsLike,
        weights: PointsLike,
        domain: Domain,
        noise_std: float = 0.0,
    ) -> None:
        domain = as_domain(domain)
        like = domain.like
        super().__init__(domain, noise_std)
        self._kernel_function = _unbatched(kernel, like)
        self.kernel: Kernel = copy.deepcopy(kernel).to(like).requires_grad_(False)
        self.centers: Tensor = as_points(centers, domain.dim, like, "centers").detach().clone()
        weights = checked_tensor(weights, like.dtype, like.device, "weights").detach().clone()
        if weights.shape != (len(self.centers),) or not bool(torch.isfinite(weights).all()):
            raise ValueError(
                f"weights must be {len(self.centers)} finite numbers, one for each center, "
                f"got shape {tuple(weights.shape)}: {weights.tolist()}"
            )
        self.weights: Tensor = weights
        self.norm: float = _norm(self._kernel_function, self.centers, weights)

    @classmethod
    def random(
        cls,
        domain: Domain,
        kernel: Kernel,
        norm: float,
        num_centers: int = 50,
        noise_std: float = 0.0,
        seed: int = 0,
    ) -> RKHSFunction:
        """Draw a random function of exactly the given norm.

        Args:
            domain: The domain; the centers are Sobol points of a box, or random points of a finite
                set.
            kernel: Any GPyTorch kernel without batch dimensions.
            norm: The norm |f|_k, positive.
            num_centers: The number of centers.
            noise_std: The standard deviation of the observation noise, in units of f.
            seed: The same seed gives the same function.

        Returns:
            The function; its weights are normal draws, scaled to the norm.

        Raises:
            ValueError: If the norm is not positive and finite, or there is no center.
        """
        domain = as_domain(domain)
        norm = amount(norm, "norm", "positive and finite")
        num_centers = whole_number(num_centers, "num_centers", least=1)
        generator = torch.Generator().manual_seed(whole_number(seed, "seed"))
        center_seed = int(host.randint(2**31, (), generator=generator))
        centers = domain.sample(num_centers, center_seed)
        weights = host.randn(num_centers, dtype=torch.float64, generator=generator).to(centers)
        present = _norm(_unbatched(kernel, centers), centers, weights)
        if present == 0.0:
            raise ValueError("kernel must not vanish on the domain, got 0 at every center")
        return cls(kernel, centers, weights * (norm / present), domain, noise_std)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self._kernel_function(X, self.centers) @ self.weights

    def _near_maxima(self) -> Tensor | None:
        # With a rough kernel the maximum is a cusp, and cusps are at centers.
        return self.centers[self.domain.contains(self.centers)]

    def __repr__(self) -> str:
        return (
            f"RKHSFunction(kernel={type(self.kernel).__name__}, num_centers={len(self.centers)}, "
            f"norm={self.norm:g}, domain={self.domain!r}, noise_std={self.noise_std:g})"
        )


def _unbatched(kernel: Kernel, like: Tensor) -> KernelFunction:
    require_unbatched(kernel)
    return freeze(kernel, like.dtype, like.device)


def _norm(kernel: KernelFunction, centers: Tensor, weights: Tensor) -> float:
    # Rounding can make the quadratic form of nearly dependent centers slightly negative.
    return float((weights @ kernel(centers, centers) @ weights).clamp_min(0).sqrt())
