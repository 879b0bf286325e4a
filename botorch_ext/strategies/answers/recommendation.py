"""Recommendation: the point to settle for, with its prediction and its probability."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.domains.ranks import highest_first
from botorch_ext.limits import LEAST_FEASIBILITY
from botorch_ext.state import Immutable
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.predictions import Predictions

# How many evaluated points are compared; joint draws at more points would take long.
_MOST_COMPARED = 512


@dataclass(frozen=True, eq=False)
class Recommendation(Immutable):
    """The point to settle for now, with its prediction.

    Args:
        x: The ``d``-dim point.
        context: Its ``d_z``-dim context, or None.
        prediction: The `Predictions` of this one point.
        probability: The posterior probability that no evaluated point is better,
            P(f(x) >= max over evaluated x' of f(x')), from joint draws of all models.
        shortfall: By how much the best evaluated point is expected to be better than this point,
            E max(max over evaluated x' of f(x') - f(x), 0), in units of the observations. It is 0
            if the point is surely the best.
        is_evaluated: Whether the point was evaluated.
        feasibility: The probability that a trial at the point succeeds and that all outcomes,
            without their noise, are within their limits, each taken as independent of the others.
            If it is less than 0.9, no point was found that has more than 0.9; with limits, this is
            the one that has most. None for other methods than `integrated_ei`, and without limits
            until a trial has failed.
    """

    x: Tensor
    context: Tensor | None
    prediction: Predictions
    probability: float
    shortfall: float
    is_evaluated: bool
    feasibility: float | None = None

    def __repr__(self) -> str:
        """The point with its prediction and its probability, in a few lines."""
        known = "evaluated" if self.is_evaluated else "not evaluated"
        prediction = repr(self.prediction).split("\n  ")[1:]
        lines = [
            f"Recommendation of a point that was {known}",
            *prediction,
            f"probability that no evaluated point is better: {self.probability:.3g}",
            f"expected shortfall from the best evaluated point: {self.shortfall:.3g}",
        ]
        if self.feasibility is not None:
            lines += lines_of_feasibility(self.feasibility)
        return "\n  ".join(lines)

    @property
    def params(self) -> dict[str, Any]:
        """The point by name, as ``params`` of a trial."""
        return self.prediction.domain.params_of(self.x)

    def negated(self) -> Recommendation:
        """The recommendation for -f, which is minimised."""
        return replace(self, prediction=self.prediction.negated())


def lines_of_feasibility(feasibility: float) -> list[str]:
    """The feasibility of a recommended point, as people read it, and whether it is too small."""
    lines = [f"probability that a trial is feasible: {feasibility:.3g}"]
    if feasibility < LEAST_FEASIBILITY:
        lines.append(f"no point was found where it is {LEAST_FEASIBILITY:g} or more")
    return lines


def recommendation(
    mixture: GPMixture,
    row: Tensor,
    evaluated: Tensor,
    domain: Domain,
    seed: int,
    context_domain: Domain | None = None,
    feasibility: float | None = None,
) -> Recommendation:
    """The recommendation of a point, by joint draws.

    Args:
        mixture: The model of f.
        row: ``d + d_z``, the point with its context.
        evaluated: ``n x (d + d_z)``, the evaluated points in the same context. The 512 points with
            the highest mean plus two standard deviations are compared.
        domain: The domain of the points.
        seed: The seed of the draws.
        context_domain: The domain of the contexts, or None.
        feasibility: As for `Recommendation`.
    """
    is_here = are_among(evaluated, row[None])
    others = most_promising(mixture, evaluated[~is_here])
    draws = mixture.draws(torch.cat([row[None], others]), seed)
    best = draws[..., 1:].amax(dim=-1) if draws.shape[-1] > 1 else draws[..., 0]
    behind = (best - draws[..., 0]).clamp_min(0)
    prediction = Predictions.of(mixture, row[None], domain, context_domain=context_domain)
    return Recommendation(
        prediction.x[0],
        None if prediction.contexts is None else prediction.contexts[0],
        prediction,
        mixture.average((behind <= 0).to(behind)),
        mixture.average(behind),
        bool(is_here.any()),
        feasibility,
    )


def most_promising(mixture: GPMixture, rows: Tensor) -> Tensor:
    """The different rows among ``n x (d + d_z)``. If there are more than 512, those with the
    highest mean plus two standard deviations are left."""
    if not len(rows):
        return rows
    rows = rows.unique(dim=0)
    if len(rows) <= _MOST_COMPARED:
        return rows
    mean, std = mixture.mean_and_std(rows)
    return rows[highest_first(mean + 2 * std, _MOST_COMPARED)]


def are_among(rows: Tensor, others: Tensor) -> Tensor:
    """A mask of the ``n x d`` rows that are among ``m x d`` other rows."""
    return (rows[:, None] == others).all(dim=-1).any(dim=-1)
