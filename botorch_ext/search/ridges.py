"""Ridges: centres where several perturbations are equally bad, climbed by linear programmes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy import ndarray
from scipy.optimize import linprog
from torch import Tensor

from botorch_ext.domains import Box

# The first step, relative to the sides of the box, and the least.
_FIRST_STEP, _LEAST_STEP = 0.02, 1e-9


def along_ridges(
    cuts: Callable[[Tensor], tuple[Tensor, Tensor]],
    box: Box,
    starts: ndarray,
    tolerance: float,
    num_steps: int,
) -> tuple[ndarray, ndarray]:
    """Climb from all starts at once by linear programmes in trust regions.

    Linear programmes can follow ridges, and gradients cannot. A climb ends early if another climb
    is higher and within a step. Each step reads from the device and writes to it once.

    Args:
        cuts: A function from ``r x d`` centres to ``s x r`` values, of which the least counts, and
            their ``s x r x d`` gradients.
        box: The box that no climb leaves.
        starts: ``r x d`` centres.
        tolerance: A climb ends when it can gain no more than this.
        num_steps: The largest number of steps of each climb.

    Returns:
        ``r`` values and the ``r x d`` centres where they are attained, none below its start.
    """
    lower, upper = box.bounds.cpu().numpy()
    side = upper - lower

    def read(X: ndarray) -> tuple[ndarray, ndarray]:
        values, gradients = cuts(torch.from_numpy(X).to(box.bounds))
        both = torch.cat([values.unsqueeze(-1), gradients], dim=-1).cpu().numpy()
        return both[..., 0], both[..., 1:] * side

    X, going = starts.copy(), list(range(len(starts)))
    values, slopes = read(X)
    heights, steps = values.min(axis=0), np.full(len(X), _FIRST_STEP)
    for _ in range(num_steps):
        rows, moves, predicted = [], [], []
        for i in going:
            near = (np.abs(X - X[i]) <= steps[i] * side).all(axis=-1)
            near[i:] &= heights[i:] > heights[i]  # of equal ones the first goes on
            if (near & (heights >= heights[i])).any():
                continue
            room = np.stack([lower - X[i], upper - X[i]]) / side
            move, gain = _steepest(values[:, i] - heights[i], slopes[:, i], room, steps[i])
            if gain > max(tolerance, 10 * np.finfo(X.dtype).eps * abs(heights[i])):
                rows.append(i)
                moves.append(move)
                predicted.append(gain)
        if not rows:
            break
        new = np.clip(X[rows] + side * np.array(moves, X.dtype), lower, upper)
        new_values, new_slopes = read(new)
        gains = new_values.min(axis=0) - heights[rows]
        better = gains > 0
        up = np.array(rows)[better]
        X[up] = new[better]
        values[:, up], slopes[:, up] = new_values[:, better], new_slopes[:, better]
        heights[up] = values[:, up].min(axis=0)
        share = gains / predicted
        steps[rows] *= np.where(share > 0.5, 2, np.where(share > 0.1, 1, 0.25))
        going = [i for i in rows if steps[i] >= _LEAST_STEP]
    return heights, X


def _steepest(
    heights: ndarray, slopes: ndarray, room: ndarray, step: float
) -> tuple[ndarray, float]:
    """The move that raises the least of several linear functions most, and the gain.

    Args:
        heights: The ``s`` values of the functions.
        slopes: Their ``s x d`` gradients.
        room: ``2 x d`` limits: how far the move may go down and up.
        step: The longest move along a coordinate.
    """
    d = slopes.shape[1]
    scale = max(float(np.abs(slopes).max()), 1e-300)
    # In units of the step and of what the steepest function gains in it.
    unit = scale * step
    low, high = np.clip(room / step, [[-1.0], [0.0]], [[0.0], [1.0]])
    result = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.hstack([-slopes / scale, np.ones((len(slopes), 1))]),
        b_ub=heights / unit,
        bounds=[*zip(low, high, strict=True), (None, None)],
    )
    if result.x is None:
        return np.zeros(d), 0.0
    return step * result.x[:-1], float(unit * result.x[-1])
