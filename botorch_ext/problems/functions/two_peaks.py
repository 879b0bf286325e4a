"""Two peaks, a high narrow one and a lower wide one, for adversarially robust optimisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import torch
from gpytorch.kernels import RBFKernel
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.problems.base import KnownFunction, global_maximum
from botorch_ext.problems.functions.unknown_hyperparameters import common_arguments
from botorch_ext.search.box_balls import Norm
from botorch_ext.search.perturbations import Perturbations


class TwoPeaks(KnownFunction):
    """A robust problem: a high narrow peak at a and a lower wide peak at b.

    f(x) = 1.2 exp(-|x - a|^2 / (2 0.05^2)) + exp(-|x - b|^2 / (2 0.2^2)), with a = 0.2 and b = 0.65
    in every coordinate. An adversary may move a point by up to a radius, within the domain, before
    it is evaluated. Small moves lose the maximum, at a. The *stable* optimum is the point whose
    worst neighbour is best. On a box it is b, around which only the wide peak matters, to 1e-9.

    The function is our own, with the structure of Bogunovic et al. 2018, figure 1. The candidates
    are RBF kernels of lengthscale 0.05 (true), 0.1, 0.2 and 0.4; the narrow peak lies in the RKHS
    of lengthscales below 0.05 sqrt(2).

    Args:
        domain: The domain; None for 500 equally spaced points of [0, 1]. A box must contain all
            points within twice the radius of b.
        noise_std: The standard deviation of the observation noise, in units of f.
        radius: The distance by which a point may be moved, 0.05 to 0.12.
        norm: The norm of the moves, "l2" or "linf".

    Raises:
        ValueError: If the radius or the norm is not possible, or the box is too small.
    """

    heights: tuple[float, float] = (1.2, 1.0)
    centers: tuple[float, float] = (0.2, 0.65)
    stds: tuple[float, float] = (0.05, 0.2)
    lengthscales: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
    names = tuple(f"lengthscale {value:g}" for value in lengthscales)
    true_model = 0

    def __init__(
        self,
        domain: Domain | None = None,
        noise_std: float = 0.05,
        radius: float = 0.1,
        norm: Norm = "l2",
    ) -> None:
        if domain is None:
            domain = FiniteSet(host.linspace(0, 1, 500, dtype=torch.float64).unsqueeze(-1))
        super().__init__(domain, noise_std)
        if not 0.05 <= radius <= 0.12:
            raise ValueError(f"radius must be in [0.05, 0.12], got {radius}")
        if norm not in ("l2", "linf"):
            raise ValueError(f'norm must be "l2" or "linf", got {norm!r}')
        self.radius: float = float(radius)
        self.norm: Norm = norm
        if isinstance(domain, Box):
            around = torch.stack([self._peak(1) - 2 * radius, self._peak(1) + 2 * radius])
            if not bool(domain.contains(around).all()):
                raise ValueError(
                    f"domain must contain the points within {2 * radius:g} of {self.centers[1]} in "
                    f"every coordinate, got {domain!r}"
                )

    def _peak(self, i: int) -> Tensor:
        return self.domain.like.new_full((self.domain.dim,), self.centers[i])

    def _evaluate(self, X: Tensor) -> Tensor:
        values = X.new_zeros(X.shape[:-1])
        for i, (height, std) in enumerate(zip(self.heights, self.stds, strict=True)):
            squared = ((X - self._peak(i)) / std).square().sum(dim=-1)
            values = values + height * (-0.5 * squared).exp()
        return values

    def _near_maxima(self) -> Tensor | None:
        points = torch.stack([self._peak(0), self._peak(1)])
        return points[self.domain.contains(points)]

    def rkhs_norm(self, lengthscale: float) -> float:
        """The norm of f in the RKHS of an RBF kernel: exact on a box, an upper bound on a set.

        Gaussians of standard deviations s1 and s2 have the inner product (s1 s2 / (l m))^d
        k_m(c1, c2) there, with m^2 = s1^2 + s2^2 - l^2, by an integral over frequencies.

        Args:
            lengthscale: l, the lengthscale of the kernel.

        Returns:
            The norm; infinite for lengthscales from sqrt(2) times the standard deviation of the
            narrow peak on.
        """
        if lengthscale >= math.sqrt(2) * min(self.stds):
            return math.inf
        squared = 0.0
        for h1, c1, s1 in zip(self.heights, self.centers, self.stds, strict=True):
            for h2, c2, s2 in zip(self.heights, self.centers, self.stds, strict=True):
                m = math.sqrt(s1**2 + s2**2 - lengthscale**2)
                one = s1 * s2 / (lengthscale * m) * math.exp(-0.5 * ((c1 - c2) / m) ** 2)
                squared += h1 * h2 * one**self.domain.dim
        return math.sqrt(squared)

    # --- the worst case ---------------------------------------------------------------------------

    @property
    def stable_value(self) -> float:
        """The value of the stable optimum: the largest worst-case value of any point."""
        return self._stable[1]

    @property
    def stable_optimizer(self) -> Tensor:
        """A point that attains the `stable_value`, ``d``."""
        return self._stable[0]

    @cached_property
    def _stable(self) -> tuple[Tensor, float]:
        if isinstance(self.domain, FiniteSet):
            row = int(self._worst_of_set.argmax())
            return self.domain.points[row], float(self._worst_of_set[row])
        farthest = self.radius * math.sqrt(self.domain.dim if self.norm == "linf" else 1)
        value = self.heights[1] * math.exp(-0.5 * (farthest / self.stds[1]) ** 2)
        return self._peak(1), value

    def worst_value(self, center: Tensor) -> float:
        """The worst-case value of a point: the least value within the radius, in the domain.

        Args:
            center: The point, ``d``.

        Returns:
            The value: exact on a finite set, found by multi-start search on a box.

        Raises:
            ValueError: If the point lies outside the domain.
        """
        center = self.domain.require_contains(center, "center")[0]
        if isinstance(self.domain, FiniteSet):
            return float(self._worst_of_set[int(self.domain.index(center)[0])])
        cube = center.new_ones(self.domain.dim)

        def negated(U: Tensor) -> Tensor:
            return -self._evaluate(self._moved(center, U))

        return -global_maximum(negated, Box(torch.stack([-cube, cube])), 0, 256, 8)[1]

    def robust_regret(self, centers: Tensor | Sequence[Sequence[float]]) -> Tensor:
        """The robust regret of points: `stable_value` less their worst-case values.

        Args:
            centers: Points of the domain, ``n x d``.

        Returns:
            The regrets, ``n``.
        """
        rows = self.domain.require_contains(centers, "centers")
        worst = [self.worst_value(center) for center in rows]
        return self.stable_value - self.domain.like.new_tensor(worst)

    def _moved(self, center: Tensor, U: Tensor) -> Tensor:
        """Map points of the cube [-1, 1]^d to points of the box within the radius of a center."""
        if self.norm == "l2":
            # Each ray of the cube is shortened to a ray of the ball.
            longest = U.abs().amax(dim=-1, keepdim=True).clamp_min(1e-300)
            U = U * longest / (U.square().sum(dim=-1, keepdim=True).clamp_min(1e-300)).sqrt()
        # The nearest point of the box is no farther from the center.
        moved = center + self.radius * U
        bounds = self.domain.like
        return torch.minimum(torch.maximum(moved, bounds[0]), bounds[1])

    @cached_property
    def _worst_of_set(self) -> Tensor:
        if not isinstance(self.domain, FiniteSet):
            raise TypeError(f"domain must be a FiniteSet, got {type(self.domain).__name__}")
        balls = Perturbations(self.radius, self.norm).on(self.domain)
        return balls.worst_case(self._evaluate(self.domain.points))[0]

    def candidates(
        self, noise_variance: float | None = None, order: Sequence[int] | None = None
    ) -> CandidateModels:
        """The candidate models; arguments as for `HyperparameterProblem.candidates`."""
        positions, common = common_arguments(self, noise_variance, order)
        values = [self.lengthscales[i] for i in positions]
        return CandidateModels.lengthscales(RBFKernel(), values, **common)
