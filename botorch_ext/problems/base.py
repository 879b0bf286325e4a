"""Base of problems: what one offers, and how its maximum on a box is found."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.checks import amount, short, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, as_points
from botorch_ext.domains.reading import as_box, as_domain
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import FunctionObjective


class Problem(Protocol):
    """A function to maximise, with what is known about it.

    Attributes:
        domain: Where its points live.
        noise_std: The standard deviation of the observation noise, in units of the function.
        optimal_value: The largest noiseless value on the domain; None where nobody knows it.
        optimizer: A ``d``-dim point that attains it; None where nobody knows it.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def noise_std(self) -> float: ...

    @property
    def optimal_value(self) -> float | None: ...

    @property
    def optimizer(self) -> Tensor | None: ...

    def __call__(self, X: Tensor) -> Tensor:
        """The ``n`` noiseless values at ``n x d`` points, or the scalar at one point."""
        ...


def pointwise(
    function: Callable[[Tensor], Tensor],
    X: Tensor | Sequence[float] | Sequence[Sequence[float]],
    domain: Domain,
    inside: bool = False,
) -> Tensor:
    """Checks points at the door and evaluates a function of ``n x d`` points on them.

    Args:
        function: From ``n x d`` to ``n``.
        X: ``n x d``, or one ``d``-dim point.
        domain: Gives the dimension, dtype and device.
        inside: Whether points outside the domain are refused.

    Returns:
        ``n`` values, or a scalar tensor for one point.

    Raises:
        ValueError: ``X`` has the wrong shape, dtype or device, is not finite, or lies outside.
    """
    points = domain.require_contains(X) if inside else as_points(X, domain.dim, domain.like)
    return one_or_many(function(points), X)


def one_or_many(values: Tensor, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
    """``n`` values as they are, or as a scalar tensor where ``X`` is one point."""
    one_point = X.ndim == 1 if isinstance(X, Tensor) else not isinstance(X[0], Sequence)
    return values.squeeze(0) if one_point else values


def best_of(function: Callable[[Tensor], Tensor], points: Tensor) -> tuple[Tensor, float]:
    """The first of ``n x d`` points with the largest value, and that value."""
    values = function(points)
    row = int(values.argmax())
    return points[row], float(values[row])


class KnownFunction(ABC):
    """A problem whose values are known everywhere, from `_evaluate` of a subclass.

    Args:
        domain: Where the function is maximised; gives dtype and device.
        noise_std: Standard deviation of the observation noise, in units of the function.

    Raises:
        ValueError: A noise that is negative or infinite.
    """

    def __init__(self, domain: Domain, noise_std: float = 0.0) -> None:
        self.domain: Domain = as_domain(domain)
        self.noise_std: float = require_noise_std(noise_std)

    @abstractmethod
    def _evaluate(self, X: Tensor) -> Tensor:
        """``n x d`` points of the domain's kind to ``n`` values."""

    def _near_maxima(self) -> Tensor | None:
        """``m x d`` points of a box that a search for the maximum should start from as well."""
        return None

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values.

        Args:
            X: ``n x d`` points, inside the domain or not, or one ``d``-dim point.

        Returns:
            ``n`` values, or a scalar tensor for one point; differentiable in ``X``.

        Raises:
            ValueError: ``X`` has the wrong shape, dtype or device, or is not finite.
        """
        return pointwise(self._evaluate, X, self.domain)

    @property
    def optimal_value(self) -> float:
        """The maximum on the domain: exact on a finite set, by multi-start refinement on a box."""
        return self._optimum[1]

    @property
    def optimizer(self) -> Tensor:
        """A ``d``-dim point of the domain where the maximum is attained."""
        return self._optimum[0]

    @cached_property
    def _optimum(self) -> tuple[Tensor, float]:
        if isinstance(self.domain, FiniteSet):
            return best_of(self._evaluate, self.domain.points)
        return global_maximum(self._evaluate, self.domain, seed=0, extra=self._near_maxima())


def require_noise_std(noise_std: float) -> float:
    """``noise_std`` as a float, or a ValueError unless it is finite and at least 0."""
    return amount(noise_std, "noise_std", "non-negative and finite")


def global_maximum(
    function: Callable[[Tensor], Tensor],
    box: Box,
    seed: int,
    num_raw: int = 4096,
    num_starts: int = 32,
    extra: Tensor | None = None,
) -> tuple[Tensor, float]:
    """The maximum of a deterministic function on a box, by multi-start refinement.

    Good to 1e-9 of the function's spread where it is smooth and one of the screened points
    lies in the basin of the maximum; this is a search, not a certificate.

    Args:
        function: Noiseless, from ``n x d`` to ``n``, differentiable by autograd.
        box: Where to search.
        seed: Of the screened points.
        num_raw: How many points are screened; 0 where ``extra`` is enough.
        num_starts: How many are refined.
        extra: ``m x d`` points of the box to screen as well: corners, centres, known maximisers.

    Returns:
        A ``d``-dim maximiser and its value.

    Raises:
        ValueError: No point to start from, or the function is not finite on the box.
    """
    if not callable(function):
        raise ValueError(f"function must be callable, got {short(function)}")
    box, seed = as_box(box), whole_number(seed, "seed")
    num_raw = whole_number(num_raw, "num_raw", least=0)
    num_starts = whole_number(num_starts, "num_starts", least=1)
    given = box.bounds[:0] if extra is None else box.require_contains(extra, "extra")
    if num_raw == 0 and len(given) == 0:
        raise ValueError("num_raw must be positive where extra holds no point, got 0")

    def checked(X: Tensor) -> Tensor:
        values = function(X)
        if not bool(torch.isfinite(values).all()):
            x = X[~torch.isfinite(values)][0].tolist()
            raise ValueError(f"function must be finite on the box, got NaN or infinity at {x}")
        return values

    objective, found = FunctionObjective(checked), []
    if num_raw > 0:
        x, _ = maximize_on_box(objective, box, seed, num_raw, num_starts, tolerance=1e-12)
        found.append(x)
    if len(given):  # on their own: they are refined even where screened points are better
        x, _ = maximize_on_box(objective, box, seed, 0, num_starts, given, tolerance=1e-12)
        found.append(x)
    with torch.no_grad():
        # One at a time: the rounding of many points evaluated together can differ.
        values = [float(function(x.unsqueeze(0))) for x in found]
    best = values.index(max(values))
    return found[best], values[best]
