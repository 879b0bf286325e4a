"""The argmax over a box with columns of whole numbers or codes, or with constraints.

From many starts at once, the search alternates: continuous columns ascend while the others are
fixed, then the others step to neighbours while the continuous ones are fixed. BoTorch's
``optimize_acqf_mixed_alternating`` takes neither starts nor logarithmic scales; with constraints it
took over ten times as long.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.domains.function_constraints import FunctionConstraints
from botorch_ext.domains.ranks import highest_first
from botorch_ext.search.ascent import batched_lbfgsb, feasible_ascent, slsqp
from botorch_ext.search.objectives import Objective, evaluate, on_unit_cube
from botorch_ext.search.screening import near_points, spread_best

ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]

# The largest numbers of alternations of ascents and steps, and of steps in one of them.
_MAX_TURNS, _MAX_STEPS = 8, 8
# If constraints stop ascents: the steps of all starts inside, the number of starts that go on along
# the constraints, and the number of rivals of the best point that do.
_STEPS_INSIDE, _NUM_SLIDING, _RIVALS_SLIDING = 8, 4, 2
# The least tolerance of the last ascent along constraints.
_LEAST_GAIN = 1e-10
# The tolerance and the steps of ascents from many starts, and the steps of the last one.
_FIRST_TOLERANCE, _FIRST_ITERATIONS, _MOST_ITERATIONS = 1e-7, 30, 200
# The number of neighbours of the best point that ascend before it is accepted, and the least lead
# of a rival, relative to the spread of the screened values.
_NUM_RIVALS, _LEAST_LEAD = 24, 1e-6
# The walk of the best point along functions without gradients: the number of rounds and of points
# in each of them; the first and the last distance of these points, in sides of the box; and the
# factors of the distance after a gain and without one.
_NUM_ROUNDS, _NUM_AROUND, _DISTANCES, _LONGER, _SHORTER = 60, 32, (0.1, 2e-3), 1.5, 0.5


class MixedSearch:
    """A search that alternates ascents and steps, from screened points.

    Args:
        objective: The function to maximise.
        box: A box that does not hold every point within its bounds.
        values: The values of the objective at screened points, for its scale.
        tolerance: The largest distance below its maximum at which an ascent may end, relative to
            the spread of the screened values.
    """

    def __init__(self, objective: Objective, box: Box, values: Tensor, tolerance: float) -> None:
        self._objective, self._box, self._tolerance = objective, box, tolerance
        self._values = values
        self._continuous = [j for j in range(box.dim) if j not in box.stepped]
        self._is_stopped = bool({*box.constrained} & {*self._continuous})
        given = box.constraints
        self._functions = given if isinstance(given, FunctionConstraints) else None
        # Of neighbours: whether two numbers differ.
        self._kinds = (False, True) if len(box.distances) > 1 else (False,)
        self._moves = {False: list(_moves_of_one(box)), True: list(_moves_of_two(box))}

    def best(self, starts: Tensor) -> tuple[Tensor, Tensor]:
        """The maximiser found from ``k x d`` starts, ``1 x d``, and its value, of shape
        ``(1,)``."""
        X = torch.cat([starts, self._rounded(starts)])
        f = evaluate(self._objective, X)
        rows = spread_best(f, X, self._box, len(starts))
        x, f = _highest(*self._by_turns(X[rows], f[rows]))
        # A step alone may lose, and the ascent after it gain more.
        least = _LEAST_LEAD * (self._values.max() - self._values.min())
        for _ in range(_MAX_TURNS if self._box.stepped and self._continuous else 0):
            near = [self._neighbours(x, of_two)[0] for of_two in self._kinds]
            rivals = torch.cat(near).unique(dim=0)
            rivals = rivals[(rivals != x).any(dim=-1)]
            if not len(rivals):
                break
            values = evaluate(self._objective, rivals)
            rows = highest_first(values, _NUM_RIVALS)
            ends = self._climbed(rivals[rows], values[rows], num_sliding=_RIVALS_SLIDING)
            rival, value = _highest(*ends)
            if not bool(value > f + least):
                break
            x, f = self._by_turns(rival, value)
        last = max(self._tolerance, _LEAST_GAIN) if self._is_stopped else self._tolerance
        return self._walked(*self._climbed(x, f, last, _MOST_ITERATIONS))

    def _rounded(self, starts: Tensor) -> Tensor:
        """The ends of ascents in which whole numbers are continuous, rounded."""
        relaxed = self._box.without_steps()
        if relaxed.stepped == self._box.stepped:
            return starts[:0]
        search = MixedSearch(self._objective, relaxed, self._values, self._tolerance)
        ends, _ = search._climbed(starts, evaluate(self._objective, starts), num_sliding=0)
        return self._box.nearby(ends, starts)

    def _by_turns(self, X: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """Ascents and steps until no step gains: the ``k x d`` ends and their ``k`` values."""
        X, f, rows = X.clone(), f.clone(), torch.arange(len(X), device=X.device)
        for _ in range(_MAX_TURNS):
            X[rows], f[rows] = self._climbed(X[rows], f[rows])
            if self._box.stepped:
                top = f.argmax(dim=0, keepdim=True)
                X[top], f[top] = self._walked(X[top], f[top])
            stepped, height = self._stepped(X[rows], f[rows])
            moved = height > f[rows]
            X[rows], f[rows] = stepped, height
            rows = rows[moved]
            if not len(rows) or not self._continuous:
                break
        return X, f

    def _climbed(
        self,
        X: Tensor,
        f: Tensor,
        tolerance: float = _FIRST_TOLERANCE,
        max_iterations: int = _FIRST_ITERATIONS,
        num_sliding: int = _NUM_SLIDING,
    ) -> tuple[Tensor, Tensor]:
        """Ascents of the continuous columns alone; if constraints stop them, only the best few go
        on to their end."""
        if not self._continuous:
            return X, f
        box, functions, feasible = self._box, self._functions, X
        scaled = on_unit_cube(self._objective.value_and_gradient, box, self._values)
        if self._is_stopped:
            ends, heights = feasible_ascent(
                scaled, box.to_unit(X), lambda U: box.contains(box.from_unit(U)), _STEPS_INSIDE
            )
            if functions is not None:  # an ascent along them may end at a worse point
                feasible = box.from_unit(ends)
                X, f = _better(X, f, feasible, evaluate(self._objective, feasible))
                num_sliding = num_sliding if functions.comparisons else 0
            for row in spread_best(heights, box.from_unit(ends), box, num_sliding).tolist():
                ends[row] = self._slid(scaled, ends[row], tolerance, max_iterations)
        else:
            ends, _ = batched_lbfgsb(scaled, box.to_unit(X), tolerance, max_iterations)
        ends = box.nearby(box.from_unit(ends), feasible)
        return _better(X, f, ends, evaluate(self._objective, ends))

    def _walked(self, x: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """The best of random points around a point, ``1 x d``, then around that one, and its value,
        ``(1,)``: for functions without gradients. Without them, the point itself."""
        if self._functions is None or not (self._functions.called and self._continuous):
            return x, f
        distance, least = _DISTANCES
        for seed in range(_NUM_ROUNDS):
            X = near_points(x, self._box, _NUM_AROUND, seed, (distance,))
            best, height = _highest(X, evaluate(self._objective, X))
            distance *= _LONGER if bool(height > f) else _SHORTER
            x, f = _better(x, f, best, height)
            if distance < least:
                break
        return x, f

    def _slid(
        self, scaled: ValueAndGradient, start: Tensor, tolerance: float, max_iterations: int
    ) -> Tensor:
        """The end of an ascent along the constraints (SLSQP) from one ``d``-dim start in the unit
        cube."""
        box, free = self._box, self._continuous
        if (functions := self._functions) is None:
            constraints: Any = box.constraints
            A, b = (tensor.double().cpu().numpy() for tensor in constraints)
        else:
            A, b = np.zeros((0, box.dim)), np.zeros(0)
        looks = A[:, free].any(axis=1)
        A, b = A[looks], b[looks]
        # In units of the largest change of each constraint within the box.
        sizes = np.abs(A[:, free]) @ (box.upper - box.lower).double().cpu().numpy()[free]
        A, b = A / sizes[:, None], b / sizes
        units: Any = None
        if functions is not None:  # the sizes of their terms at the start
            units = functions.slack_and_gradient(box.from_unit(start[None]))[1].squeeze(0)

        def at(free_entries: ndarray) -> Tensor:
            U = start.clone()
            U[free] = torch.from_numpy(free_entries).to(U)
            return U.unsqueeze(0)

        def joint(free_entries: ndarray) -> tuple[ndarray, ndarray]:
            U = at(free_entries)
            value, gradient = scaled(U)
            X = box.from_unit(U)
            rows = torch.cat([gradient, X, box.stretch(X)]).double().cpu().numpy()
            slopes = np.vstack([rows[0, free], -A[:, free] * rows[2, free]])
            values = np.append(float(value), b - A @ rows[1])
            if functions is None:
                return values, slopes
            slack, _, own = functions.slack_and_gradient(X)
            more = torch.cat([slack.unsqueeze(-1), own * box.stretch(X)], dim=-1)[0]
            more = (more / units.unsqueeze(-1)).nan_to_num(0.0).double().cpu().numpy()
            return np.append(values, more[:, 0]), np.vstack([slopes, more[:, 1:][:, free]])

        bounds, first = [(0.0, 1.0)] * len(free), start[free].double().cpu().numpy()
        end = slsqp(joint, first, bounds, tolerance, max_iterations)
        return at(np.nan_to_num(end).clip(0, 1))[0]

    def _stepped(self, X: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
        """Steps of the columns of whole numbers and codes alone, each step to the best neighbour in
        which one of them differs; where none gains, in which two numbers differ."""
        if not self._box.stepped:
            return X, f
        X, f, rows = X.clone(), f.clone(), torch.arange(len(X), device=X.device)
        for _ in range(_MAX_STEPS):
            stuck = rows
            for of_two in self._kinds:
                near = self._neighbours(X[stuck], of_two)  # k x s x d
                values = self._at_distinct(near.flatten(0, 1)).view(near.shape[:2])
                height, which = values.max(dim=-1)
                better = height > f[stuck]
                near = near[torch.arange(len(stuck), device=X.device), which]
                X[stuck] = torch.where(better[:, None], near, X[stuck])
                f[stuck] = torch.where(better, height, f[stuck])
                stuck = stuck[~better]
                if not len(stuck):
                    break
            rows = rows[~torch.isin(rows, stuck)]
            if not len(rows):
                break
        return X, f

    def _at_distinct(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` neighbours. Many are equal near the ends of ranges."""
        if X.is_cuda:  # more values cost less than waiting for the GPU
            return evaluate(self._objective, X)
        distinct, which = torch.unique(X, dim=0, return_inverse=True)
        return evaluate(self._objective, distinct)[which]

    def _neighbours(self, X: Tensor, of_two: bool) -> Tensor:
        """The neighbours of points, ``k x s x d``: with one number changed by steps, or another
        code; or ``of_two``, with two numbers changed by a step. A neighbour outside the box is
        replaced by the point."""
        box, near = self._box, []
        low, high = box.ends
        for moves in self._moves[of_two]:
            Y = X.clone()
            for column, step in moves:
                Y[:, column] += step
            near.append(Y)
        for j, codes in () if of_two else box.categories.items():
            for code in codes:
                Y = X.clone()
                Y[:, j] = code
                near.append(Y)
        found = torch.stack(near or [X], dim=1).clamp(low, high)
        otherwise = X.unsqueeze(1).expand_as(found)
        return box.nearby(found.flatten(0, 1), otherwise.flatten(0, 1)).view_as(found)


def _moves_of_one(box: Box) -> Iterator[list[tuple[int, float]]]:
    """Changes of one number by 1, 2, 4, ... steps, as columns with what is added."""
    if not box.distances:
        return
    low, high = box.ends.tolist()
    for j, step in box.distances.items():
        while step <= high[j] - low[j]:
            yield [(j, step)]
            yield [(j, -step)]
            step *= 2


def _moves_of_two(box: Box) -> Iterator[list[tuple[int, float]]]:
    """Changes of two numbers by a step."""
    for (i, one), (j, other) in itertools.combinations(box.distances.items(), 2):
        for first, second in itertools.product((1.0, -1.0), repeat=2):
            yield [(i, first * one), (j, second * other)]


def _better(X: Tensor, f: Tensor, Y: Tensor, g: Tensor) -> tuple[Tensor, Tensor]:
    """The better of each pair of rows, and its value."""
    higher = g > f
    return torch.where(higher[:, None], Y, X), torch.where(higher, g, f)


def _highest(X: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    top = f.argmax(dim=0, keepdim=True)
    return X[top], f[top]
