"""The max-min of upper confidence bounds on a box.

It finds the centre and the model whose worst case over a ball of perturbations is best.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from botorch_ext.domains.ranks import highest_first
from botorch_ext.search.ascent import feasible_ascent
from botorch_ext.search.box_balls import BoxBalls
from botorch_ext.search.models import UpperBounds
from botorch_ext.search.objectives import on_unit_cube
from botorch_ext.search.own_bounds import OwnBounds
from botorch_ext.search.ridges import along_ridges
from botorch_ext.search.screening import near_points, on_faces, spread_best

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
# Steps along a ridge, and of the descents on the way: at its top bounds vary little on the sphere.
_RIDGE_STEPS, _BRISK_DESCENT = 25, 30
# They end when no more than this is to be gained, relative to the spread of the screened values.
_RIDGE_TOLERANCE = 1e-10
# Offsets that are screened around the centres that count, for each coordinate and one more: a climb
# is drawn to centres whose narrow worst cases fewer offsets miss.
_MANY_OFFSETS = 256


class WorstCase:
    """The least confidence bound of one model within reach of a point, as an `Objective`.

    Args:
        bounds: The confidence bounds of one model.
        balls: The balls of perturbations.
    """

    def __init__(self, bounds: UpperBounds, balls: BoxBalls) -> None:
        self.own = OwnBounds.of(bounds)
        self.balls = balls

    def value(self, X: Tensor) -> Tensor:
        return self.balls.worst_case(self.own, X.unsqueeze(1))[0].squeeze(1)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        values, Z = self.balls.worst_case(self.own, X.unsqueeze(1))
        return values.squeeze(1), self._gradients(X, Z.squeeze(1))

    def cuts(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The bounds at several perturbed points of each centre.

        Args:
            X: ``r x d`` centres.

        Returns:
            ``s x r`` bounds, the least of which is the worst case, and their ``s x r x d``
            gradients by the centres.
        """
        values, Z = self.balls.local_worst_cases(self.own, X.unsqueeze(1))
        Z = Z.squeeze(2)
        gradients = self._gradients(X.expand_as(Z).flatten(0, 1), Z.flatten(0, 1))
        return values.squeeze(2), gradients.view_as(Z)

    def _gradients(self, X: Tensor, Z: Tensor) -> Tensor:
        _, gradients = self.own.value_and_gradient(Z.unsqueeze(1))
        return self.balls.pulled_back(X, Z, gradients.squeeze(1))


class _Top(NamedTuple):
    """A centre on the host, its worst case and the position of the model with this worst case."""

    value: float
    x: ndarray
    position: int


def maximize_worst_case(
    bounds: UpperBounds, balls: BoxBalls, seed: int, extra: Tensor | None = None
) -> tuple[Tensor, int]:
    """Find the centre and the model with the highest worst case.

    That is the argmax over x and u of the minimum over delta of U_u(x + delta).

    All models are screened at the same perturbed points. The best centres of the best models climb
    along gradients. At the top two perturbations are often equally bad, and gradients cannot follow
    such a ridge, so the last steps solve a linear programme over all perturbations, with more of
    them than in the screening. Around the two best ends centres are screened again, since an end
    may lie on a plateau.

    The perturbations of one centre miss narrow dips of the bounds, but those of many centres do
    not: the lowest point around each screened centre counts for all centres within reach of it.

    Args:
        bounds: The upper confidence bounds of m models.
        balls: The balls of perturbations.
        seed: The seed of the screening centres.
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
    values, lows, depths = _screened(bounds, balls, X)
    top = highest_first(values, _NUM_CENTERS)  # (m, c)
    # Far from the top a few steps of descent are enough.
    hasty = balls.searched(_HASTY_DESCENT)
    least, _ = hasty.worst_case(OwnBounds.of(bounds), X[top].transpose(0, 1))
    finalists = highest_first(least.amax(dim=0), _NUM_FINALISTS).tolist()
    singles = {position: bounds.select([position]) for position in finalists}

    def worst_case(position: int, within: BoxBalls) -> WorstCase:
        return WorstCase(singles[position], within.knowing(lows[position], depths[position]))

    ends: list[_Top] = []
    for position in finalists:
        objective = worst_case(position, hasty)
        starts = X[spread_best(values[position], X, box, _NUM_STARTS)]
        best = least[:, position].argmax(dim=0, keepdim=True)
        starts = torch.cat([X[top[position][best]], starts])
        U, heights = feasible_ascent(
            on_unit_cube(objective.value_and_gradient, box, values),
            box.to_unit(starts),
            num_steps=_COARSE_STEPS,
        )
        ends += _read(heights, box.from_unit(U), position)
    spread = float(values.max() - values.min())
    closer = _with_more_offsets(balls, models.num_observations, _HASTY_DESCENT)

    def climb(starts: Sequence[_Top], within: BoxBalls, num_steps: int) -> list[_Top]:
        tops: list[_Top] = []
        for position in finalists:
            own = [start.x for start in starts if start.position == position]
            if own:
                cuts, tolerance = worst_case(position, within).cuts, _RIDGE_TOLERANCE * spread
                found = along_ridges(cuts, box, np.stack(own), tolerance, num_steps)
                tops += [_Top(value, x, position) for value, x in zip(*found, strict=True)]
        return _from_the_best(tops)

    side = np.subtract(*box.bounds.flip(0).cpu().numpy())
    ridges: list[_Top] = []
    for end in _from_the_best(ends):
        others = (other for other in ridges if other.position == end.position)
        if all(np.abs((end.x - other.x) / side).max() > _APART for other in others):
            ridges.append(end)
    ahead = climb(ridges[:_NUM_RIDGES], closer, _FEW_STEPS)[:2]
    num_around = min(max(affordable, _FEW_AROUND), _MOST_AROUND)
    better: dict[int, _Top] = {}
    for i, (value, x, position) in enumerate(ahead):
        around = near_points(X.new_tensor(x[None]), box, num_around, seed, _DISTANCES)
        seen, *_ = _screened(singles[position], balls, around)
        near = highest_first(seen[0], _NUM_CENTERS)
        heights = worst_case(position, closer).value(around[near])
        best = _from_the_best(_read(heights, around[near], position))[0]
        if best.value > value:
            better[i] = best
    ahead = [top for i, top in enumerate(ahead) if i not in better]
    ahead = _from_the_best([*ahead, *climb(list(better.values()), closer, _FEW_STEPS)])
    close = [top for top in ahead if top.value >= ahead[0].value - _CLOSE * spread]
    _, x, position = climb(close, closer.searched(_BRISK_DESCENT), _RIDGE_STEPS)[0]
    return X.new_tensor(x), position


def lowest_bound(bounds: UpperBounds, balls: BoxBalls, x: Tensor) -> tuple[Tensor, int]:
    """Find the point within reach and the model with the lowest bound: argmin over delta and u.

    Args:
        bounds: The confidence bounds of m models.
        balls: The balls of perturbations.
        x: The ``d``-dim centre.

    Returns:
        The ``d``-dim point and the position of its model.
    """
    centers = x.expand(1, bounds.num_models, -1)
    closer = _with_more_offsets(balls, bounds.models.num_observations, balls.max_iterations)
    values, Z = closer.worst_case(OwnBounds.of(bounds), centers)
    position = int(values[0].argmin())
    return Z[0, position].clone(), position


def _read(values: Tensor, X: Tensor, position: int) -> list[_Top]:
    """Centres, ``n x d``, of one model on the host."""
    rows = torch.cat([values.unsqueeze(-1), X], dim=-1).cpu().numpy()
    return [_Top(float(row[0]), row[1:], position) for row in rows]


def _from_the_best(tops: Sequence[_Top]) -> list[_Top]:
    return sorted(tops, key=attrgetter("value"), reverse=True)


def _screened(bounds: UpperBounds, balls: BoxBalls, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Screen the worst cases of n centres under each of m models.

    Returns:
        ``m x n`` upper limits of the worst cases: the lowest bound seen within reach of each
        centre, also at offsets from other centres. ``m x n x d`` points: the lowest point among the
        offsets from each centre. ``m x n`` bounds at these points.
    """
    Z = balls.points(X, balls.offsets.unsqueeze(1))
    values = bounds.values(Z.flatten(0, 1)).view(-1, *Z.shape[:-1])
    depths, which = values.min(dim=1)
    lows = Z[which, torch.arange(len(X), device=X.device)]
    seen = [balls.lowest_known(X, *known)[0] for known in zip(lows, depths, strict=True)]
    return torch.minimum(depths, torch.stack(seen)), lows, depths


def _with_more_offsets(balls: BoxBalls, num_observations: int, max_iterations: int) -> BoxBalls:
    """The same balls with as many more offsets as are affordable with n observations."""
    most = min(_MANY_OFFSETS * (balls.box.dim + 1), _WORK_AROUND // (num_observations + 1) ** 2)
    return balls.searched(max_iterations, most)
