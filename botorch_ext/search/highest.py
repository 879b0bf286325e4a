"""Highest: the argmax over points, and models, of upper confidence bounds."""

from __future__ import annotations

import math

from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.kernels.batching import members_of
from botorch_ext.search.box import ConfidenceBound, maximize_bound
from botorch_ext.search.models import AverageBound, HighestBound, UpperBounds, maximize_over_models


def best_in_box(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    incumbents: Tensor,
    contenders: list[int] | Tensor | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, int]:
    """The point of a box with the highest of m upper bounds, and the model that gave it.

    Args:
        bounds: Of m models.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points of the box that join the screening.
        contenders: Which models count, or of each whether it does, ``(m,)``; None for all.
        probabilities: ``m``: the bounds are averaged with these weights, and the model is the most
            probable one.
    """
    n, m = bounds.models.num_observations, bounds.models.num_models
    if probabilities is not None:
        average = AverageBound(bounds, probabilities)
        x = maximize_bound(average, box, seed, incumbents, n, m)
        return x, int(probabilities.argmax())
    if contenders is None:
        contenders = list(range(m))
    elif isinstance(contenders, Tensor):
        contenders = [position for position, counts in enumerate(contenders.tolist()) if counts]
    if len(contenders) == 1:  # what GP-UCB with this model does
        (position,) = contenders
        single, width = bounds.models.single(position), bounds.widths[position]
        bound = ConfidenceBound(single, width, context=bounds.context)
        x = maximize_bound(bound, box, seed, incumbents, n)
        return x, position
    if len(contenders) < m:
        bounds = bounds.select(contenders)
    if not box.is_filled:
        highest = HighestBound(bounds)
        x = maximize_bound(highest, box, seed, incumbents, n, len(contenders))
        return x, contenders[highest.model_at(x)]
    x, place = maximize_over_models(bounds, box, seed, extra=incumbents)
    return x, contenders[place]


def best_pair(
    bounds: Tensor,
    contenders: list[int] | Tensor | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The candidate with the highest of ``m x N`` bounds and the model that gave it, ``(1,)`` each;
    of equal ones the first; None for the only model. Arguments as for `best_in_box`."""
    if probabilities is not None:
        row = (probabilities @ bounds).argmax(dim=0, keepdim=True)
        return row, probabilities.argmax(dim=0, keepdim=True)
    if len(bounds) == 1:
        return bounds.argmax(dim=1), None
    if isinstance(contenders, Tensor):
        bounds, contenders = bounds.masked_fill(~contenders.unsqueeze(-1), -math.inf), None
    elif contenders is not None:
        bounds = members_of(bounds, contenders)
    highest, which = bounds.max(dim=0)
    row = highest.argmax(dim=0, keepdim=True)
    place = which[row]
    return row, place if contenders is None else place.new_tensor(contenders)[place]
