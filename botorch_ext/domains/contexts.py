"""Contexts: what the method observes before each choice and does not choose itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
from botorch_ext.domains.box import Box
from botorch_ext.domains.finite_set import Domain, FiniteSet
from botorch_ext.domains.points import PointsLike, as_points, checked_like, checked_tensor
from botorch_ext.domains.reading import DomainLike, as_domain
from botorch_ext.state import Immutable

# A context as users give it: d_z numbers, one number where d_z is 1, or values by name.
ContextLike = PointsLike


def with_context(X: Tensor, context: Tensor | None) -> Tensor:
    """Join actions and a context into joint rows, the action first.

    Args:
        X: Actions, ``... x d``.
        context: The context, ``d_z``; None leaves the actions as they are.

    Returns:
        The joint rows, ``... x (d + d_z)``.
    """
    if context is None:
        return X
    return torch.cat([X, context.expand(*X.shape[:-1], -1)], dim=-1)


@dataclass(frozen=True, eq=False)
class ContextSpace(Immutable):
    """The set of contexts that a problem can have.

    Example:
        >>> import botorch_ext as bx
        >>> contexts = bx.ContextSpace(bx.Box([(0, 40), (0, 100)]))
        >>> contexts.dim
        2

    Args:
        domain: The `Box` in which contexts lie, or the `FiniteSet` of all contexts; None allows all
            finite numbers.
        dim: d_z, the number of columns; None takes it from the domain or, without a domain, from
            the first context.
        tasks: Pairs (column, number of tasks): such a column holds whole numbers from 0 to one less
            than the number of tasks.

    Raises:
        ValueError: If the dimension is less than 1 or differs from that of the domain, or a task is
            not such a pair.
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
                raise ValueError(
                    f"dim must be {self.domain.dim}, as in the domain of contexts, got {self.dim}"
                )
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
        """Check a context.

        Args:
            context: The context: numbers, or values by the names of the domain.
            like: A tensor with the dtype and on the device that the context must have.
            dim: d_z, for a space that does not know it.
            name: The name of the argument, for the message.

        Returns:
            A copy of the context, ``d_z``.

        Raises:
            ValueError: If the size, dtype or device is wrong, an entry is not finite, or the
                context is not one of this space.
        """
        if isinstance(context, Mapping) and isinstance(self.domain, Box):
            context = self.domain.point(context, name)
        # Checked on the host, which then waits for no GPU; it has the numbers, or reads them once.
        if isinstance(context, Tensor):
            own = checked_like(context, like, name).cpu()
        else:
            own = torch.atleast_1d(checked_tensor(context, like.dtype, "cpu", name))
        dim = self.dim or dim or max(own.numel(), 1)
        if own.shape != (dim,):
            raise ValueError(f"{name} must have shape ({dim},), got {tuple(own.shape)}")
        point = as_points(own, dim, own, name)
        if self._on_host is not None:
            point = self._on_host.require_contains(point, name)
        for column, number in self.tasks:
            task = float(point[0, column]) if column < dim else -1.0
            if not (0 <= task < number and task.is_integer()):
                raise ValueError(
                    f"{name} must have a task in column {column}, a whole number from 0 to "
                    f"{number - 1}, got {point[0].tolist()}"
                )
        return point[0].detach().clone().to(like.device, non_blocking=True)

    @cached_property
    def _on_host(self) -> Domain | None:
        """The domain on the CPU."""
        if self.domain is None or self.domain.device.type == "cpu":
            return self.domain
        return self.domain.to(device="cpu")

    def probes(self, like: Tensor, num_points: int, seed: int) -> Tensor:
        """Contexts at which models are checked.

        These are all contexts of a finite set unless there are too many, or a sample of a box and
        its two corners. If only the dimension is known it is one context; without a dimension there
        is none.

        Args:
            like: A tensor with the dtype and on the device of the result.
            num_points: The largest number of contexts, apart from the corners.
            seed: The seed of the sample.

        Returns:
            Contexts, ``n x d_z``.
        """
        if isinstance(self.domain, FiniteSet):
            few = self.domain.num_points <= num_points
            return self.domain.points if few else self.domain.sample(num_points, seed)
        if self.domain is not None:
            sample = self.domain.sample(num_points, seed)
            # The corners of other boxes need not belong to them.
            return torch.cat([self.domain.bounds, sample]) if self.domain.is_plain else sample
        if self.dim is None:
            return like.new_zeros(0, 0)
        if not self.tasks:
            return like.new_zeros(1, self.dim)
        most = min(max(number for _, number in self.tasks), num_points)
        rows = like.new_zeros(most, self.dim)
        for column, number in self.tasks:
            rows[:, column] = host.arange(most).to(like) % number
        return rows


def as_context_space(value: DomainLike | int | ContextSpace | None) -> ContextSpace | None:
    """Make a `ContextSpace`.

    Args:
        value: A `ContextSpace`, a domain, the bounds of a box, or d_z; None for no contexts.

    Returns:
        The `ContextSpace`, or None.

    Raises:
        ValueError: If it is something else, or a dimension less than 1.
    """
    if value is None or isinstance(value, ContextSpace):
        return value
    if isinstance(value, Box | FiniteSet | list | tuple) or getattr(value, "ndim", 0):
        return ContextSpace(as_domain(cast(DomainLike, value), "context_domain"))
    return ContextSpace(dim=whole_number(value, "context_domain", least=1))
