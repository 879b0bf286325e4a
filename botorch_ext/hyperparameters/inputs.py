"""The map from joint rows of actions and contexts to features in the unit cube."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, host
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.state import Immutable

# The entry of a category, for which two categories are as far apart as the ends of another column.
_OF_CATEGORY = math.sqrt(0.5)


@dataclass(frozen=True, eq=False)
class Inputs(Immutable):
    """The map from joint rows, ``n x (d + d_z)``, to features, ``n x p``, in float64.

    A column is scaled to the unit cube of its box. A category becomes columns of which one is not
    zero, or its descriptors.

    Args:
        actions: The box of the actions, with d dimensions.
        contexts: The box of the contexts, with d_z dimensions, outside which contexts may lie; None
            without contexts.
    """

    actions: Box
    contexts: Box | None = None

    @classmethod
    def of(cls, domain: Domain, space: ContextSpace | None, joint: Tensor) -> Inputs:
        """The inputs of a study. The box around the points scales a finite set; the box around the
        contexts in ``joint`` rows, ``n x (d + d_z)``, scales contexts of unknown domain."""
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
        """The number of columns, d + d_z."""
        return sum(box.dim for box in self._boxes)

    @cached_property
    def groups(self) -> Tensor | None:
        """The column of each feature, ``p``, whose lengthscale it shares; None if each feature is a
        column."""
        if not any(box.categories for box in self._boxes):
            return None
        sizes = [_num_features(box, j) for box in self._boxes for j in range(box.dim)]
        columns = host.arange(len(sizes)).repeat_interleave(host.tensor(sizes))
        return columns.to(self.actions.device)

    @property
    def sides(self) -> Tensor | None:
        """The unit of each feature in units of its column, ``num_columns``; None if a column is
        logarithmic, a category or under a condition."""
        if any(box.log or box.categories or box.conditions for box in self._boxes):
            return None
        return torch.cat([box.without_steps().stretch(box.lower) for box in self._boxes])

    def features(self, joint: Tensor) -> Tensor:
        """The features ``... x p`` of joint rows ``... x (d + d_z)``."""
        columns = joint.split([box.dim for box in self._boxes], dim=-1)
        pairs = zip(self._boxes, columns, strict=True)
        return torch.cat([_encoded(*pair) for pair in pairs], dim=-1)

    def in_context(self, context: Tensor | None) -> ActionFeatures:
        """The map from actions in a ``d_z``-dim context to features; None without contexts."""
        return ActionFeatures(self, context)

    def pullback(self, X: Tensor, gradient: Tensor) -> Tensor:
        """The gradient by ``... x d`` actions, from the gradient by their features, ``... x p``.
        Whole numbers count as continuous; the gradient by categories is zero."""
        slopes = gradient[..., self._first].to(X)
        speed = self._continuous.stretch(X)
        return torch.where(speed > 0, slopes / speed, 0.0)

    def of_features(self, of_columns: Tensor) -> Tensor:
        """The values of columns, ``... x (d + d_z)``, repeated for their features, ``... x p``."""
        return of_columns if self.groups is None else of_columns[..., self.groups]

    @property
    def _boxes(self) -> list[Box]:
        return [self.actions] if self.contexts is None else [self.actions, self.contexts]

    @cached_property
    def _continuous(self) -> Box:
        return self.actions.without_steps()

    @cached_property
    def _first(self) -> slice | Tensor:
        """The index of the first feature of each action column."""
        if self.groups is None:
            return slice(self.actions.dim)
        columns = torch.arange(self.actions.dim, device=self.groups.device)
        return (self.groups < columns.unsqueeze(-1)).sum(dim=-1)


@dataclass(frozen=True, eq=False)
class ActionFeatures(Immutable):
    """The map from actions in one context to features, for searches.

    Args:
        inputs: The map from joint rows to features.
        context: The ``d_z`` numbers of the context; None without contexts.
    """

    inputs: Inputs
    context: Tensor | None

    def at(self, X: Tensor) -> Tensor:
        """The features, ``... x p``, of ``... x d`` actions."""
        return self.inputs.features(with_context(X, self.context))

    def pullback(self, X: Tensor, gradient: Tensor) -> Tensor:
        """The gradient by actions, as `Inputs.pullback` gives it."""
        return self.inputs.pullback(X, gradient)


def _num_features(box: Box, column: int) -> int:
    located = box.located_codes.get(column)
    return len(box.categories.get(column, "1")) if located is None else located.shape[-1]


def _encoded(box: Box, X: Tensor) -> Tensor:
    U = box.to_unit(X).double()
    if not box.categories:
        return U
    columns = list(U.split(1, dim=-1))
    for j, codes in box.codes.items():
        is_code = X[..., j, None] == codes
        located = box.located_codes.get(j)
        columns[j] = (
            is_code.double() * _OF_CATEGORY if located is None else is_code.double() @ located
        )
    return torch.cat(columns, dim=-1)


def _around(points: Tensor, tasks: dict[int, int] | None = None) -> Box:
    """The box around ``n x d`` points; a column in which all are equal gets a positive length."""
    lower, upper = points.amin(dim=0), points.amax(dim=0)
    upper = torch.where(upper > lower, upper, lower + lower.abs().clamp_min(1.0))
    categories = {}
    for column, number in (tasks or {}).items():
        lower[column], upper[column] = -0.5, number - 0.5
        categories[column] = list(range(number))
    return Box(torch.stack([lower, upper]), categories=categories)
