"""The protocol and the base class of problems, and the search for their maximum on a box."""

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
    """The protocol of problems: a function to maximise, and what is known about it.

    Attributes:
        domain: The domain of the function.
        noise_std: The standard deviation of the observation noise, in units of the function.
        optimal_value: The largest noiseless value on the domain; None if it is not known.
        optimizer: A point that attains it, ``d``; None if it is not known.
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
        """The noiseless values at points, ``n x d`` to ``n``, or at one point, ``d`` to 0-dim."""
        ...


def pointwise(
    function: Callable[[Tensor], Tensor],
    X: Tensor | Sequence[float] | Sequence[Sequence[float]],
    domain: Domain,
    inside: bool = False,
) -> Tensor:
    """Check points and evaluate a function at them.

    Args:
        function: The function, from ``n x d`` to ``n``.
        X: Points, ``n x d``, or one point, ``d``.
        domain: The domain, which gives the dimension, dtype and device.
        inside: Whether points outside the domain are refused.

    Returns:
        The values, ``n``, or a 0-dim tensor for one point.

    Raises:
        ValueError: If ``X`` has the wrong shape, dtype or device, is not finite, or lies outside.
    """
    points = domain.require_contains(X) if inside else as_points(X, domain.dim, domain.like)
    return one_or_many(function(points), X)


def one_or_many(values: Tensor, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
    """The values in the shape that a caller expects.

    Args:
        values: Values, ``n``.
        X: The points as the caller gave them.

    Returns:
        The values, ``n``; a 0-dim tensor if ``X`` is one point.
    """
    one_point = X.ndim == 1 if isinstance(X, Tensor) else not isinstance(X[0], Sequence)
    return values.squeeze(0) if one_point else values


def best_of(function: Callable[[Tensor], Tensor], points: Tensor) -> tuple[Tensor, float]:
    """The point with the largest value.

    Args:
        function: The function, from ``n x d`` to ``n``.
        points: Points, ``n x d``.

    Returns:
        The first such point, ``d``, and its value.
    """
    values = function(points)
    row = int(values.argmax())
    return points[row], float(values[row])


class KnownFunction(ABC):
    """Base class of problems whose values are known everywhere.

    A subclass defines the values in `_evaluate`.

    Args:
        domain: The domain on which the function is maximised; it gives dtype and device.
        noise_std: The standard deviation of the observation noise, in units of the function.

    Raises:
        ValueError: If the noise is negative or infinite.
    """

    def __init__(self, domain: Domain, noise_std: float = 0.0) -> None:
        self.domain: Domain = as_domain(domain)
        self.noise_std: float = require_noise_std(noise_std)

    @abstractmethod
    def _evaluate(self, X: Tensor) -> Tensor:
        """The values at points with the domain's dtype and device, ``n x d`` to ``n``."""

    def _near_maxima(self) -> Tensor | None:
        """Points of a box from which a search for the maximum should start as well, ``m x d``."""
        return None

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values.

        Args:
            X: Points, ``n x d``, inside the domain or not; or one point, ``d``.

        Returns:
            The values, ``n``, or a 0-dim tensor for one point; differentiable in ``X``.

        Raises:
            ValueError: If ``X`` has the wrong shape, dtype or device, or is not finite.
        """
        return pointwise(self._evaluate, X, self.domain)

    @property
    def optimal_value(self) -> float:
        """The maximum on the domain: exact on a finite set, found by multi-start search on a
        box."""
        return self._optimum[1]

    @property
    def optimizer(self) -> Tensor:
        """A point of the domain that attains the maximum, ``d``."""
        return self._optimum[0]

    @cached_property
    def _optimum(self) -> tuple[Tensor, float]:
        if isinstance(self.domain, FiniteSet):
            return best_of(self._evaluate, self.domain.points)
        return global_maximum(self._evaluate, self.domain, seed=0, extra=self._near_maxima())


def require_noise_std(noise_std: float) -> float:
    """A standard deviation of the noise as a float.

    Raises:
        ValueError: If it is not finite and at least 0.
    """
    return amount(noise_std, "noise_std", "non-negative and finite")


def global_maximum(
    function: Callable[[Tensor], Tensor],
    box: Box,
    seed: int,
    num_raw: int = 4096,
    num_starts: int = 32,
    extra: Tensor | None = None,
) -> tuple[Tensor, float]:
    """The maximum of a deterministic function on a box, by multi-start search.

    The value is good to 1e-9 of the function's spread if the function is smooth and one of the
    screened points lies in the basin of the maximum. This is a search, not a certificate.

    Example:
        >>> from botorch_ext.problems import global_maximum
        >>> x, value = global_maximum(lambda X: -(X[:, 0] - 0.3) ** 2, [(0, 1)], seed=0)
        >>> x.round(decimals=4)
        tensor([0.3000], dtype=torch.float64)

    Args:
        function: A noiseless function, from ``n x d`` to ``n``, differentiable by autograd.
        box: The box to search, or its bounds.
        seed: The seed of the screened points.
        num_raw: The number of points that are screened; 0 if ``extra`` is enough.
        num_starts: The number of points that are refined.
        extra: Points of the box to screen as well, ``m x d``: corners, centres, known maximisers.

    Returns:
        A maximiser, ``d``, and its value.

    Raises:
        ValueError: If there is no point to start from, or the function is not finite on the box.
    """
    if not callable(function):
        raise ValueError(f"function must be callable, got {short(function)}")
    box, seed = as_box(box), whole_number(seed, "seed")
    num_raw = whole_number(num_raw, "num_raw", least=0)
    num_starts = whole_number(num_starts, "num_starts", least=1)
    given = box.bounds[:0] if extra is None else box.require_contains(extra, "extra")
    if num_raw == 0 and len(given) == 0:
        raise ValueError("num_raw must be positive if extra has no point, got 0")

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
    if len(given):  # refined on their own, even if screened points are better
        x, _ = maximize_on_box(objective, box, seed, 0, num_starts, given, tolerance=1e-12)
        found.append(x)
    with torch.no_grad():
        # One point at a time: rounding can differ if many points are evaluated together.
        values = [float(function(x.unsqueeze(0))) for x in found]
    best = values.index(max(values))
    return found[best], values[best]
