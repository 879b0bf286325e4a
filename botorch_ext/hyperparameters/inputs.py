"""Inputs: joint rows of actions and contexts as features of the unit cube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.state import Immutable

# Two categories are as far apart as the two ends of another column.
_OF_CATEGORY = math.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class Inputs(Immutable):
    """Joint rows, ``n x (d + d_z)``, as features, ``n x p``, in float64: each column as in the unit
    cube of its box, a category as columns of which one is not zero, or as its descriptors.

    Args:
        actions: A box of d dimensions.
        contexts: Of d_z dimensions, which contexts may leave; None without them.
    """

    actions: Box
    contexts: Box | None = None

    @classmethod
    def of(cls, domain: Domain, space: ContextSpace | None, joint: Tensor) -> Inputs:
        """The inputs of a study: points of a finite set range as far as they do, and so do contexts
        of which no domain is known, the last columns of ``joint`` rows, ``n x (d + d_z)``."""
        actions = domain if isinstance(domain, Box) else _around(domain.points)
        if space is None:
            return cls(actions)
        known, tasks = space.domain, dict(space.tasks)
        if isinstance(known, Box) and not tasks:
            return cls(actions, known)
        seen = joint[:, domain.dim :] if known is None else known.like
        if not len(seen):
            dim = joint.shape[-1] - domain.dim if space.dim is None else space.dim
            seen = joint.new_zeros(1, max(dim, 1))
        return cls(actions, _around(seen, tasks))

    @property
    def num_columns(self) -> int:
        """d + d_z."""
        return sum(box.dim for box in self._boxes)

    @cached_property
    def groups(self) -> Tensor | None:
        """``p``: the column each feature belongs to, of which it has the lengthscale; None where
        each has its own."""
        if not any(box.categories for box in self._boxes):
            return None
        sizes = [_num_features(box, j) for box in self._boxes for j in range(box.dim)]
        columns = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
        return columns.to(self.actions.device)

    @property
    def sides(self) -> Tensor | None:
        """``num_columns``: what 1 in each feature is in the units of its column; None where columns
        are logarithmic, categories or under conditions."""
        if any(box.log or box.categories or box.conditions for box in self._boxes):
            return None
        return torch.cat([box.without_steps().stretch(box.lower) for box in self._boxes])

    def features(self, joint: Tensor) -> Tensor:
        """``... x (d + d_z)`` joint rows to ``... x p``."""
        parts = joint.split([box.dim for box in self._boxes], dim=-1)
        return torch.cat([_encoded(*pair) for pair in zip(self._boxes, parts, strict=True)], dim=-1)

    def at(self, X: Tensor, context: Tensor | None) -> Tensor:
        """`features` of ``... x d`` actions in a context of ``d_z``."""
        return self.features(with_context(X, context))

    def pullback(self, X: Tensor, gradient: Tensor) -> Tensor:
        """Gradients by the features of ``... x d`` actions, ``... x p``, as gradients by these
        actions, whole numbers as continuous; zero for categories."""
        slopes = gradient[..., self._first].to(X)
        speed = self._continuous.stretch(X)
        return torch.where(speed > 0, slopes / speed, 0.0)

    def of_features(self, of_columns: Tensor) -> Tensor:
        """What each column has, ``... x (d + d_z)``, as what its features have, ``... x p``."""
        return of_columns if self.groups is None else of_columns[..., self.groups]

    @property
    def _boxes(self) -> list[Box]:
        return [self.actions] if self.contexts is None else [self.actions, self.contexts]

    @cached_property
    def _continuous(self) -> Box:
        return self.actions.without_steps()

    @cached_property
    def _first(self) -> slice | Tensor:
        """Of each action the first feature."""
        if self.groups is None:
            return slice(self.actions.dim)
        columns = torch.arange(self.actions.dim, device=self.groups.device)
        return (self.groups < columns.unsqueeze(-1)).sum(dim=-1)


def _num_features(box: Box, column: int) -> int:
    located = box.located_codes.get(column)
    return len(box.categories.get(column, "1")) if located is None else located.shape[-1]


def _encoded(box: Box, X: Tensor) -> Tensor:
    U = box.to_unit(X).double()
    if not box.categories:
        return U
    parts = list(U.split(1, dim=-1))
    for j, codes in box.categories.items():
        is_code = X[..., j, None] == X.new_tensor(codes)
        located = box.located_codes.get(j)
        parts[j] = (
            is_code.double() * _OF_CATEGORY if located is None else is_code.double() @ located
        )
    return torch.cat(parts, dim=-1)


def _around(points: Tensor, tasks: dict[int, int] | None = None) -> Box:
    """The box that ``n x d`` points fill; columns in which they are equal are one long."""
    lower, upper = points.amin(dim=0), points.amax(dim=0)
    upper = torch.where(upper > lower, upper, lower + lower.abs().clamp_min(1.0))
    categories = {}
    for column, number in (tasks or {}).items():
        lower[column], upper[column] = -0.5, number - 0.5
        categories[column] = list(range(number))
    return Box(torch.stack([lower, upper]), categories=categories)
