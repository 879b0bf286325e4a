"""Upper bounds that hold together at several ridges, and bounds enlarged at each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.ranks import first_highest
from botorch_ext.kernels.batching import members_of
from botorch_ext.search.models import HighestBound, UpperBounds
from botorch_ext.search.objectives import FunctionObjective


@dataclass(frozen=True, eq=False)
class HalfWidths:
    """The half-widths width * std + offset + eps * min(||zeta||_1, cap * std) of M models.

    Args:
        widths: The ``M`` widths.
        offsets: The ``M`` offsets.
        enlargements: The ``M`` numbers eps; None for zeros.
        caps: The ``M`` caps while trials are pending, which narrow bounds at pending points; None
            for no caps.
    """

    widths: Tensor
    offsets: Tensor
    enlargements: Tensor | None = None
    caps: Tensor | None = None

    def of(self, std: Tensor, norms: Tensor | None = None) -> Tensor:
        """The half-widths, ``M x n``.

        Args:
            std: The standard deviations, ``M x n``.
            norms: The sums of absolute weights ||zeta||_1, ``M x n``; None without enlargements.
        """
        half = torch.addcmul(self.offsets[:, None], self.widths[:, None], std)
        if norms is None or self.enlargements is None:
            return half
        if self.caps is not None:
            norms = torch.minimum(norms, self.caps[:, None] * std)
        return torch.addcmul(half, self.enlargements[:, None], norms)

    def gradients(
        self, std: Tensor, std_gradient: Tensor, norms: Tensor | None, norm_gradient: Tensor | None
    ) -> Tensor:
        """The gradients of `of`, ``M x n x d``, from those of its arguments."""
        gradient = self.widths[:, None, None] * std_gradient
        if norms is None or norm_gradient is None or self.enlargements is None:
            return gradient
        if self.caps is not None:
            capped = (self.caps[:, None] * std < norms).unsqueeze(-1)
            norm_gradient = torch.where(
                capped, self.caps[:, None, None] * std_gradient, norm_gradient
            )
        return torch.addcmul(gradient, self.enlargements[:, None, None], norm_gradient)

    def select(self, positions: Sequence[int] | slice) -> HalfWidths:
        """The half-widths of some of the models."""

        def of(values: Tensor) -> Tensor:
            if isinstance(positions, slice):
                return values[positions]
            return members_of(values, positions)

        enlargements, caps = (
            each if each is None else of(each) for each in (self.enlargements, self.caps)
        )
        return HalfWidths(of(self.widths), of(self.offsets), enlargements, caps)


def narrowest(mean: Tensor, half: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """The bounds of the ridge with the least half-width, of equal ones the first.

    Args:
        mean: The means.
        half: The half-widths, in the same shape.
        dim: The dimension of the ridges.

    Returns:
        The means and the half-widths, without this dimension.
    """
    mean, half = mean.movedim(dim, -1), half.movedim(dim, -1)
    ridge = first_highest(-half)
    return mean.gather(-1, ridge).squeeze(-1), half.gather(-1, ridge).squeeze(-1)


def intersected(values: Tensor, num_ridges: int, sign: int) -> Tensor:
    """The least upper bounds, or the greatest lower bounds, of each model.

    Args:
        values: The bounds at each ridge, ``m R x n``.
        num_ridges: R, the number of ridges.
        sign: 1 for upper bounds, -1 for lower bounds.

    Returns:
        The bounds, ``m x n``.
    """
    values = values.unflatten(0, (-1, num_ridges))
    return values.amin(dim=1) if sign > 0 else values.amax(dim=1)


@dataclass(frozen=True, eq=False)
class IntersectedBounds(UpperBounds):
    """The upper bounds of m models, each the least of its bounds at several ridges, or enlarged at
    each point for a misspecification.

    Args:
        models: The models at every ridge, ``m R``; those of one model follow each other.
        widths: The ``m R`` widths.
        offsets: The ``m R`` offsets.
        context: As for `UpperBounds`.
        enlargements: As for `HalfWidths`.
        caps: As for `HalfWidths`.
        num_ridges: R, the number of ridges.
        sign: 1 for upper bounds, -1 for lower bounds.
    """

    enlargements: Tensor | None = None
    caps: Tensor | None = None
    num_ridges: int = 1
    sign: int = 1

    @cached_property
    def half(self) -> HalfWidths:
        """The half-widths of the models at every ridge."""
        return HalfWidths(self.widths, self.offsets, self.enlargements, self.caps)

    @property
    def num_models(self) -> int:
        return self.models.num_models // self.num_ridges

    def highest(self) -> HighestBound:
        return HighestIntersected(self) if self.num_ridges > 1 else HighestBound(self)

    @property
    def order(self) -> list[int]:
        return list(range(self.num_models))

    def select(self, positions: Sequence[int]) -> IntersectedBounds:
        """The upper bounds of some of the models."""
        num = self.num_ridges
        rows = [num * position + ridge for position in positions for ridge in range(num)]
        return replace(self, models=self.models.select(rows), **vars(self.half.select(rows)))

    def _values(self, X: Tensor) -> Tensor:
        joint = with_context(X, self.context)
        values = [
            self._of_model(part.model, joint, self.half.select(part.positions))
            for part in self.models.parts
        ]
        return intersected(self.models.in_order(values), self.num_ridges, self.sign)

    def _of_model(self, model: Any, X: Tensor, half: HalfWidths) -> Tensor:
        """The values of a batch of models at each ridge."""
        mean, variance, V = model.moments(model.transform_inputs(X))
        std = variance.clamp_min(torch.finfo(variance.dtype).eps ** 2).sqrt()
        norms = None if half.enlargements is None else model.factor.weight_norms(V)
        if not model.batch_shape:
            mean, std = mean.unsqueeze(0), std.unsqueeze(0)
            norms = norms if norms is None else norms.unsqueeze(0)
        return mean + self.sign * half.of(std, norms)

    def values_and_gradients(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The values at points and their gradients.

        Args:
            X: ``n x d`` points, or ``m x n x d`` with own points for each model.

        Returns:
            The values, ``m x n``, and the gradients, ``m x n x d``.
        """
        chunks = in_chunks(X, self.entries)
        if len(chunks) == 1:
            return self._of_chunk(X)
        values, gradients = zip(*map(self._of_chunk, chunks), strict=True)
        return torch.cat(values, dim=1), torch.cat(gradients, dim=1)

    def _of_chunk(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, gradients = self.at_each_ridge(X)
        least, which = (self.sign * values).min(dim=1, keepdim=True)
        return self.sign * least[:, 0], gradients.take_along_dim(which.unsqueeze(-1), dim=1)[:, 0]

    def at_each_ridge(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds at each ridge and their gradients.

        Args:
            X: As for `values_and_gradients`.

        Returns:
            The bounds, ``m x R x n``, and the gradients, ``m x R x n x d``.
        """
        num, (n, d) = self.num_ridges, X.shape[-2:]
        if X.ndim == 3:
            X = X.repeat_interleave(num, dim=0)
        of_parts = [
            self._of_part(part.model, members_of(X, part.positions) if X.ndim == 3 else X, half)
            for part in self.models.parts
            for half in [self.half.select(part.positions)]
        ]
        in_order = self.models.in_order
        values, gradients = (in_order(list(each)) for each in zip(*of_parts, strict=True))
        return values.view(-1, num, n), gradients.view(-1, num, n, d)

    def _of_part(self, model: Any, X: Tensor, half: HalfWidths) -> tuple[Tensor, Tensor]:
        """The values and the gradients of a batch of models at each ridge."""
        joint, d = with_context(X, self.context), X.shape[-1]
        size = len(half.widths)
        if not (model.has_closed_form_gradient and model.num_observations):
            joint = joint.expand(size, *joint.shape[-2:]) if joint.ndim == 2 else joint
            function = FunctionObjective(
                lambda X: self._of_model(model, X if model.batch_shape else X[0], half)
            )
            values, gradients = function.value_and_gradient(joint)
            return values, gradients[..., :d]
        joint = joint if model.batch_shape or joint.ndim == 2 else joint[0]
        answers: Any
        if half.enlargements is None:
            answers = (*model.mean_std_and_gradients(joint), None, None)
        else:
            answers = model.weight_norms_and_gradients(joint)
        if not model.batch_shape:
            answers = [each if each is None else each.unsqueeze(0) for each in answers]
        mean, std, mean_gradient, std_gradient, norms, norm_gradient = answers
        value = mean + self.sign * half.of(std, norms)
        slopes = half.gradients(std, std_gradient, norms, norm_gradient)
        return value, (mean_gradient + self.sign * slopes)[..., :d]


class HighestIntersected(HighestBound):
    """The highest of intersected bounds, an `Objective` with kinks.

    Args:
        bounds: The bounds of m models.
    """

    bounds: IntersectedBounds

    def cuts(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds at each ridge of the model with the highest bound at each point.

        Args:
            X: ``n x d`` points.

        Returns:
            The ``R x n`` bounds, the least of which is the value, and their ``R x n x d``
            gradients.
        """
        values, gradients = self.bounds.at_each_ridge(X)
        model = values.amin(dim=1).argmax(dim=0)  # n
        rows = torch.arange(len(X), device=X.device)
        return values[model, :, rows].mT, gradients[model, :, rows].transpose(0, 1)
