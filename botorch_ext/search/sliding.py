"""Sliding ascent: a few starts climb in a box at once, along the constraints that stop them.

Each step is one of sequential quadratic programming (Nocedal and Wright 2006, chapter 18): the
objective and the nearest constraints are replaced by their quadratic models, and each small set of
constraints is tried as the one that stops the climb. The models are made of gradients and tiny, so
they are worked out in numpy, which takes a tenth of the time of small torch operations.
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

# From ``m x d`` points to ``m`` values and ``m x d`` gradients.
ValueAndGradient = Callable[[Tensor], tuple[Tensor, Tensor]]
# Values, gradients and Hessians of a function, or of several.
_Quadratic = tuple[ndarray, ndarray, ndarray]

# Lengths are in units of the scale. The longest step, and that of difference quotients.
_LONGEST = 0.3
_PROBE = {torch.float64: 1e-5, torch.float32: 1e-2}
# A step aims so far inside the constraints it follows.
_INSIDE = {torch.float64: 1e-9, torch.float32: 1e-5}
# The constraints that a start can meet at once are among the nearest few.
_NUM_NEAR = 3
_NUM_ACTIVE = 2
# Relative to the largest value: what a step must promise to gain, and the least curvature.
_LEAST_GAIN = 4e-5
_LEAST_CURVATURE = 1e-6
# Steps of each start that are tried: those of the most promise.
_NUM_TRIALS = 4
# Parts of a step along constraints that bend, and how many of these steps are tried as well.
_PARTS = np.array([1.0, 0.25, 0.06]).reshape(-1, 1, 1, 1)
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
    """Climbs in a box where constraints are at least 0, and never leaves the feasible set.

    A start that promises to come no higher than another has is given up, and one ends where a step
    that nothing cut short gained what it promised. The host decides for all starts at once: a step
    takes it two uploads and two downloads, and one more of each where there are constraints.

    Args:
        objective: What to maximise, positive at the starts.
        constraints: Smooth functions that are at least 0 in the feasible set.
        feasible: ``m x d`` to ``m`` booleans; None where there are no constraints.
        box: Where.
        starts: ``k x d``, feasible.
        scale: ``d`` lengths by which the feasible set extends.
        num_steps: The most steps of each start.

    Returns:
        ``k x d`` feasible points and their ``k`` values, none below its start.
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
        # A model is no more than that: it may promise half of what there is.
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
        # Where a step that nothing cut short gained what it promised, little is left: what the best
        # promised more, and some of what the model was wrong by.
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
    """The points and, for each, one beside it along each coordinate, within the box; and what
    differences are to be multiplied with."""
    step = np.where(x + length > upper, -length, length)  # k x d
    beside = x[:, None] + step[:, None] * np.eye(x.shape[-1], dtype=x.dtype)
    return np.concatenate([x[:, None], beside], axis=1), 1 / step[..., None].astype(float)


def _quadratic(read: ndarray, unit: ndarray, quotient: ndarray) -> _Quadratic:
    """Values, gradients and Hessians in units of the scale: ``k``, ``k x d`` and ``k x d x d``.

    Args:
        read: ``k (d + 1) x (1 + d)``: values and gradients at the probes.
        unit: ``d``, the scale.
        quotient: What differences are to be multiplied with.
    """
    k, d, _ = quotient.shape
    value, gradient = read[:, 0], read[:, 1:]
    gradient = gradient.reshape(k, d + 1, d) * unit
    hessian = (gradient[:, 1:] - gradient[:, :1]) * quotient
    return value[:: d + 1], gradient[:, 0], (hessian + hessian.transpose(0, 2, 1)) / 2


def _steps(
    g: ndarray, H: ndarray, near: list[_Quadratic], room: ndarray, inside: float
) -> tuple[ndarray, ndarray, ndarray]:
    """Steps that the models favour, the best ones first, and what each of them promises to gain.

    Args:
        g: ``k x d`` gradients of the objective.
        H: ``k x d x d`` Hessians.
        near: The models of the constraints.
        room: ``2 x k x d``: steps to the lower faces of the box, none positive, and to the upper.
        inside: The distance from the constraints it follows that a step aims at.

    Returns:
        ``k x t x d``, ``k x t``, and which of them nothing cut short, ``k x t``.
    """
    k, d = g.shape
    c, A, C = _nearest(near, k, d)  # k x J, k x J x d, k x J x d x d
    J = c.shape[1]
    on = _active_sets(J, d)  # s x J
    lower, upper = room[:, :, None]
    A_on = A[:, None] * on[..., None]  # k x s x J x d
    # Less of a ridge than what a step aims inside by, for constraints that run side by side.
    idle = (1 - on + 1e-12)[..., None] * np.eye(J)
    # How hard each constraint of a set must push to stop the climb, by least squares.
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
    safe = step(aim - bend + 0.2 * np.abs(bend))[:, 1:]  # of no constraint it is the same

    def reach(p: ndarray) -> ndarray:
        """The part of steps that ends at the first face in the way."""
        share = np.where(p > 0, upper, -lower) / np.maximum(np.abs(p), 1e-300)
        return np.where(share > 0, share, np.inf).min(axis=-1, keepdims=True)

    # Up to the first face in the way, or a part of it.
    share = reach(full)
    short = np.where(share < 1, share, 0.4) * full
    # Where constraints bend too much for that: less along them, and still all the way to them.
    parts = np.minimum(reach(climb), 1) * _PARTS
    slow = [step(aim - part**2 * bend, part) for part in parts]
    p = np.concatenate([full, safe, short, *slow], axis=1).clip(lower, upper)  # k x t x d
    bent = _bent(p, np.concatenate([C, H[:, None]], axis=1))
    gain = (p @ g[..., None])[..., 0] + bent[..., -1]
    slack = c[:, None] + p @ A.swapaxes(-1, -2) + bent[..., :-1]
    outside = (slack < -0.1 * np.sqrt((p * p).sum(axis=-1, keepdims=True))).any(axis=-1)
    gain = np.where(outside, -np.inf, gain)
    # Those are tried beside the others, not in place of them.
    num = full.shape[1] + safe.shape[1] + short.shape[1]
    most = [_highest(gain[:, :num], _NUM_TRIALS), num + _highest(gain[:, num:], _NUM_SLOW)]
    best = np.concatenate(most, axis=1)
    best = np.take_along_axis(best, _highest(np.take_along_axis(gain, best, axis=1)), axis=1)
    whole = best < full.shape[1] + safe.shape[1]
    steps = np.take_along_axis(p, best[..., None], axis=1)
    return steps, np.take_along_axis(gain, best, axis=1), whole


def _highest(gain: ndarray, num: int | None = None) -> ndarray:
    """The places of the largest gains, ``k x num``, the largest first."""
    return np.argsort(-gain, axis=-1, kind="stable")[:, :num]


def _bent(p: ndarray, C: ndarray) -> ndarray:
    """p' C p / 2 of steps ``k x s x d`` and matrices ``k x J x d x d``: ``k x s x J``."""
    k, s, d = p.shape
    squares = (p[..., None] * p[..., None, :]).reshape(k, s, d * d)
    return squares @ C.reshape(k, -1, d * d).swapaxes(-1, -2) / 2


def _nearest(near: list[_Quadratic], k: int, d: int) -> _Quadratic:
    """The nearest constraints of each start, in units of distance."""
    if not near:
        return np.zeros((k, 0)), np.zeros((k, 0, d)), np.zeros((k, 0, d, d))
    c, A, C = (np.stack(parts, axis=1) for parts in zip(*near, strict=True))
    length = np.maximum(np.linalg.norm(A, axis=-1), 1e-300)
    c, A, C = c / length, A / length[..., None], C / length[..., None, None]
    rows = np.argsort(c, axis=1, kind="stable")[:, :_NUM_NEAR]
    return (
        np.take_along_axis(c, rows, axis=1),
        np.take_along_axis(A, rows[..., None], axis=1),
        np.take_along_axis(C, rows[..., None, None], axis=1),
    )


def _active_sets(num: int, d: int) -> ndarray:
    """Each small set of ``num`` constraints as a row of zeros and ones; the empty one first."""
    sets = [
        set
        for size in range(min(_NUM_ACTIVE, num, d) + 1)
        for set in itertools.combinations(range(num), size)
    ]
    return np.array([[float(j in set) for j in range(num)] for set in sets]).reshape(len(sets), num)
