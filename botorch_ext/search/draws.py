"""The maximiser of a function that is drawn from a posterior."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.ranks import highest_first
from botorch_ext.models.joint_draws import JointDraw
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.mixed import MixedSearch
from botorch_ext.search.objectives import FunctionObjective, on_unit_cube
from botorch_ext.search.screening import near_points, screening_points_with, spread_best

# A point whose mean is lower than another's by this many standard deviations of both is not drawn;
# the probability that it is the maximiser is below 2e-11.
_REACH = 6.6
# The numbers of points of a set that are drawn first, that are added at a time, and the largest
# total.
_AT_ONCE, _MORE, _MOST = 1536, 512, 4096
# The number of points of a box that are drawn first, a quarter of them near the best results; the
# numbers of ascents and of points near the best ones in each round; and their distances, in sides
# of the box.
_NUM_SCREENED, _NUM_STARTS, _NUM_NEAR = 512, 6, 24
_ROUNDS = ((0.1, 0.03), (0.03, 0.01), (0.01, 0.003))
_TOLERANCE = 1e-9


@torch.no_grad()
def best_of_points(draw: JointDraw, X: Tensor, seed: int) -> int:
    """The row of the largest of ``n x d`` points under a draw.

    All points that can be the maximiser are drawn jointly. If there are more than 1536, a random
    part is drawn first, then points that can still be larger given these, the most promising first,
    until none is left or 4096 are drawn. If no more are needed, each row has its probability of
    being the maximiser under the joint posterior, up to 2e-11 n.
    """
    rows = _within_reach(draw, X, torch.arange(len(X), device=X.device))
    if len(rows) > _AT_ONCE:
        order = host.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
        rows = rows[order.to(rows.device)]
    drawn, rest = rows[:_AT_ONCE], rows[_AT_ONCE:]
    values = draw.at(X[drawn])
    while len(rest) and len(drawn) < _MOST:
        mean, std = draw.mean_and_std(X[rest])
        open_rows = mean + _REACH * std > values.max()
        promise = (mean + 2 * std).masked_fill(~open_rows, -torch.inf)
        order = highest_first(promise, int(open_rows.sum()))
        more, rest = rest[order[:_MORE]], rest[order[_MORE:]]
        if not len(more):
            break
        values = torch.cat([values, draw.at(X[more])])
        drawn = torch.cat([drawn, more])
    return int(drawn[values.argmax()])


def _within_reach(draw: JointDraw, X: Tensor, rows: Tensor) -> Tensor:
    """The rows of points that can be the maximiser."""
    mean, std = draw.mean_and_std(X[rows])
    lowest = (mean - _REACH * std).max()
    return rows[mean + _REACH * std >= lowest]


@torch.no_grad()
def best_in_box(draw: JointDraw, box: Box, seed: int, incumbents: Tensor) -> Tensor:
    """The ``d``-dim point of a box where a draw is largest, among the points that a search
    evaluates.

    The draw is exact at every evaluated point. These are screened points, then in each of three
    rounds the ends of ascents on the mean of the draw given its values so far, and points around
    the best ones, nearer in each round. The search decides how nearly the maximiser is found: a
    draw of a rough kernel always varies between the points.

    Args:
        draw: The draw.
        box: The box.
        seed: The seed of the evaluated points.
        incumbents: More points of the box to evaluate, ``n x d``.
    """
    if box.listed is not None:
        return box.listed[best_of_points(draw, box.listed, seed)]
    X = screening_points_with(incumbents, box, _NUM_SCREENED, seed)
    values, objective = draw.at(X), FunctionObjective(draw.mean)
    for number, distances in enumerate(_ROUNDS):
        starts = X[spread_best(values, X, box, _NUM_STARTS)]
        if box.is_filled:
            scaled = on_unit_cube(objective.value_and_gradient, box, values)
            ends, _ = batched_lbfgsb(scaled, box.to_unit(starts), _TOLERANCE, race=True)
            ends = box.from_unit(ends)
        else:
            ends, _ = MixedSearch(objective, box, values, _TOLERANCE).best(starts)
        centers = X[highest_first(values, 2)]
        near = near_points(centers, box, _NUM_NEAR, seed + number + 1, distances)
        more = torch.cat([ends, near])
        values, X = torch.cat([values, draw.at(more)]), torch.cat([X, more])
    return X[values.argmax()]
