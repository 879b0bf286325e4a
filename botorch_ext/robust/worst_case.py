"""The max-min of upper confidence bounds on a box: the centre and the model whose worst case over a
ball is best."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from botorch_ext.robust.box_balls import BoxBalls
from botorch_ext.search.ascent import feasible_ascent
from botorch_ext.search.box import (
    ConfidenceBound,
    near_points,
    on_faces,
    on_unit_cube,
    spread_best,
)
from botorch_ext.search.models import UpperBounds

# Multiplications that screening may take, n^2 for each point and model, and the least and the most
# centres it looks at.
_SCREENING_WORK, _FEWEST, _MOST = 2**31, 128, 1024
# Those that the offsets around one centre may take, where there are to be more of them.
_WORK_AROUND = 2**25
# Centres of each model whose worst case is found in full, models that go on from there, and the
# starts of each.
_NUM_CENTERS, _NUM_FINALISTS, _NUM_STARTS = 8, 3, 32
# Coarse steps of each start, and those of the descents inside them.
_COARSE_STEPS, _HASTY_DESCENT = 6, 6
# Ends no further apart than this, relative to the sides of the box, are of one ridge.
_APART = 0.05
# How many ridges are climbed a few steps, with hasty descents; then the best and the next best are
# climbed on, unless it is further behind than this, relative to the spread of the screened values.
_NUM_RIDGES, _FEW_STEPS, _CLOSE = 4, 4, 0.002
# Where the worst point stays as the centre moves there is a plateau, and no slope leads on: so many
# centres, at the least and at the most, around each of the two best ends are screened, at these
# distances in sides of the box.
_FEW_AROUND, _MOST_AROUND, _DISTANCES = 32, 128, (0.02, 0.05, 0.1)
# Steps along a ridge, the first of them relative to the sides of the box, and the least.
_RIDGE_STEPS, _FIRST_STEP, _LEAST_STEP = 25, 0.02, 1e-9
# Steps of the descents on the way: at the top of a ridge bounds hardly vary along the sphere.
_BRISK_DESCENT = 30
# They end when no more than this is to be gained, relative to the spread of the screened values.
_RIDGE_TOLERANCE = 1e-10
# Offsets that are screened around the centres that count, for each coordinate and one more: a climb
# is drawn to centres whose narrow worst cases fewer offsets miss.
_MANY_OFFSETS = 256


class OwnBounds:
    """Confidence bounds of m models, each at points of its own: an `Objective` on ``n x m x d``.

    Args:
        bounds: Of m models; with negative widths and offsets they are lower bounds.
    """

    def __init__(self, bounds: UpperBounds) -> None:
        self._offsets = bounds.offsets
        self._parts: list[tuple[ConfidenceBound, Tensor]] = []
        for part in bounds.models.parts:
            rows = torch.as_tensor(part.positions, device=bounds.widths.device)
            self._parts.append((ConfidenceBound(part.model, bounds.widths[rows, None]), rows))

    def value(self, X: Tensor) -> Tensor:
        values = X.new_empty(X.shape[:-1])
        for bound, rows in self._parts:
            values[:, rows] = bound.value(X[:, rows].transpose(0, 1)).mT
        return values + self._offsets

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, gradients = X.new_empty(X.shape[:-1]), torch.empty_like(X)
        for bound, rows in self._parts:
            value, gradient = bound.value_and_gradient(X[:, rows].transpose(0, 1))
            values[:, rows] = value.mT
            gradients[:, rows] = gradient.transpose(0, 1)
        return values + self._offsets, gradients


class WorstCase:
    """The least bound of one model within reach of a point: an `Objective`.

    Args:
        bounds: Of one model.
        balls: What is within reach.
    """

    def __init__(self, bounds: UpperBounds, balls: BoxBalls) -> None:
        self.own = OwnBounds(bounds)
        self.balls = balls

    def value(self, X: Tensor) -> Tensor:
        return self.balls.worst_case(self.own, X.unsqueeze(1))[0].squeeze(1)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, Z = self.balls.worst_case(self.own, X.unsqueeze(1))
        return values.squeeze(1), self._gradients(X, Z.squeeze(1))

    def cuts(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Bounds at several perturbed points of one centre and how they change as it moves: ``s``
        values and ``s x d`` gradients. The least of them is the worst case."""
        values, Z = self.balls.local_worst_cases(self.own, x[None, None])
        Z = Z.flatten(0, 2)
        return values.flatten(), self._gradients(x.expand_as(Z), Z)

    @torch.enable_grad()
    def _gradients(self, X: Tensor, Z: Tensor) -> Tensor:
        _, gradient = self.own.value_and_gradient(Z.unsqueeze(1))
        X = X.detach().clone().requires_grad_()
        moved = (self.balls.follow(X, Z) * gradient.squeeze(1)).sum()
        return torch.autograd.grad(moved, X)[0]


def maximize_worst_case(
    bounds: UpperBounds, balls: BoxBalls, seed: int, extra: Tensor | None = None
) -> tuple[Tensor, int]:
    """The centre and the model with the highest worst case: argmax over x and u of min over delta
    of U_u(x + delta).

    All models are screened at the same perturbed points. The best centres of the best models climb
    along gradients; at the top two perturbations are often equally bad, on a ridge that gradients
    cannot follow, so the last steps solve a linear programme over all of them. They see more
    perturbations than the screening did. Around the two best ends centres are screened again, since
    an end may lie on a plateau.

    Args:
        bounds: Of m models.
        balls: What is within reach of each point.
        seed: Seeds the screening centres.
        extra: ``n x d`` more centres to screen, such as the best so far.

    Returns:
        The ``d``-dim centre and the position of its model.
    """
    box, models = balls.box, bounds.models
    work = (models.num_observations + 1) ** 2 * models.num_models * len(balls.offsets)
    affordable = _SCREENING_WORK // work
    X = box.sample(min(max(affordable, _FEWEST), _MOST), seed)
    # Worst cases are highest at the faces less often than bounds are.
    quarter = X[::4].clone()
    X[::4] = on_faces(quarter, box, torch.Generator().manual_seed(seed))
    if extra is not None:
        X = torch.cat([extra, X])
    values = _screened(bounds, balls, X)
    top = values.topk(min(_NUM_CENTERS, len(X)), dim=-1).indices  # (m, c)
    # Far from the top a few steps of descent are enough.
    hasty = balls.searched(_HASTY_DESCENT)
    least, _ = hasty.worst_case(OwnBounds(bounds), X[top].transpose(0, 1))
    finalists = least.amax(dim=0).topk(min(_NUM_FINALISTS, models.num_models)).indices.tolist()
    singles = {position: bounds.select([position]) for position in finalists}
    climbed: list[tuple[float, Tensor, int]] = []
    by_height = itemgetter(0)
    for position, single in singles.items():
        objective = WorstCase(single, hasty)
        starts = X[spread_best(values[position], X, box, _NUM_STARTS)]
        starts = torch.cat([X[top[position, least[:, position].argmax()]].unsqueeze(0), starts])
        ends, heights = feasible_ascent(
            on_unit_cube(objective.value_and_gradient, box, values),
            box.to_unit(starts),
            num_steps=_COARSE_STEPS,
        )
        climbed += [
            (height, end, position) for height, end in zip(heights.tolist(), ends, strict=True)
        ]
    climbed.sort(key=by_height, reverse=True)
    ridges: list[tuple[Tensor, int]] = []
    for _, end, position in climbed:
        if all(p != position or float((u - end).abs().max()) > _APART for u, p in ridges):
            ridges.append((end, position))
    spread = float(values.max() - values.min())
    n = models.num_observations
    closer = _with_more_offsets(balls, n, _HASTY_DESCENT)
    brisk = closer.searched(_BRISK_DESCENT)
    found: list[tuple[float, Tensor, int]] = []

    def climb(x: Tensor, position: int, within: BoxBalls, num_steps: int) -> None:
        tops = [(value, top) for value, top, other in found if other == position]
        objective = WorstCase(singles[position], within)
        x, value = _along_ridge(objective, x, _RIDGE_TOLERANCE * spread, tops, num_steps)
        found.append((value, x, position))

    for end, position in ridges[:_NUM_RIDGES]:
        climb(box.from_unit(end), position, closer, _FEW_STEPS)
    ahead = sorted(found, key=by_height, reverse=True)[:2]
    num_around = min(max(affordable, _FEW_AROUND), _MOST_AROUND)
    for i, (value, x, position) in enumerate(ahead):
        around = near_points(x.unsqueeze(0), box, num_around, seed, _DISTANCES)
        around = around[_screened(singles[position], balls, around)[0].topk(_NUM_CENTERS).indices]
        heights = WorstCase(singles[position], closer).value(around)
        if heights.max() > value:
            climb(around[heights.argmax()], position, closer, _FEW_STEPS)
            ahead[i] = found[-1]
    ahead.sort(key=by_height, reverse=True)
    found.clear()
    for value, x, position in ahead:
        if value >= ahead[0][0] - _CLOSE * spread:
            climb(x, position, brisk, _RIDGE_STEPS)
    _, x, position = max(found, key=by_height)
    return x, position


def lowest_bound(bounds: UpperBounds, balls: BoxBalls, x: Tensor) -> tuple[Tensor, int]:
    """The point within reach and the model with the lowest bound: argmin over delta and u.

    Args:
        bounds: Of m models.
        balls: What is within reach.
        x: ``d``, the centre.

    Returns:
        The ``d``-dim point and the position of its model.
    """
    centers = x.expand(1, bounds.models.num_models, -1)
    closer = _with_more_offsets(balls, bounds.models.num_observations, balls.max_iterations)
    values, Z = closer.worst_case(OwnBounds(bounds), centers)
    position = int(values[0].argmin())
    return Z[0, position].clone(), position


def _screened(bounds: UpperBounds, balls: BoxBalls, X: Tensor) -> Tensor:
    """The least bounds of m models at the offsets around n points, ``m x n``."""
    Z = balls.points(X, balls.offsets.unsqueeze(1))
    return bounds.values(Z.flatten(0, 1)).view(-1, *Z.shape[:-1]).amin(dim=1)


def _with_more_offsets(balls: BoxBalls, num_observations: int, max_iterations: int) -> BoxBalls:
    """The same balls with more offsets, as far as n observations leave them affordable."""
    most = min(_MANY_OFFSETS * (balls.box.dim + 1), _WORK_AROUND // (num_observations + 1) ** 2)
    return balls.searched(max_iterations, most)


def _along_ridge(
    objective: WorstCase,
    x: Tensor,
    tolerance: float,
    tops: Sequence[tuple[float, Tensor]],
    num_steps: int,
) -> tuple[Tensor, float]:
    """Climbs by linear programmes in a trust region; never ends below its start. Ends early where a
    higher one of the tops of other ridges is within a step."""
    box = objective.balls.box
    side, step = box.upper - box.lower, _FIRST_STEP
    values, gradients = objective.cuts(x)
    for _ in range(num_steps):
        value = float(values.min())
        if any(top >= value and bool(((end - x).abs() <= step * side).all()) for top, end in tops):
            break
        move, predicted = _steepest(
            (values - value).tolist(),
            (gradients * side).tolist(),
            ((box.lower - x) / side).tolist(),
            ((box.upper - x) / side).tolist(),
            step,
        )
        slack = 10 * torch.finfo(x.dtype).eps * abs(value)
        if predicted <= max(tolerance, slack):
            break
        new = x + side * x.new_tensor(move)
        new = torch.minimum(torch.maximum(new, box.lower), box.upper)
        new_values, new_gradients = objective.cuts(new)
        gain = float(new_values.min()) - value
        if gain > 0:
            x, values, gradients = new, new_values, new_gradients
        step = 2 * step if gain > 0.5 * predicted else step if gain > 0.1 * predicted else step / 4
        if step < _LEAST_STEP:
            break
    return x, float(values.min())


def _steepest(
    heights: list[float],
    gradients: list[list[float]],
    low: list[float],
    high: list[float],
    step: float,
) -> tuple[list[float], float]:
    """The move within the step that raises the least of several linear functions most, and by how
    much."""
    slopes = np.asarray(gradients)
    scale = max(float(np.abs(slopes).max()), 1e-300)
    d = slopes.shape[1]
    # In units of the step and of what the steepest function gains in it.
    unit = scale * step
    limits = [(max(a / step, -1.0), min(b / step, 1.0)) for a, b in zip(low, high, strict=True)]
    result = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-slopes / scale, np.ones((len(slopes), 1))]),
        b_ub=np.asarray(heights) / unit,
        bounds=[(min(a, 0.0), max(b, 0.0)) for a, b in limits] + [(None, None)],
    )
    if result.x is None:
        return [0.0] * d, 0.0
    return (step * result.x[:-1]).tolist(), float(unit * result.x[-1])
