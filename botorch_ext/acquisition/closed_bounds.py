"""Closed bounds: upper bounds of several models whose gradients need no autograd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from botorch_ext.acquisition.alternatives import AlternativeBounds
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box import ConfidenceBound


class ClosedBounds:
    """The upper bounds of `KernelGP` models, each at points of its own, with their gradients: an
    `Objective` on ``n x m x d``.

    Args:
        parts: The bounds of models that are one, and how many they are.
        columns: ``m``: which of the models in the order of the parts each of the caller's is.
        offset: ``m``, in the order of the caller.
    """

    def __init__(
        self, parts: Sequence[tuple[ConfidenceBound, int]], columns: Tensor, offset: Tensor
    ) -> None:
        self._parts, self._offset = parts, offset
        self._columns, self._places = columns, columns.argsort()
        self.num_models = len(columns)

    @classmethod
    def of(cls, acqf: AlternativeBounds) -> Self | None:
        """Those of an acquisition function, as it is now; None where they have no closed form."""
        if acqf.posterior_transform is not None:
            return None
        alternatives: Any = acqf.model
        columns, sign = acqf._columns, 1.0 if acqf.maximize else -1.0
        widths, parts, start = acqf.width[columns.argsort()].unsqueeze(-1), [], 0
        for model, count in zip(alternatives.models, alternatives.counts, strict=True):
            known = isinstance(model, KernelGP) and model.num_observations > 0
            if not known or not model.has_closed_form_gradient:
                return None
            width = widths[start : start + count] if model.batch_shape else widths[start]
            parts.append((ConfidenceBound(model, width, sign), count))
            start += count
        return cls(parts, columns, acqf.offset)

    def value(self, X: Tensor) -> Tensor:
        return self._together([bound.value(Z) for bound, Z in self._of_parts(X)]) + self._offset

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        parts = [bound.value_and_gradient(Z) for bound, Z in self._of_parts(X)]
        values, gradients = zip(*parts, strict=True)
        return self._together(values) + self._offset, self._together(gradients, num_last=1)

    def _of_parts(self, X: Tensor) -> list[tuple[ConfidenceBound, Tensor]]:
        if len(self._parts) == 1:
            bound, _ = self._parts[0]
            return [(bound, X.transpose(0, 1) if bound.model.batch_shape else X.squeeze(1))]
        pieces = X[:, self._places].split([count for _, count in self._parts], dim=1)
        return [
            (bound, piece.transpose(0, 1) if bound.model.batch_shape else piece.squeeze(1))
            for (bound, _), piece in zip(self._parts, pieces, strict=True)
        ]

    def _together(self, parts: Sequence[Tensor], num_last: int = 0) -> Tensor:
        """What the parts say, ``n x m x ...``, in the order of the caller."""
        shaped = [part.unsqueeze(0) if part.ndim == 1 + num_last else part for part in parts]
        if len(shaped) == 1:
            return shaped[0].transpose(0, 1)
        return torch.cat(shaped).transpose(0, 1)[:, self._columns]
