"""The confidence bounds of several models of the same data, in one context."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.search.models import UpperBounds

Models = CandidateModels | FiniteCandidates


@dataclass(eq=False)
class Bounds:
    """The confidence bounds mean +- (width * std + offset) of each of m models.

    Args:
        models: The models of joint rows, or of the candidates of a finite set.
        widths: The ``m`` widths.
        offsets: The ``m`` offsets.
        context: The ``d_z`` numbers of the context, which models of joint rows see after the
            action. None: no contexts.
    """

    models: Models
    widths: Tensor
    offsets: Tensor
    context: Tensor | None = None

    @property
    def on_candidates(self) -> bool:
        """Whether the models are models of the candidates of a finite set, not of joint rows."""
        return isinstance(self.models, FiniteCandidates)

    @cached_property
    def of_candidates(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """The means, the standard deviations and the half-widths at the candidates of a finite set,
        ``m x N`` each; None for models of joint rows."""
        if not isinstance(self.models, FiniteCandidates):
            return None
        std = self.models.std
        half_width = torch.addcmul(self.offsets[:, None], self.widths[:, None], std)
        return self.models.mean, std, half_width

    def at_candidate(self, model: Tensor | None, row: Tensor) -> list[Tensor]:
        """The mean, standard deviation, width and offset at a candidate, of shape ``(1,)`` each.

        Args:
            model: The position of a model, of shape ``(1,)``; None for the only one.
            row: The row of the candidate, of shape ``(1,)``.
        """
        of_candidates: Any = self.of_candidates
        mean, std, _ = of_candidates
        if model is None:
            moments = (values[0].index_select(0, row) for values in (mean, std))
            return [*moments, self.widths, self.offsets]
        return [mean[model, row], std[model, row], self.widths[model], self.offsets[model]]

    def at_point(self, position: int, at: Tensor) -> list[Tensor]:
        """The mean, standard deviation, width and offset of one of the models of joint rows, 0-dim
        each.

        Args:
            position: The position of the model.
            at: The joint row, ``d + d_z``.
        """
        models: Any = self.models
        mean, std, _ = models.moments_without(position, [], at)
        return [mean, std, self.widths[position], self.offsets[position]]

    def upper(self) -> UpperBounds:
        """The upper bounds of models of joint rows, as a function of the point."""
        return self._signed(1)

    def negated_lower(self) -> UpperBounds:
        """Upper bounds with negated widths and offsets, which are the lower bounds."""
        return self._signed(-1)

    def _signed(self, sign: int) -> UpperBounds:
        models: Any = self.models  # of joint rows
        return UpperBounds(models, sign * self.widths, sign * self.offsets, self.context)
