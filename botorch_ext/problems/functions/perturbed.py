"""Misspecified functions, which leave the RKHS ball by a bounded amount: f* = f + m, |m| <= eps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.domains.points import PointsLike, as_points
from botorch_ext.problems.base import Problem, best_of, global_maximum, pointwise

Perturbation = Callable[[Tensor], Tensor]


class Perturbed:
    """A misspecified problem: a problem plus a bounded perturbation, f* = f + m.

    Source: Bogunovic and Krause 2021, section 2.

    Args:
        problem: The problem f, usually an `RKHSFunction`; kept as `rkhs_part`.
        perturbation: The perturbation m, from points, ``n x d``, to values, ``n``, in units of f.
        misspecification: eps, the bound on \\|m\\|, checked at every evaluation.

    Raises:
        ValueError: If the problem has no domain, eps is negative or infinite, or the perturbation
            exceeds it.
    """

    def __init__(
        self, problem: Problem, perturbation: Perturbation, misspecification: float
    ) -> None:
        domain = _domain_of(problem)
        self.rkhs_part: Problem = problem
        self.perturbation: Perturbation = perturbation
        self.misspecification: float = _require_misspecification(misspecification)
        self._bounded(domain.sample(1024, 0) if isinstance(domain, Box) else domain.points)

    @property
    def domain(self) -> Domain:
        """The domain of the unperturbed problem."""
        return self.rkhs_part.domain

    @property
    def noise_std(self) -> float:
        """The noise of the unperturbed problem."""
        return self.rkhs_part.noise_std

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values of f*.

        Args:
            X: Points, ``n x d``, or one point, ``d``.

        Returns:
            The values, ``n``, or a 0-dim tensor for one point; differentiable where f and m are.

        Raises:
            ValueError: If ``X`` does not fit the domain, or m exceeds the misspecification there.
        """
        return pointwise(self._evaluate, X, self.domain)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self.rkhs_part(X) + self._bounded(X)

    def _bounded(self, X: Tensor) -> Tensor:
        values = self.perturbation(X)
        if values.shape != X.shape[:1]:
            raise ValueError(
                f"perturbation must return {len(X)} values for {len(X)} points, "
                f"got shape {tuple(values.shape)}"
            )
        # Relative slack for rounding; NaN fails the comparison too.
        allowed = self.misspecification * (1 + 1e-6)
        if not bool((values.abs() <= allowed).all()):
            raise ValueError(
                f"perturbation must stay within misspecification={self.misspecification}, "
                f"got {float(values.abs().max())}"
            )
        return values

    @property
    def optimal_value(self) -> float | None:
        """The maximum of f*: exact on a finite set, found by multi-start search on a box; None if
        the maximum of the unperturbed problem is unknown."""
        return None if self._optimum is None else self._optimum[1]

    @property
    def optimizer(self) -> Tensor | None:
        """A point that attains the maximum of f*, ``d``; None if it is unknown."""
        return None if self._optimum is None else self._optimum[0]

    @cached_property
    def _optimum(self) -> tuple[Tensor, float] | None:
        if isinstance(self.domain, FiniteSet):
            return best_of(self._evaluate, self.domain.points)
        center = self.rkhs_part.optimizer
        if center is None:
            return None
        # m may have thousands of bumps. The highest bump of f + m lies where f is within 2 eps of
        # its maximum, so most points are spent around the maximiser of f.
        box = self.domain
        points = box.sample(4096, seed=1)
        nearby = [center + scale * (points - center) for scale in (0.3, 0.1, 0.03)]
        extra = torch.cat([center.unsqueeze(0), *nearby])
        return global_maximum(
            self._evaluate,
            box,
            seed=0,
            num_raw=8192,
            num_starts=1024,
            extra=torch.minimum(torch.maximum(extra, box.lower), box.upper),
        )

    def __repr__(self) -> str:
        return (
            f"Perturbed({self.rkhs_part!r}, {self.perturbation!r}, "
            f"misspecification={self.misspecification:g})"
        )


def rough(
    dim: int,
    misspecification: float,
    seed: int = 0,
    frequency: float = 10.0,
    num_waves: int = 3,
) -> Perturbation:
    """Make a perturbation far outside the RKHS ball of a smooth kernel: fast cosines.

    m(x) = eps/J sum_j cos(2 pi v_j'x + phase_j), with J waves of random directions and lengths
    \\|v_j\\| between 1 and 2 times the frequency.

    Args:
        dim: The dimension d of the points.
        misspecification: eps, the bound on \\|m\\|, in units of f.
        seed: The seed of the directions, lengths and phases.
        frequency: The frequency in cycles per unit of x; choose it well above 1 / lengthscale.
        num_waves: J, the number of waves. With more waves \\|m\\| comes close to eps less often.

    Returns:
        A perturbation for `Perturbed`.

    Raises:
        ValueError: If an argument is out of range.
    """
    if dim < 1 or num_waves < 1:
        raise ValueError(f"dim and num_waves must be at least 1, got {dim} and {num_waves}")
    if not 0.0 < frequency < float("inf"):
        raise ValueError(f"frequency must be positive and finite, got {frequency}")
    generator = torch.Generator().manual_seed(seed)
    directions = host.randn(num_waves, dim, dtype=torch.float64, generator=generator)
    directions = directions / directions.norm(dim=-1, keepdim=True)
    lengths = 1 + host.rand(num_waves, 1, dtype=torch.float64, generator=generator)
    phases = 2 * math.pi * host.rand(num_waves, dtype=torch.float64, generator=generator)
    return _Waves(
        2 * math.pi * frequency * lengths * directions,
        phases,
        _require_misspecification(misspecification),
    )


def tabulated(domain: FiniteSet, values: Tensor | Sequence[float]) -> Perturbation:
    """Make a perturbation of a finite set from its values.

    Args:
        domain: The finite set of N points.
        values: The values, ``N``, in the order of the points.

    Returns:
        A perturbation for `Perturbed`; outside the set it raises an `OutsideDomainError`.

    Raises:
        ValueError: If the domain is no finite set, the number of values is wrong, or one is not
            finite.
    """
    if not isinstance(domain, FiniteSet):
        raise ValueError(f"domain must be a FiniteSet, got {short(domain)}")
    table = torch.as_tensor(values, dtype=domain.dtype, device=domain.device).detach().clone()
    if table.shape != (domain.num_points,) or not bool(torch.isfinite(table).all()):
        raise ValueError(
            f"values must be {domain.num_points} finite numbers, one for each point of the set, "
            f"got shape {tuple(table.shape)}: {short(table.tolist())}"
        )
    return _Table(domain, table)


def adversarial(
    problem: Problem,
    misspecification: float,
    radius: float = 0.2,
    center: PointsLike | None = None,
) -> Perturbation:
    """Make a perturbation that hides the maximiser: -eps there, rising smoothly to +eps elsewhere.

    m(x) = eps (1 - 2^(1 - (r/radius)^2)), where r is the distance from the center with each
    coordinate divided by the side of the domain, divided by sqrt(d). The perturbation is smooth,
    and large where the posterior extrapolates.

    Args:
        problem: The unperturbed problem.
        misspecification: eps, the bound on \\|m\\|, in units of f.
        radius: The distance at which m changes sign, as a fraction of the diagonal of the domain.
        center: The center, ``d``; None for the maximiser of the problem.

    Returns:
        A perturbation for `Perturbed`.

    Raises:
        ValueError: If an argument is out of range, or no center is given and the maximiser is
            unknown.
    """
    if not 0.0 < radius < float("inf"):
        raise ValueError(f"radius must be positive and finite, got {radius}")
    domain = _domain_of(problem)
    if center is None:
        center = problem.optimizer
    if center is None:
        raise ValueError("center must be given if the maximiser of problem is unknown, got None")
    points = as_points(center, domain.dim, domain.like, "center")
    if len(points) != 1:
        raise ValueError(f"center must be one point, got {len(points)}")
    corners = domain.bounds if isinstance(domain, Box) else domain.points.aminmax(dim=0)
    side = corners[1] - corners[0]
    side = torch.where(side > 0, side, torch.ones_like(side))
    scale = side * (radius * math.sqrt(domain.dim))
    return _Well(points[0].detach().clone(), scale, _require_misspecification(misspecification))


def _domain_of(problem: Problem) -> Domain:
    """The domain of a problem; raises a ValueError for what is no problem."""
    domain = getattr(problem, "domain", None)
    if not isinstance(domain, Box | FiniteSet):
        raise ValueError(f"problem must be a Problem with a domain, got {short(problem)}")
    return domain


# Dataclasses, not closures, so that a problem can be sent to another process.


@dataclass(frozen=True, eq=False)
class _Waves:
    vectors: Tensor  # (J, d), radians per unit of x
    phases: Tensor  # (J,)
    misspecification: float

    def __call__(self, X: Tensor) -> Tensor:
        angles = X @ self.vectors.to(X).T + self.phases.to(X)  # (n, J)
        return self.misspecification * angles.cos().mean(dim=-1)


def white(domain: FiniteSet, misspecification: float, seed: int) -> Perturbation:
    """Make a perturbation without any structure: +eps or -eps at each point, by a fair coin.

    No kernel can learn it. A model with a nugget that belongs to f is correct, and therefore tries
    every point once: on 500 points it takes 500 steps. A model that ignores the perturbation finds
    the maximum of f, whose value is at most 2 eps below the best. The perturbation is our own.

    Args:
        domain: The finite set.
        misspecification: eps, the size of the perturbation, in units of f.
        seed: The seed of the coins.

    Returns:
        A perturbation for `Perturbed`.

    Raises:
        ValueError: If eps is not finite.
    """
    generator = torch.Generator().manual_seed(seed)
    coins = host.randint(2, (domain.num_points,), generator=generator)
    return tabulated(domain, misspecification * (2 * coins - 1).to(domain.dtype))


@dataclass(frozen=True, eq=False)
class _Table:
    domain: FiniteSet
    values: Tensor  # (N,)

    def __call__(self, X: Tensor) -> Tensor:
        rows = self.domain.index(X)
        if bool((rows < 0).any()):
            self.domain.require_contains(X)  # raises an error that names the point
        return self.values[rows]


@dataclass(frozen=True, eq=False)
class _Well:
    center: Tensor  # (d,)
    scale: Tensor  # (d,)
    misspecification: float

    def __call__(self, X: Tensor) -> Tensor:
        squared = ((X - self.center) / self.scale).square().sum(dim=-1)  # (n,)
        return self.misspecification * (1 - 2 * torch.exp2(-squared))


def _require_misspecification(misspecification: float) -> float:
    if not 0.0 <= misspecification < float("inf"):
        raise ValueError(f"misspecification must be finite and at least 0, got {misspecification}")
    return float(misspecification)
