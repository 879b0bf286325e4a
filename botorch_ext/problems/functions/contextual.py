"""Problems whose values depend on a context that is given and not chosen."""

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
    require_same_kind,
)
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.reading import as_domain
from botorch_ext.problems.base import best_of, global_maximum, one_or_many, require_noise_std
from botorch_ext.problems.functions.rkhs import RKHSFunction


@runtime_checkable
class ContextualProblem(Protocol):
    """A function of action and context, to maximise over the action alone.

    Attributes:
        domain: Where its actions live.
        context_dim: d_z, how many columns a context has.
        noise_std: The standard deviation of the observation noise, in units of the function.
    """

    @property
    def domain(self) -> Domain: ...

    @property
    def context_dim(self) -> int: ...

    @property
    def noise_std(self) -> float: ...

    def __call__(self, X: Tensor) -> Tensor:
        """The ``n`` noiseless values at ``n x (d + d_z)`` points, actions first, or the scalar at
        one point."""
        ...

    def optimal_value_at(self, context: Tensor, actions: Tensor | None = None) -> float:
        """The largest noiseless value at a ``d_z``-dim context, over the domain or over ``m x d``
        actions."""
        ...


class ContextualFunction(ABC):
    """A contextual problem whose values are known everywhere, from `_evaluate` of a subclass.

    Args:
        domain: Where its actions live; gives dtype and device.
        context_dim: d_z, how many columns a context has.
        noise_std: Standard deviation of the observation noise, in units of the function.

    Raises:
        ValueError: No column of contexts, or a noise that is negative or infinite.
    """

    def __init__(self, domain: Domain, context_dim: int, noise_std: float = 0.0) -> None:
        self.domain: Domain = as_domain(domain)
        self.context_dim: int = whole_number(context_dim, "context_dim", least=1)
        self.noise_std: float = require_noise_std(noise_std)
        self._optima: dict[tuple[float, ...], tuple[Tensor, float]] = {}

    @abstractmethod
    def _evaluate(self, X: Tensor) -> Tensor:
        """``n x (d + d_z)`` points of the domain's kind, actions first, to ``n`` values."""

    def _near_maxima(self) -> Tensor | None:
        """``m x d`` actions of a box that a search for the best one should start from as well."""
        return None

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The noiseless values.

        Args:
            X: ``n x (d + d_z)`` points, actions first, inside the domain or not, or one point.

        Returns:
            ``n`` values, or a scalar tensor for one point; differentiable in ``X``.

        Raises:
            ValueError: ``X`` has the wrong shape, dtype or device, or is not finite.
        """
        points = as_points(X, self.domain.dim + self.context_dim, self.domain.like)
        return one_or_many(self._evaluate(points), X)

    def optimal_value_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None = None
    ) -> float:
        """The largest value at a context: exact on a finite set or over given actions, by
        multi-start refinement on a box.

        Args:
            context: ``d_z``.
            actions: ``m x d``: what there is to choose from; None for the whole domain, whose
                maximum is searched once for each context.

        Returns:
            The value.

        Raises:
            ValueError: A context or actions of the wrong shape, dtype or device, or not finite.
        """
        return self._optimum_at(context, actions)[1]

    def optimizer_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None = None
    ) -> Tensor:
        """The ``d``-dim action that attains `optimal_value_at`, with its arguments."""
        return self._optimum_at(context, actions)[0]

    def _optimum_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None
    ) -> tuple[Tensor, float]:
        contexts = as_points(context, self.context_dim, self.domain.like, "context")
        if len(contexts) != 1:
            raise ValueError(f"context must be one context, got {len(contexts)}")
        z = contexts[0]

        def at_context(X: Tensor) -> Tensor:
            return self._evaluate(with_context(X, z))

        if actions is not None:
            actions = as_points(actions, self.domain.dim, self.domain.like, "actions")
            if not len(actions):
                raise ValueError("actions must hold at least one point, got none")
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
    """A finite kernel expansion over actions and contexts together, f(x, z) = sum_i a_i k(c_i,
    (x, z)), with |f|_k = sqrt(a' K a).

    Args:
        kernel: Any GPyTorch kernel of the joint columns, actions first, without batch dimensions; a
            frozen copy is kept.
        centers: ``m x (d + d_z)``, the c_i.
        weights: ``m``, the a_i.
        domain: Where the actions live; gives dtype and device.
        noise_std: Standard deviation of the observation noise, in units of f.

    Attributes:
        joint: f as an `RKHSFunction`, whose domain is the set of the centers.
        norm: The norm of f.

    Raises:
        ValueError: A batched kernel, or centers, weights or noise_std that do not fit.
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
        """A random function of exactly the given norm.

        Args:
            domain: Where the actions live.
            contexts: Where the contexts of the centers are drawn; the function is defined for all.
            kernel: Any GPyTorch kernel of the joint columns, actions first, without batch
                dimensions.
            norm: The norm |f|_k, positive.
            num_centers: How many centers: pairs of an action and a context.
            noise_std: Standard deviation of the observation noise, in units of f.
            seed: The same seed gives the same function.

        Returns:
            The function; its weights are normal, then scaled.

        Raises:
            ValueError: A norm that is not positive and finite, no center, or contexts of another
                dtype or device than the domain.
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
    """``num_pairs x (d + d_z)`` pairs of a random action and a random context."""
    if all(isinstance(side, Box) and side.is_plain for side in (domain, contexts)):
        # One sequence of Sobol points: two of them, paired, would be correlated.
        return Box(torch.cat([domain.like, contexts.like], dim=-1)).sample(num_pairs, seed)
    generator = torch.Generator().manual_seed(seed)
    seeds = torch.randint(2**31, (2,), generator=generator).tolist()
    sides = zip((domain, contexts), seeds, strict=True)
    return torch.cat([side.sample(num_pairs, own) for side, own in sides], dim=-1)
