"""Problems whose values depend on a context that the method observes and does not choose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import (
    Box,
    Domain,
    FiniteSet,
    as_points,
    checked_like,
    host,
    require_same_kind,
)
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.reading import as_domain
from botorch_ext.problems.base import best_of, global_maximum, one_or_many, require_noise_std
from botorch_ext.problems.functions.rkhs import RKHSFunction


@runtime_checkable
class ContextualProblem(Protocol):
    """The protocol of contextual problems: a function of action and context, to maximise over the
    action.

    Attributes:
        domain: The domain of the actions.
        context_dim: d_z, the number of columns of a context.
        noise_std: The standard deviation of the observation noise, in units of the function.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def context_dim(self) -> int: ...

    @property
    def noise_std(self) -> float: ...

    def __call__(self, X: Tensor) -> Tensor:
        """The noiseless values at joint points, actions first, ``n x (d + d_z)`` to ``n``; or at
        one point, to 0-dim."""
        ...

    def optimal_value_at(self, context: Tensor, actions: Tensor | None = None) -> float:
        """The largest noiseless value at a context.

        Args:
            context: The context, ``d_z``.
            actions: The actions to choose from, ``m x d``; None for the whole domain.

        Returns:
            The value, in units of the function.
        """
        ...


class ContextualFunction(ABC):
    """Base class of contextual problems whose values are known everywhere.

    A subclass defines the values in `_evaluate`.

    Args:
        domain: The domain of the actions; it gives dtype and device.
        context_dim: d_z, the number of columns of a context.
        noise_std: The standard deviation of the observation noise, in units of the function.

    Raises:
        ValueError: If contexts have no column, or the noise is negative or infinite.
    """

    def __init__(self, domain: Domain, context_dim: int, noise_std: float = 0.0) -> None:
        self.domain: Domain = as_domain(domain)
        self.context_dim: int = whole_number(context_dim, "context_dim", least=1)
        self.noise_std: float = require_noise_std(noise_std)
        self._optima: dict[tuple[float, ...], tuple[Tensor, float]] = {}

    @abstractmethod
    def _evaluate(self, X: Tensor) -> Tensor:
        """The values at joint points with the domain's dtype and device, actions first,
        ``n x (d + d_z)`` to ``n``."""

    def _near_maxima(self) -> Tensor | None:
        """Actions of a box from which a search for the best should start as well, ``m x d``."""
        return None

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values.

        Args:
            X: Joint points, actions first, ``n x (d + d_z)``, inside the domain or not; or one
                point.

        Returns:
            The values, ``n``, or a 0-dim tensor for one point; differentiable in ``X``.

        Raises:
            ValueError: If ``X`` has the wrong shape, dtype or device, or is not finite.
        """
        points = as_points(X, self.domain.dim + self.context_dim, self.domain.like)
        return one_or_many(self._evaluate(points), X)

    def optimal_value_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None = None
    ) -> float:
        """The largest value at a context: exact on a finite set or over given actions, found by
        multi-start search on a box.

        Args:
            context: The context, ``d_z``.
            actions: The actions to choose from, ``m x d``; None for the whole domain, whose maximum
                is searched once for each context.

        Returns:
            The value, in units of the function.

        Raises:
            ValueError: If the context or the actions have the wrong shape, dtype or device, or are
                not finite.
        """
        return self._optimum_at(context, actions)[1]

    def optimizer_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None = None
    ) -> Tensor:
        """The action that attains `optimal_value_at`.

        Args:
            context: The context, ``d_z``.
            actions: The actions to choose from, ``m x d``; None for the whole domain.

        Returns:
            The action, ``d``.
        """
        return self._optimum_at(context, actions)[0]

    def _optimum_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None
    ) -> tuple[Tensor, float]:
        contexts = as_points(context, self.context_dim, self.domain.like, "context")
        if len(contexts) != 1:
            raise ValueError(f"context must be a single context, got {len(contexts)} of them")
        z = contexts[0]

        def at_context(X: Tensor) -> Tensor:
            return self._evaluate(with_context(X, z))

        if actions is not None:
            actions = as_points(actions, self.domain.dim, self.domain.like, "actions")
            if not len(actions):
                raise ValueError("actions must have at least one point, got none")
            return best_of(at_context, actions)
        key = tuple(z.tolist())
        if key not in self._optima:
            if isinstance(self.domain, Box):
                near = self._near_maxima()
                self._optima[key] = global_maximum(at_context, self.domain, seed=0, extra=near)
            else:
                self._optima[key] = best_of(at_context, self.domain.points)
        return self._optima[key]


class ContextualRKHSFunction(ContextualFunction):
    """A contextual function whose RKHS norm is known: a finite kernel expansion over joint points.

    f(x, z) = sum_i a_i k(c_i, (x, z)), with |f|_k = sqrt(a' K a).

    Args:
        kernel: Any GPyTorch kernel of the joint columns, actions first, without batch dimensions; a
            frozen copy is kept.
        centers: The c_i, ``m x (d + d_z)``.
        weights: The a_i, ``m``.
        domain: The domain of the actions; it gives dtype and device.
        noise_std: The standard deviation of the observation noise, in units of f.

    Attributes:
        joint: f as an `RKHSFunction`, whose domain is the set of the centers.
        norm: The RKHS norm of f.

    Raises:
        ValueError: If the kernel is batched, or centers, weights or noise_std do not fit.
    """

    def __init__(
        self,
        kernel: Kernel,
        centers: Tensor | Sequence[Sequence[float]],
        weights: Tensor | Sequence[float],
        domain: Domain,
        noise_std: float = 0.0,
    ) -> None:
        rows = checked_like(centers, domain.like, "centers")
        if rows.ndim != 2 or not len(rows) or rows.shape[1] <= domain.dim:
            raise ValueError(
                f"centers must have shape (m, {domain.dim} + d_z), actions first, "
                f"got {tuple(rows.shape)}"
            )
        super().__init__(domain, rows.shape[1] - domain.dim, noise_std)
        self.joint = RKHSFunction(kernel, rows, weights, FiniteSet(rows), noise_std)
        self.norm: float = self.joint.norm

    @classmethod
    def random(
        cls,
        domain: Domain,
        contexts: Domain,
        kernel: Kernel,
        norm: float,
        num_centers: int = 50,
        noise_std: float = 0.0,
        seed: int = 0,
    ) -> ContextualRKHSFunction:
        """Draw a random function of exactly the given norm.

        Args:
            domain: The domain of the actions.
            contexts: The domain from which the contexts of the centers are drawn; the function is
                defined for all contexts.
            kernel: Any GPyTorch kernel of the joint columns, actions first, without batch
                dimensions.
            norm: The norm |f|_k, positive.
            num_centers: The number of centers, which are pairs of an action and a context.
            noise_std: The standard deviation of the observation noise, in units of f.
            seed: The same seed gives the same function.

        Returns:
            The function; its weights are normal draws, scaled to the norm.

        Raises:
            ValueError: If the norm is not positive and finite, there is no center, or the contexts
                have another dtype or device than the domain.
        """
        num_centers = whole_number(num_centers, "num_centers", least=1)
        require_same_kind(contexts.like, domain.like, "contexts")
        pairs = FiniteSet(_random_pairs(domain, contexts, num_centers, seed))
        drawn = RKHSFunction.random(pairs, kernel, norm, num_centers, noise_std, seed)
        return cls(kernel, drawn.centers, drawn.weights, domain, noise_std)

    def _evaluate(self, X: Tensor) -> Tensor:
        return self.joint(X)

    def _near_maxima(self) -> Tensor | None:
        # As in `RKHSFunction`: with a rough kernel the maximum is a cusp.
        actions = self.joint.centers[:, : self.domain.dim]
        return actions[self.domain.contains(actions)]

    def __repr__(self) -> str:
        return (
            f"ContextualRKHSFunction(kernel={type(self.joint.kernel).__name__}, "
            f"num_centers={len(self.joint.centers)}, norm={self.norm:g}, domain={self.domain!r}, "
            f"context_dim={self.context_dim}, noise_std={self.noise_std:g})"
        )


def _random_pairs(domain: Domain, contexts: Domain, num_pairs: int, seed: int) -> Tensor:
    """Pairs of a random action and a random context, ``num_pairs x (d + d_z)``."""
    if all(isinstance(side, Box) and side.is_plain for side in (domain, contexts)):
        # One sequence of Sobol points: two of them, paired, would be correlated.
        return Box(torch.cat([domain.like, contexts.like], dim=-1)).sample(num_pairs, seed)
    generator = torch.Generator().manual_seed(seed)
    seeds = host.randint(2**31, (2,), generator=generator).tolist()
    sides = zip((domain, contexts), seeds, strict=True)
    return torch.cat([side.sample(num_pairs, own) for side, own in sides], dim=-1)
