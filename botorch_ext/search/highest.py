"""Highest: the argmax over points, and models, of upper confidence bounds."""

from __future__ import annotations

from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.search.box import ConfidenceBound, maximize_bound
from botorch_ext.search.models import AverageBound, UpperBounds, maximize_over_models


def best_in_box(
    bounds: UpperBounds,
    box: Box,
    seed: int,
    incumbents: Tensor,
    contenders: list[int] | None = None,
    probabilities: Tensor | None = None,
) -> tuple[Tensor, int]:
    """The point of a box with the highest of m upper bounds, and the model that gave it.

    Args:
        bounds: Of m models.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points of the box that join the screening.
        contenders: Which models count; None for all.
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
    if len(contenders) == 1:  # what GP-UCB with this model does
        (position,) = contenders
        single, width = bounds.models.single(position), bounds.widths[position]
        bound = ConfidenceBound(single, width, context=bounds.context)
        x = maximize_bound(bound, box, seed, incumbents, n)
        return x, position
    if len(contenders) < m:
        bounds = bounds.select(contenders)
    x, place = maximize_over_models(bounds, box, seed, extra=incumbents)
    return x, contenders[place]


def best_pair(
    bounds: Tensor, contenders: list[int] | None = None, probabilities: Tensor | None = None
) -> tuple[int, int]:
    """The candidate with the highest of ``m x N`` bounds and the model that gave it; of equal ones
    the first. Arguments as for `best_in_box`."""
    if len(bounds) == 1:
        return int(bounds.argmax()), 0
    if probabilities is not None:
        return int((probabilities @ bounds).argmax()), int(probabilities.argmax())
    if contenders is not None:
        bounds = bounds[contenders]
    highest, which = bounds.max(dim=0)
    index = int(highest.argmax())
    place = int(which[index])
    return index, place if contenders is None else contenders[place]
