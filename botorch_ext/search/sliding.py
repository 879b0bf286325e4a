"""Sliding ascent: an ascent in a box from a few starts at once, along the constraints that stop it.

Each step is one of sequential quadratic programming (Nocedal and Wright 2006, chapter 18): the
objective and the nearest constraints are replaced by quadratic models, and each small set of
constraints is tried as the active one. The models are made from gradients and are small, so numpy
computes them, in a tenth of the time of small torch operations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy import ndarray
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.search.objectives import Objective

# A function from ``m x d`` points to ``m`` values and ``m x d`` gradients.
ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
# The values, gradients and Hessians of a function, or of several.
_Quadratic = tuple[ndarray, ndarray, ndarray]

# The longest step, and the step of difference quotients, in units of the scale.
_LONGEST = 0.3
_PROBE = {torch.float64: 1e-5, torch.float32: 1e-2}
# The distance inside the constraints that a step along them aims at.
_INSIDE = {torch.float64: 1e-9, torch.float32: 1e-5}
# The number of nearest constraints that are considered, and the largest number of active ones.
_NUM_NEAR = 3
_NUM_ACTIVE = 2
# The least promised gain of a step, and the least curvature, relative to the largest value.
_LEAST_GAIN = 4e-5
_LEAST_CURVATURE = 1e-6
# The number of steps of each start that are tried, those with the largest promised gain.
_NUM_TRIALS = 4
# The shorter parts of a step along curved constraints, and the number of these steps that are
# tried.
_SHARES = np.array([1.0, 0.25, 0.06]).reshape(-1, 1, 1, 1)
_NUM_SLOW = 2


def sliding_ascent(
    objective: Objective,
    constraints: Sequence[ValueAndGradient],
    feasible: Callable[[Tensor], Tensor] | None,
    box: Box,
    starts: Tensor,
    scale: Tensor,
    num_steps: int,
) -> tuple[Tensor, Tensor]:
    """Maximises a function over the part of a box where constraints are at least 0.

    A start is given up if its model promises less than another start has reached. It ends when a
    step that nothing cut short gained what its model promised. The host decides for all starts at
    once: a step takes two uploads and two downloads, and one more of each with constraints.

    Args:
        objective: The function to maximise, positive at the starts.
        constraints: Smooth functions that are at least 0 in the feasible set.
        feasible: A function from ``m x d`` points to ``m`` booleans; None without constraints.
        box: The box.
        starts: The feasible starts, ``k x d``.
        scale: The ``d`` lengths of the feasible set along the coordinates.
        num_steps: The largest number of steps of each start.

    Returns:
        The feasible ends, ``k x d``, and their ``k`` values, none below its start.
    """
    ends, (lower, upper, unit) = np.split(
        torch.cat([starts, box.bounds, scale[None]]).cpu().numpy(), [len(starts)]
    )
    values = np.full(len(ends), -np.inf)
    inside = _INSIDE[starts.dtype]

    def on_device(points: ndarray) -> Tensor:
        return torch.as_tensor(points.reshape(-1, box.dim), device=starts.device)

    rows = np.arange(len(ends))
    for _ in range(num_steps):
        x = ends[rows]
        probes, quotient = _probes(x, _PROBE[starts.dtype] * unit, upper)
        quotient = quotient * unit[:, None]
        X = on_device(probes)
        functions = [objective.value_and_gradient, *constraints]
        pairs = [function(X) for function in functions]
        read = torch.stack([torch.cat([f[None], g.mT]) for f, g in pairs]).double().cpu().numpy()
        (f, g, H), *near = (_quadratic(own, unit, quotient) for own in read.swapaxes(1, 2))
        values[rows] = f
        size = np.maximum(np.abs(f), np.finfo(f.dtype).tiny)
        room = np.stack([lower - x, upper - x]) / unit
        steps, gains, whole = _steps(g / size[:, None], H / size[:, None, None], near, room, inside)
        # The factor 2 allows for a model that promises only half of the possible gain.
        (kept,) = np.nonzero(f + 2 * size * gains[:, 0] > (1 + _LEAST_GAIN) * values.max())
        if not len(kept):
            break
        rows = rows[kept]
        trials = (x[kept, None] + unit * steps[kept]).astype(x.dtype).clip(lower, upper)
        flat = on_device(trials)
        height = objective.value(flat).double().cpu().numpy().reshape(trials.shape[:-1])
        better = height > values[rows, None]
        if feasible is not None:
            better[better] = feasible(on_device(trials[better])).cpu().numpy()
        height = np.where(better, height, -np.inf)
        best = height.argmax(axis=-1)
        (moved,) = np.nonzero(better.any(axis=-1))
        if not len(moved):
            break
        rows, best = rows[moved], best[moved]
        ends[rows], values[rows] = trials[moved, best], height[moved, best]
        # After a step that nothing cut short, the possible gain that is left is what the best step
        # promised beyond it, and twice the error of the model.
        kept = kept[moved]
        taken, promised = steps[kept, best], gains[kept, best]
        error = np.abs(values[rows] - f[kept] - size[kept] * promised)
        left = size[kept] * (gains[kept, 0] - promised) + 2 * error
        cut = (np.abs(taken - room[:, kept]) < 1e-12) & (taken != 0)
        cut = cut.any(axis=(0, -1)) | (np.square(taken).sum(axis=-1) > 0.99 * _LONGEST**2)
        cut |= ~whole[kept, best]
        done = ~cut & (values[rows] + left <= (1 + _LEAST_GAIN) * values.max())
        rows = rows[~done]
        if not len(rows):
            break
    found = torch.from_numpy(np.column_stack([ends, values])).to(starts)
    return found[:, :-1], found[:, -1]


def _probes(x: ndarray, length: ndarray, upper: ndarray) -> tuple[ndarray, ndarray]:
    """The points with, for each, a neighbour along each coordinate within the box; and the factors
    of difference quotients."""
    step = np.where(x + length > upper, -length, length)  # k x d
    beside = x[:, None] + step[:, None] * np.eye(x.shape[-1], dtype=x.dtype)
    return np.concatenate([x[:, None], beside], axis=1), 1 / step[..., None].astype(float)


def _quadratic(read: ndarray, unit: ndarray, quotient: ndarray) -> _Quadratic:
    """Values, gradients and Hessians in units of the scale: ``k``, ``k x d`` and ``k x d x d``.

    Args:
        read: The values and gradients at the probes, ``k (d + 1) x (1 + d)``.
        unit: The scale, ``d``.
        quotient: The factors of difference quotients.
    """
    k, d, _ = quotient.shape
    value, gradient = read[:, 0], read[:, 1:]
    gradient = gradient.reshape(k, d + 1, d) * unit
    hessian = (gradient[:, 1:] - gradient[:, :1]) * quotient
    return value[:: d + 1], gradient[:, 0], (hessian + hessian.transpose(0, 2, 1)) / 2


def _steps(
    g: ndarray, H: ndarray, near: list[_Quadratic], room: ndarray, inside: float
) -> tuple[ndarray, ndarray, ndarray]:
    """The best steps by the quadratic models, the best one first, and their promised gains.

    Args:
        g: The gradients of the objective, ``k x d``.
        H: The Hessians of the objective, ``k x d x d``.
        near: The quadratic models of the constraints.
        room: The steps to the lower faces of the box, none positive, and to the upper faces,
            ``2 x k x d``.
        inside: The distance inside the constraints that a step along them aims at.

    Returns:
        The steps, ``k x t x d``; their promised gains, ``k x t``; and whether nothing cut them
        short, ``k x t``.
    """
    k, d = g.shape
    c, A, C = _nearest(near, k, d)  # k x J, k x J x d, k x J x d x d
    J = c.shape[1]
    on = _active_sets(J, d)  # s x J
    lower, upper = room[:, :, None]
    A_on = A[:, None] * on[..., None]  # k x s x J x d
    # The ridge, smaller than ``inside``, is for constraints that are nearly parallel.
    idle = (1 - on + 1e-12)[..., None] * np.eye(J)
    # The multiplier of each active constraint, by least squares.
    push = np.linalg.solve(A_on @ A_on.swapaxes(-1, -2) + idle, -(A_on @ g[:, None, :, None]))
    push = push.clip(0)[..., 0] * on  # k x s x J
    pull = g[:, None] + (push[..., None, :] @ A_on)[..., 0, :]
    free = 1.0 - (((lower >= 0) & (pull < 0)) | ((upper <= 0) & (pull > 0)))  # k x s x d
    curvature = H[:, None] + (push @ C.reshape(k, J, d * d)).reshape(k, -1, d, d)
    bends, axes = np.linalg.eigh(curvature * free[..., None] * free[..., None, :])
    bends = np.abs(bends)
    bends = np.maximum(bends, _LEAST_CURVATURE + 1e-3 * bends.max(axis=-1, keepdims=True))
    A_on = A_on * free[..., None, :]
    system = np.empty((k, len(on), d + J, d + J))
    system[..., :d, :d] = (axes * bends[..., None, :]) @ axes.swapaxes(-1, -2)
    system[..., :d, d:] = -A_on.swapaxes(-1, -2)
    system[..., d:, :d] = A_on
    system[..., d:, d:] = idle
    solution = np.linalg.inv(system)[..., :d, :]
    climb = (solution[..., :d] @ (g[:, None] * free)[..., None])[..., 0]

    def step(target: ndarray, part: ndarray | float = 1.0) -> ndarray:
        p = part * climb + (solution[..., d:] @ target[..., None])[..., 0]
        length = np.sqrt((p * p).sum(axis=-1, keepdims=True))
        return p * np.minimum(1, _LONGEST / np.maximum(length, 1e-300))

    aim = on * (inside - c[:, None])
    bend = on * _bent(step(aim), C)
    full = step(aim - bend)
    safe = step(aim - bend + 0.2 * np.abs(bend))[:, 1:]  # the empty set has the same

    def reach(p: ndarray) -> ndarray:
        """The part of steps that ends at the first face in the way."""
        share = np.where(p > 0, upper, -lower) / np.maximum(np.abs(p), 1e-300)
        return np.where(share > 0, share, np.inf).min(axis=-1, keepdims=True)

    # The step cut off at the first face, or a part of it.
    share = reach(full)
    short = np.where(share < 1, share, 0.4) * full
    # For strongly curved constraints: shorter along them, but all the way to them.
    shares = np.minimum(reach(climb), 1) * _SHARES
    slow = [step(aim - share**2 * bend, share) for share in shares]
    p = np.concatenate([full, safe, short, *slow], axis=1).clip(lower, upper)  # k x t x d
    bent = _bent(p, np.concatenate([C, H[:, None]], axis=1))
    gain = (p @ g[..., None])[..., 0] + bent[..., -1]
    slack = c[:, None] + p @ A.swapaxes(-1, -2) + bent[..., :-1]
    outside = (slack < -0.1 * np.sqrt((p * p).sum(axis=-1, keepdims=True))).any(axis=-1)
    gain = np.where(outside, -np.inf, gain)
    # These are tried in addition to the others.
    num = full.shape[1] + safe.shape[1] + short.shape[1]
    most = [_highest(gain[:, :num], _NUM_TRIALS), num + _highest(gain[:, num:], _NUM_SLOW)]
    best = np.concatenate(most, axis=1)
    best = np.take_along_axis(best, _highest(np.take_along_axis(gain, best, axis=1)), axis=1)
    whole = best < full.shape[1] + safe.shape[1]
    steps = np.take_along_axis(p, best[..., None], axis=1)
    return steps, np.take_along_axis(gain, best, axis=1), whole


def _highest(gain: ndarray, num: int | None = None) -> ndarray:
    """The indices of the largest gains, ``k x num``, the largest first."""
    return np.argsort(-gain, axis=-1, kind="stable")[:, :num]


def _bent(p: ndarray, C: ndarray) -> ndarray:
    """The terms p' C p / 2, ``k x s x J``, of steps ``k x s x d`` and matrices ``k x J x d x
    d``."""
    k, s, d = p.shape
    squares = (p[..., None] * p[..., None, :]).reshape(k, s, d * d)
    return squares @ C.reshape(k, -1, d * d).swapaxes(-1, -2) / 2


def _nearest(near: list[_Quadratic], k: int, d: int) -> _Quadratic:
    """The nearest constraints of each start, in units of distance."""
    if not near:
        return np.zeros((k, 0)), np.zeros((k, 0, d)), np.zeros((k, 0, d, d))
    c, A, C = (np.stack(arrays, axis=1) for arrays in zip(*near, strict=True))
    length = np.maximum(np.linalg.norm(A, axis=-1), 1e-300)
    c, A, C = c / length, A / length[..., None], C / length[..., None, None]
    rows = np.argsort(c, axis=1, kind="stable")[:, :_NUM_NEAR]
    return (
        np.take_along_axis(c, rows, axis=1),
        np.take_along_axis(A, rows[..., None], axis=1),
        np.take_along_axis(C, rows[..., None, None], axis=1),
    )


def _active_sets(num: int, d: int) -> ndarray:
    """The small sets of ``num`` constraints as rows of zeros and ones, the empty set first."""
    sets = [
        set
        for size in range(min(_NUM_ACTIVE, num, d) + 1)
        for set in itertools.combinations(range(num), size)
    ]
    return np.array([[float(j in set) for j in range(num)] for set in sets]).reshape(len(sets), num)
