"""Contexts: what is seen before each choice and is not chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains.box import Box
from botorch_ext.domains.finite_set import Domain, FiniteSet
from botorch_ext.domains.points import PointsLike, as_points, checked_like
from botorch_ext.domains.reading import DomainLike, as_domain
from botorch_ext.state import Immutable

# A context, or what becomes one: d_z numbers, one number where d_z is 1, or values by name.
ContextLike = PointsLike


def with_context(X: Tensor, context: Tensor | None) -> Tensor:
    """Joint rows: actions first, then the context.

    Args:
        X: ``... x d`` actions.
        context: ``d_z``, or None, which leaves the actions as they are.

    Returns:
        ``... x (d + d_z)``.
    """
    if context is None:
        return X
    return torch.cat([X, context.expand(*X.shape[:-1], -1)], dim=-1)


@dataclass(frozen=True, eq=False)
class ContextSpace(Immutable):
    """Which contexts there are.

    Args:
        domain: A `Box` they lie in, or the `FiniteSet` of all of them. None: anything finite.
        dim: d_z. None: that of the domain or, without one, of the first context seen.
        tasks: Pairs (column, number of tasks): those columns hold whole numbers from 0 to one less
            than the number of tasks.

    Raises:
        ValueError: A dimension less than 1 or another than the domain's, or tasks that are no such
            pairs.
    """

    domain: Domain | None = None
    dim: int | None = None
    tasks: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.domain is not None:
            object.__setattr__(self, "domain", as_domain(self.domain))
        if self.dim is not None:
            whole_number(self.dim, "dim of the contexts", least=1)
        if self.domain is not None:
            if self.dim not in (None, self.domain.dim):
                raise ValueError(f"dim must be {self.domain.dim}, the domain's, got {self.dim}")
            object.__setattr__(self, "dim", self.domain.dim)
        pairs = self.tasks if isinstance(self.tasks, list | tuple) else [None]
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            raise ValueError(f"tasks must be pairs (column, number of tasks), got {self.tasks!r}")
        for column, number in self.tasks:
            whole_number(column, "column of a task", least=0)
            whole_number(number, "number of tasks", least=1)
            if self.dim is not None and column >= self.dim:
                raise ValueError(f"column of a task must be less than {self.dim}, got {column}")

    def checked(
        self, context: ContextLike, like: Tensor, dim: int | None = None, name: str = "context"
    ) -> Tensor:
        """A copy of a context, ``d_z``.

        Args:
            context: What was given: numbers, or values by the names of the domain.
            like: Gives dtype and device.
            dim: d_z where this space does not know it.
            name: For the message.

        Raises:
            ValueError: The wrong size, dtype or device, an entry that is not finite, or none of the
                contexts there are.
        """
        if isinstance(context, Mapping) and isinstance(self.domain, Box):
            context = self.domain.point(context, name)
        is_tensor = isinstance(context, Tensor)
        context = checked_like(context, like, name)
        context = context if is_tensor else torch.atleast_1d(context)
        dim = self.dim or dim or max(context.numel(), 1)
        if context.shape != (dim,):
            raise ValueError(f"{name} must have shape ({dim},), got {tuple(context.shape)}")
        point = as_points(context, dim, like, name)
        if self.domain is not None:
            point = self.domain.require_contains(point, name)
        for column, number in self.tasks:
            task = float(point[0, column]) if column < dim else -1.0
            if not (0 <= task < number and task.is_integer()):
                raise ValueError(
                    f"{name} must have a task in column {column}, a whole number from 0 to "
                    f"{number - 1}, got {point[0].tolist()}"
                )
        return point[0].detach().clone()

    def probes(self, like: Tensor, num_points: int, seed: int) -> Tensor:
        """Contexts where models are checked: all of a finite set unless there are too many, a
        sample and two corners of a box; one context where nothing but the dimension is known, and
        none where not even that is.

        Args:
            like: Gives dtype and device.
            num_points: At most so many, or a few more.
            seed: Of the sample.

        Returns:
            ``n x d_z``.
        """
        if isinstance(self.domain, FiniteSet):
            few = self.domain.num_points <= num_points
            return self.domain.points if few else self.domain.sample(num_points, seed)
        if self.domain is not None:
            sample = self.domain.sample(num_points, seed)
            # Of other boxes these need not be points.
            return torch.cat([self.domain.bounds, sample]) if self.domain.is_plain else sample
        if self.dim is None:
            return like.new_zeros(0, 0)
        if not self.tasks:
            return like.new_zeros(1, self.dim)
        most = min(max(number for _, number in self.tasks), num_points)
        rows = like.new_zeros(most, self.dim)
        for column, number in self.tasks:
            rows[:, column] = torch.arange(most).to(like) % number
        return rows


def as_context_space(value: DomainLike | int | ContextSpace | None) -> ContextSpace | None:
    """A `ContextSpace` from a domain, bounds or the number of dimensions; None stays None: no
    contexts.

    Raises:
        ValueError: Something else, or a dimension less than 1.
    """
    if value is None or isinstance(value, ContextSpace):
        return value
    if isinstance(value, Box | FiniteSet | list | tuple) or getattr(value, "ndim", 0):
        return ContextSpace(as_domain(cast(DomainLike, value), "context_domain"))
    return ContextSpace(dim=whole_number(value, "context_domain", least=1))
