"""Bounds: the confidence bounds of several models of the same data, in one context."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.search.models import UpperBounds

Models = CandidateModels | FiniteCandidates


@dataclass(eq=False)
class Bounds:
    """mean +- (width * std + offset) of each of m models.

    Args:
        models: Of joint rows, or of the candidates of a finite set.
        widths: ``m``.
        offsets: ``m``.
        context: ``d_z``: points are actions, the models see them joined with this context.
    """

    models: Models
    widths: Tensor
    offsets: Tensor
    context: Tensor | None = None

    @property
    def on_candidates(self) -> bool:
        """Whether the models are of the candidates of a finite set, not of joint rows."""
        return isinstance(self.models, FiniteCandidates)

    @cached_property
    def of_candidates(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """Means, standard deviations and half-widths at the candidates of a finite set, ``m x N``
        each; None for models of joint rows."""
        if not isinstance(self.models, FiniteCandidates):
            return None
        std = self.models.std
        half_width = torch.addcmul(self.offsets[:, None], self.widths[:, None], std)
        return self.models.mean, std, half_width

    def at_candidate(self, model: Tensor | None, row: Tensor) -> list[Tensor]:
        """Mean, standard deviation, width and offset at a candidate, ``(1,)`` each.

        Args:
            model: ``(1,)``, the position of a model; None for the only one.
            row: ``(1,)``, the row of the candidate.
        """
        if self.of_candidates is None:
            raise TypeError("models of joint rows have no candidates")
        mean, std, _ = self.of_candidates
        if model is None:
            at = (values[0].index_select(0, row) for values in (mean, std))
            return [*at, self.widths, self.offsets]
        return [mean[model, row], std[model, row], self.widths[model], self.offsets[model]]

    def upper(self) -> UpperBounds:
        """The upper bounds of models of joint rows, as a function of the point."""
        return self._signed(1)

    def negated_lower(self) -> UpperBounds:
        """Widths and offsets with their signs turned, which makes upper bounds lower ones."""
        return self._signed(-1)

    def _signed(self, sign: int) -> UpperBounds:
        if not isinstance(self.models, CandidateModels):
            raise TypeError("models of a finite set have no bounds elsewhere")
        return UpperBounds(self.models, sign * self.widths, sign * self.offsets, self.context)
