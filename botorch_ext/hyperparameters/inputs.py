"""Inputs: joint rows of actions and contexts as features of the unit cube."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.immutable import Immutable


@dataclass(frozen=True, eq=False)
class Inputs(Immutable):
    """Joint rows, ``n x (d + d_z)``, as features, ``n x p``: each column in sides of its range; a
    category as columns of zeros and ones, so that two are as far apart as any other two.

    Args:
        domain: Of the actions.
        contexts: ``2 x d_z``: the range of contexts, the lower then the upper; None without them.
        tasks: Columns of contexts that are categories, with their numbers.
    """

    domain: Domain
    contexts: Tensor | None = None
    tasks: Sequence[tuple[int, int]] = ()

    @classmethod
    def of(cls, domain: Domain, space: ContextSpace | None, joint: Tensor) -> Inputs:
        """The inputs of a study: contexts of which no domain is known range as far as those that
        were seen, the last columns of ``joint`` rows, ``n x (d + d_z)``."""
        if space is None:
            return cls(domain)
        if space.domain is None:
            seen = joint[:, domain.dim :]
            if not len(seen):
                seen = joint.new_zeros(1, space.dim or seen.shape[-1])
            return cls(domain, _range(seen), space.tasks)
        known = space.domain
        bounds = known.bounds if isinstance(known, Box) else _range(known.points)
        return cls(domain, bounds, space.tasks)

    @property
    def num_columns(self) -> int:
        """d + d_z."""
        return self.domain.dim + (0 if self.contexts is None else self.contexts.shape[-1])

    @property
    def groups(self) -> Tensor | None:
        """``p``: the column each feature belongs to, of which it has the lengthscale; None where
        each has its own."""
        return None

    def features(self, joint: Tensor) -> Tensor:
        """``... x (d + d_z)`` joint rows to ``... x p``, in float64."""
        d, joint = self.domain.dim, joint.double()
        actions = (self._scale(joint[..., :d]) - self._scale(self._lower)) / self._sides
        if self.contexts is None:
            return actions
        lower, upper = self.contexts.double()
        return torch.cat([actions, (joint[..., d:] - lower) / _positive(upper - lower)], dim=-1)

    def of_features(self, of_columns: Tensor) -> Tensor:
        """What each column has, ``... x num_columns``, as what its features have, ``... x p``."""
        return of_columns if self.groups is None else of_columns[..., self.groups]

    def at(self, X: Tensor, context: Tensor | None) -> Tensor:
        """`features` of ``... x d`` actions in a context of ``d_z``."""
        return self.features(with_context(X, context))

    def pullback(self, X: Tensor, gradient: Tensor) -> Tensor:
        """Gradients by the features of ``... x d`` actions, ``... x p``, as gradients by these
        actions."""
        return (gradient[..., : self.domain.dim] / self._sides).to(X)

    def _scale(self, X: Tensor) -> Tensor:
        return X

    @cached_property
    def _lower(self) -> Tensor:
        return self._bounds[0]

    @cached_property
    def _sides(self) -> Tensor:
        lower, upper = self._scale(self._bounds)
        return _positive(upper - lower)

    @cached_property
    def _bounds(self) -> Tensor:
        domain = self.domain
        return (domain.bounds if isinstance(domain, Box) else _range(domain.points)).double()


def _range(points: Tensor) -> Tensor:
    return torch.stack([points.amin(dim=0), points.amax(dim=0)])


def _positive(sides: Tensor) -> Tensor:
    """1 where a column is constant."""
    return torch.where(sides > 0, sides, 1.0)
