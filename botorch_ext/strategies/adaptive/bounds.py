"""The confidence bounds of several models of the same data, in one context."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.search.intersected import HalfWidths, IntersectedBounds, intersected
from botorch_ext.search.models import UpperBounds
from botorch_ext.strategies.adaptive.predictions import Interval

Models = CandidateModels | FiniteCandidates


@dataclass(eq=False)
class Bounds:
    """The confidence bounds of each of m models.

    A model has the bounds mean +- (width * std + offset). If it is enlarged at each point, eps
    ||zeta||_1 is added to the half-width. If it has several ridges, its bounds are the intersection
    of those at each ridge.

    Args:
        models: The models of joint rows, or of the candidates of a finite set.
        widths: The ``m R`` widths of the models at each of R ridges.
        offsets: The ``m R`` offsets.
        context: The ``d_z`` numbers of the context, which models of joint rows see after the
            action. None: no contexts.
        enlargements: The ``m R`` numbers eps. None: no enlargement at each point.
        caps: The ``m R`` caps of enlargements, as for `HalfWidths`.
        at_ridges: The ``m R`` models at every ridge; those of one model follow each other. None:
            the models themselves, with R = 1.
        num_ridges: R, the number of ridges.
        limits: The ``m`` numbers B if there are several ridges: intervals are kept within the
            prior mean +- B times the prior standard deviation. What a search maximises is not, so
            that points which are unknown alike do not tie.
    """

    models: Models
    widths: Tensor
    offsets: Tensor
    context: Tensor | None = None
    enlargements: Tensor | None = None
    caps: Tensor | None = None
    at_ridges: Models | None = None
    num_ridges: int = 1
    limits: Tensor | None = None

    @property
    def on_candidates(self) -> bool:
        """Whether the models are models of the candidates of a finite set, not of joint rows."""
        return isinstance(self.models, FiniteCandidates)

    @property
    def all_models(self) -> Models:
        """The models at every ridge."""
        return self.models if self.at_ridges is None else self.at_ridges

    @cached_property
    def half(self) -> HalfWidths:
        """The half-widths of the models at every ridge."""
        return HalfWidths(self.widths, self.offsets, self.enlargements, self.caps)

    @cached_property
    def of_candidates(self) -> tuple[Tensor, Tensor, Tensor] | None:
        """The means, the standard deviations and the half-widths at the candidates of a finite set,
        ``m R x N`` each; None for models of joint rows."""
        models = self.all_models
        if not isinstance(models, FiniteCandidates):
            return None
        std = models.std
        norms = None if self.enlargements is None else models.weight_norms_of_candidates()
        return models.mean, std, self.half.of(std, norms)

    def within_candidates(self, sign: int) -> Tensor:
        """The upper bounds of each model at the candidates, ``m x N``, without limits; with sign -1
        the lower ones."""
        mean, _, half_width = cast(tuple[Tensor, ...], self.of_candidates)
        values = mean + half_width if sign > 0 else mean - half_width
        return values if self.at_ridges is None else intersected(values, self.num_ridges, sign)

    def bands(self, X: Tensor, domain: Domain) -> tuple[Tensor, Tensor]:
        """The middles and the half-widths of the bounds at points of the domain.

        Args:
            X: ``n x d`` points.
            domain: The domain of the actions.

        Returns:
            ``m x n`` each.
        """
        if isinstance(domain, FiniteSet) and self.of_candidates is not None:
            index, models = domain.index(X), cast(FiniteCandidates, self.all_models)
            if self.at_ridges is None:
                mean, _, half_width = (models.at(values, index) for values in self.of_candidates)
                return mean, half_width
            ends = [models.at(self.within_candidates(sign), index) for sign in (1, -1)]
        elif self.at_ridges is None:
            joint, models = with_context(X, self.context), cast(CandidateModels, self.models)
            mean, std = models.mean_and_std(joint)
            norms = None if self.enlargements is None else models.weight_norms(joint)
            return mean, self.half.of(std, norms)
        else:
            ends = [self.upper().values(X), self.negated_lower().values(X)]
        prior, spread = self.models.prior(with_context(X, self.context))
        reach = cast(Tensor, self.limits)[:, None] * spread
        upper, lower = (end.clamp(prior - reach, prior + reach) for end in ends)
        # Bounds of a refuted model may pass each other.
        return (upper + lower) / 2, (upper - lower).clamp_min(0) / 2

    def at_candidate(self, model: Tensor | None, row: Tensor) -> list[Tensor]:
        """The `numbers` at a candidate, each of shape ``(R,)`` or ``(1,)``, without waiting for the
        device.

        Args:
            model: The position of a model, of shape ``(1,)``; None for the only one.
            row: The row of the candidate, of shape ``(1,)``.
        """
        mean, std, half_width = cast(tuple[Tensor, ...], self.of_candidates)
        if self.at_ridges is None and self.enlargements is None:
            if model is None:
                moments = (values[0].index_select(0, row) for values in (mean, std))
                return [*moments, self.widths, self.offsets]
            return [mean[model, row], std[model, row], self.widths[model], self.offsets[model]]
        model = torch.zeros_like(row) if model is None else model
        rows = self.num_ridges * model + torch.arange(self.num_ridges, device=row.device)
        mean, std, half_width = (values[rows, row] for values in (mean, std, half_width))
        widths = self.widths[rows]
        numbers = [mean, std, widths, half_width - widths * std]
        if self.limits is not None:
            candidates = cast(FiniteCandidates, self.models)
            first = 0 if candidates.shard is None else candidates.shard.start
            point = candidates.candidates.index_select(0, row + first)
            numbers += [each[model, 0] for each in self.models.prior(point)]
        return numbers

    @torch.no_grad()
    def numbers(self, position: int, at: int | Tensor) -> list[Tensor]:
        """The numbers of `interval_of` of a model, each of shape ``(R,)`` or ``(1,)``.

        Args:
            position: The position of the model.
            at: The row of a candidate, or a joint row, ``d + d_z``.
        """
        rows = self.rows_of(position)
        if self.of_candidates is not None:
            models = cast(FiniteCandidates, self.all_models)
            mean, std, half_width = (models.at(each, at)[rows] for each in self.of_candidates)
            offsets = self.offsets[rows]
            if self.enlargements is not None:
                offsets = half_width - self.widths[rows] * std
        else:
            mean, std, _ = self.moments_without(position, [], at)
            offsets = self.offsets[rows]
            if self.enlargements is not None:
                norms = self.norms_at(position, at)
                half_width = self.half.select(rows).of(std[:, None], norms[:, None])[:, 0]
                offsets = half_width - self.widths[rows] * std
        return [mean, std, self.widths[rows], offsets, *self.prior_at(position, at)]

    def rows_of(self, position: int) -> slice:
        """The rows of a model among the models at every ridge."""
        num = self.num_ridges
        return slice(num * position, num * (position + 1))

    def moments_without(
        self, position: int, rows: Sequence[int], at: int | Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The means, the standard deviations and the information gains of a model at each ridge
        without some observations, ``R`` each.

        Args:
            position: The position of the model.
            rows: The rows of the observations to leave out.
            at: The row of a candidate, or a joint row, ``d + d_z``.
        """
        models: Any = self.all_models
        own = range(len(models))[self.rows_of(position)]
        moments = [models.moments_without(row, rows, at) for row in own]
        mean, std, gain = (torch.stack(each) for each in zip(*moments, strict=True))
        return mean, std, gain

    def norms_at(self, position: int, at: int | Tensor) -> Tensor:
        """The sums of absolute weights of the known observations at each ridge, ``R``."""
        models: Any = self.all_models
        if self.on_candidates:
            norms = models.at(models.weight_norms_of_candidates(), at)
        else:
            norms = models.weight_norms(cast(Tensor, at).unsqueeze(0))[:, 0]
        return norms[self.rows_of(position)]

    def prior_at(self, position: int, at: int | Tensor) -> list[Tensor]:
        """The prior mean and standard deviation of a model, of shape ``(1,)``, if bounds have
        limits; else nothing."""
        if self.limits is None:
            return []
        if isinstance(self.models, FiniteCandidates):
            point = self.models.candidates[at].unsqueeze(0)
        else:
            point = cast(Tensor, at).unsqueeze(0)
        return [each[position] for each in self.models.prior(point)]

    def upper(self) -> UpperBounds:
        """The upper bounds of models of joint rows, as a function of the point."""
        return self._signed(1)

    def negated_lower(self) -> UpperBounds:
        """Upper bounds with negated widths and offsets, which are the lower bounds."""
        return self._signed(-1)

    def _signed(self, sign: int) -> UpperBounds:
        models: Any = self.all_models  # of joint rows
        if self.at_ridges is None and self.enlargements is None:
            return UpperBounds(models, sign * self.widths, sign * self.offsets, self.context)
        return IntersectedBounds(
            models, context=self.context, **vars(self.half), num_ridges=self.num_ridges, sign=sign
        )


def interval_of(
    numbers: Sequence[float], ridges: Sequence[float] | None, limit: float = math.inf
) -> Interval:
    """The confidence interval of a model at a point.

    Args:
        numbers: The mean, the standard deviation, the width and the offset; with ridges, R of each,
            then the prior mean and standard deviation.
        ridges: The R multiples of the ridge of the model. None: the bounds have one ridge.
        limit: B, in units of the prior standard deviation.

    Returns:
        The interval. With ridges its numbers are those of the ridge with the least upper bound.
    """
    if ridges is None:
        return Interval(*numbers)
    num = len(ridges)
    rows = list(zip(*(numbers[num * i : num * (i + 1)] for i in range(4)), strict=True))
    uppers = [mean + width * std + offset for mean, std, width, offset in rows]
    lowers = [mean - width * std - offset for mean, std, width, offset in rows]
    top = uppers.index(min(uppers))
    prior, spread = numbers[4 * num :]
    least, most = prior - limit * spread, prior + limit * spread
    upper, lower = (min(max(end, least), most) for end in (uppers[top], max(lowers)))
    return Interval(*rows[top], ridge=ridges[top], upper=upper, lower=lower)
