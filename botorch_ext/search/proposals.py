"""Proposals: points of a box among which several confidence bounds have their maxima."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.box import ConfidenceBound
from botorch_ext.search.objectives import lowest_for_others, on_unit_cube
from botorch_ext.search.screening import near_points, screening_points, spread_best

# Screened points, one in four near the best so far, and climbs under each bound.
_NUM_RAW, _NUM_STARTS, _TOLERANCE = 512, 2, 1e-7


@torch.no_grad()
def proposals(
    models: CandidateModels,
    widths: Tensor,
    box: Box,
    seed: int,
    incumbents: Tensor,
    context: Tensor | None = None,
) -> Tensor:
    """Screened points of a box, and the maxima that climbs from some of them find under each bound
    mean + width * std.

    Args:
        models: m models.
        widths: ``m x k``, of the bounds of each model; negative ones make lower bounds.
        box: Where.
        seed: Seeds the screening points.
        incumbents: ``n x d`` points of the box that are screened too.
        context: ``d_z``: the models see points joined with this context.

    Returns:
        ``n x d`` points of the box.
    """
    if box.listed is not None:
        return box.listed
    X = screening_points(box, _NUM_RAW, seed)
    if len(incumbents):
        near = near_points(incumbents, box, _NUM_RAW // 4, seed)
        X = torch.cat([incumbents, near, X[len(near) :]])
    if not box.is_filled:  # no climb goes there
        return X
    mean, std = models.mean_and_std(with_context(X, context))
    found = [X]
    for position in range(models.num_models):
        of_model = mean[position] + widths[position][:, None] * std[position]  # (k, n)
        values = lowest_for_others(of_model)
        starts = X[spread_best(values, X, box, _NUM_STARTS)]  # (k, starts, d)
        model = models.single(position)
        own = widths[position].repeat_interleave(starts.shape[1])
        bound = ConfidenceBound(model, own, context=context)
        scaled = on_unit_cube(bound.value_and_gradient, box, values)
        flat = box.to_unit(starts.flatten(0, 1))
        ends, _ = batched_lbfgsb(scaled, flat, _TOLERANCE, together=True)
        found.append(box.from_unit(ends))
    return torch.cat(found)
