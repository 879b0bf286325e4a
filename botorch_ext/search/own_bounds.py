"""Confidence bounds of several models, each evaluated at points of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.intersected import IntersectedBounds
from botorch_ext.search.models import UpperBounds


class OwnIntersectedBounds:
    """As `OwnBounds`, for bounds that are intersected or enlarged at each point.

    Args:
        bounds: The bounds of m models.
    """

    def __init__(self, bounds: IntersectedBounds) -> None:
        self._bounds = bounds

    @property
    def num_models(self) -> int:
        """The number m of models."""
        return self._bounds.num_models

    def value(self, X: Tensor) -> Tensor:
        return self.value_and_gradient(X)[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, gradients = self._bounds.values_and_gradients(X.transpose(0, 1).contiguous())
        return values.transpose(0, 1), gradients.transpose(0, 1)


class OwnBounds:
    """Confidence bounds of m models at points of their own, as an `Objective` on ``n x m x d``.

    Args:
        parts: Single models or batches of models, each with the positions of its models among the
            m.
        widths: The ``m`` multipliers of the standard deviations.
        offsets: The ``m`` numbers that are added.
        mean_weight: The multiplier of the means.
    """

    def __init__(
        self,
        parts: Sequence[tuple[KernelGP, Sequence[int]]],
        widths: Tensor,
        offsets: Tensor,
        mean_weight: float = 1.0,
    ) -> None:
        self._offsets = offsets
        self._parts: list[tuple[ConfidenceBound, Sequence[int]]] = []
        for model, positions in parts:
            width = members_of(widths, positions)
            width = width.unsqueeze(-1) if model.batch_shape else width.squeeze(0)
            self._parts.append((ConfidenceBound(model, width, mean_weight), positions))
        order = [position for _, positions in parts for position in positions]
        self._is_in_order = order == sorted(order)
        self._places = sorted(range(len(order)), key=order.__getitem__)

    @classmethod
    def of(cls, bounds: UpperBounds) -> Self | OwnIntersectedBounds:
        """Make the bounds from those of m models; negative widths and offsets give lower bounds.

        Args:
            bounds: The confidence bounds of m models at common points.

        Returns:
            The same bounds for points of their own.
        """
        if isinstance(bounds, IntersectedBounds):
            return OwnIntersectedBounds(bounds)
        parts = [(part.model, part.positions) for part in bounds.models.parts]
        return cls(parts, bounds.widths, bounds.offsets)

    @property
    def num_models(self) -> int:
        """The number m of models."""
        return len(self._places)

    def value(self, X: Tensor) -> Tensor:
        return self._together([bound.value(Z) for bound, Z in self._of_parts(X)]) + self._offsets

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        parts = [bound.value_and_gradient(Z) for bound, Z in self._of_parts(X)]
        values, gradients = zip(*parts, strict=True)
        return self._together(values) + self._offsets, self._together(gradients)

    def _of_parts(self, X: Tensor) -> list[tuple[ConfidenceBound, Tensor]]:
        X = X.transpose(0, 1)
        if len(self._parts) == 1 and self._is_in_order:
            return [(bound, X if bound.model.batch_shape else X[0]) for bound, _ in self._parts]
        return [
            (bound, members_of(X, positions if bound.model.batch_shape else positions[0]))
            for bound, positions in self._parts
        ]

    def _together(self, parts: Sequence[Tensor]) -> Tensor:
        """Join the values of the parts, with a row for each point, in the order of the models."""
        shaped = [
            own if bound.model.batch_shape else own.unsqueeze(0)
            for (bound, _), own in zip(self._parts, parts, strict=True)
        ]
        if len(shaped) == 1 and self._is_in_order:
            return shaped[0].transpose(0, 1)
        return members_of(torch.cat(shaped), self._places).transpose(0, 1)
