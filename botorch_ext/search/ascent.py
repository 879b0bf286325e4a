"""Ascent in the unit cube: batched L-BFGS-B and feasible ascent of many starts at once, and the
ascent of the least of several functions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
import torch
from botorch.optim.batched_lbfgs_b import fmin_l_bfgs_b_batched
from numpy import ndarray
from scipy.optimize import minimize
from torch import Tensor

# In a race a start gives up if its gradient, followed for _REACH along each side of the cube, does
# not lead to the best value so far; but not in the first _HEAD_START evaluations, when it may be on
# a plateau.
_REACH, _HEAD_START = 0.25, 4
# The number of step lengths that `feasible_ascent` tries at once: twice the last length, then each
# half of the one before.
_NUM_TRIED = 4
#: By how much SLSQP may violate a constraint.
VIOLATION = 1e-6


def batched_lbfgsb(
    value_and_gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    tolerance: float,
    max_iterations: int = 200,
    together: bool = False,
    race: bool = False,
    num_tried: int = 20,
) -> tuple[Tensor, Tensor]:
    """Maximises a function on the unit cube from many starts at once by BoTorch's L-BFGS-B.

    The host computes the steps. The function is evaluated on the device of the starts, with one
    call for each step of all starts that have not ended.

    SciPy's L-BFGS-B may stop on a slope, after a step that gained next to nothing. An ascent that
    ends so begins again from there, as long as its value rises.

    Args:
        value_and_gradient: The function, from ``m x d`` points to ``m`` values and ``m x d``
            gradients. A value that is not finite ranks lowest, and an entry of a gradient that is
            not finite counts as 0.
        starts: The starts ``k x d``, in the unit cube.
        tolerance: The largest distance below its maximum at which an ascent may end, for values
            that vary by about 1.
        max_iterations: The largest number of steps of each start, in all.
        together: Whether each call gets all starts, ``k x d`` in their order, so that each may
            have a function of its own.
        race: Whether only the highest end counts, so that starts that will not reach it give up.
        num_tried: The largest number of lengths that are tried for a step.

    Returns:
        The best points on the ways from the starts, ``k x d``, and their ``k`` values, minus
        infinity if none was finite.
    """
    latest = starts.detach().double().cpu().numpy().copy()
    ends = latest.copy()
    heights, lowest = np.full(len(ends), -np.inf), np.full(len(ends), np.inf)
    evaluations = np.zeros(len(ends))
    # An ascent ends after a step that gains less. The gain must be small: a slow ascent gains much
    # less in one step than it could still gain.
    least_gain = max(1e-3 * tolerance, torch.finfo(starts.dtype).eps)
    # Where the gradient is g and the curvature c, the maximum is higher by g^2 / 2c. A slope counts
    # as flat if that gain is less than rounding.
    flat, steep = 0.1 * tolerance**0.5, 0.1 * (1e3 * least_gain) ** 0.5
    active, steps_left = np.arange(len(ends)), np.full(len(ends), max_iterations)

    def loss(points: ndarray, batch_indices: list[int]) -> tuple[ndarray, ndarray]:
        rows = active[batch_indices]
        latest[rows] = points
        X = torch.from_numpy(latest.copy() if together else points).to(starts, non_blocking=True)
        value, gradient = value_and_gradient(X)
        # One copy to the host.
        joint = torch.cat([value.unsqueeze(-1), gradient], dim=-1).double().cpu().numpy()
        joint = joint[rows] if together else joint
        f, g = joint[:, 0], joint[:, 1:]
        finite = np.isfinite(f)
        lowest[rows] = np.minimum(lowest[rows], np.where(finite, f, np.inf))
        # A line search steps back from a value that is no higher than that of the start.
        f = np.where(finite, f, np.where(np.isfinite(lowest[rows]), lowest[rows], 0))
        g = np.where(finite[:, None] & np.isfinite(g), g, 0)
        better = finite & (f > heights[rows])
        ends[rows[better]], heights[rows[better]] = points[better], f[better]
        if race:
            evaluations[rows] += 1
            reach = np.where(g > 0, 1 - points, points).clip(max=_REACH)
            promised = f + (np.abs(g) * reach).sum(axis=-1)
            behind = better & (evaluations[rows] > _HEAD_START) & (promised < heights.max())
            # A step to the best value with gradient 0 ends an ascent.
            f[behind], g[behind] = heights.max(), 0
        return -f, -g

    while len(active):
        before, most = heights.copy(), int(steps_left[active].min())
        _, _, runs = fmin_l_bfgs_b_batched(
            loss,
            ends[active],
            bounds=[(0.0, 1.0)] * starts.shape[-1],
            factr=least_gain / torch.finfo(torch.float64).eps,
            pgtol=flat,
            maxiter=most,
            maxls=num_tried,
            pass_batch_indices=True,
        )
        steps_left[active] -= [run.nit for run in runs]
        # A run without success has already tried the gradient alone. The gradient is 0 where a
        # start gave up and where a value is not finite.
        at, descent = (np.stack([run[key] for run in runs]) for key in ("x", "jac"))
        slopes = np.abs((at - descent).clip(0, 1) - at).max(axis=-1)  # as L-BFGS-B measures them
        goes_on = [run.success or run.nit == most for run in runs]
        active = active[(slopes > steep) & goes_on]
        gains = heights[active] - before[active]
        rises = gains > least_gain * np.abs(heights[active]).clip(min=1)
        active = active[rises & (steps_left[active] > 0)]
    X, values = (torch.from_numpy(each).to(starts, non_blocking=True) for each in (ends, heights))
    return X, values


def feasible_ascent(
    value_and_gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    feasible: Callable[[Tensor], Tensor] | None = None,
    num_steps: int = 8,
    first_step: float = 0.1,
) -> tuple[Tensor, Tensor]:
    """Maximises a function on a feasible part of the unit cube, along normalised, projected
    gradients.

    Every step tries several lengths at once and moves to the best point that is feasible and
    better. So it needs no line search, and works for any feasible set that can be tested.

    Args:
        value_and_gradient: The function, from ``m x d`` points to ``m`` values and ``m x d``
            gradients.
        starts: The starts ``k x d``, feasible points of the unit cube.
        feasible: A function from ``m x d`` points to ``m`` booleans; None if the whole cube is
            feasible.
        num_steps: The number of steps of each start.
        first_step: The length of the first step.

    Returns:
        The feasible ends, ``k x d``, and their ``k`` values, none below its start.
    """
    x, (f, g) = starts, value_and_gradient(starts)
    k = len(starts)
    lengths = 2.0 ** (1 - torch.arange(_NUM_TRIED, dtype=starts.dtype, device=starts.device))
    step = starts.new_full((k,), first_step)
    rows = torch.arange(k, device=starts.device)
    for _ in range(num_steps):
        is_held = ((x <= 0) & (g < 0)) | ((x >= 1) & (g > 0))  # at a face
        direction = torch.where(is_held, 0, g)
        direction = direction / direction.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        moves = (step[:, None] * lengths).unsqueeze(-1) * direction.unsqueeze(-2)  # k x s x d
        trial = (x.unsqueeze(-2) + moves).clamp(0, 1).flatten(0, 1)
        trial_f, trial_g = value_and_gradient(trial)
        better = trial_f > f.repeat_interleave(len(lengths))
        if feasible is not None:
            if trial.is_cuda:  # testing more points costs less than waiting for the GPU
                better &= feasible(trial)
            else:
                (candidates,) = better.nonzero(as_tuple=True)
                better[candidates] = feasible(trial[candidates])
        score = torch.where(better, trial_f, -torch.inf).view(k, -1)
        top, which = score.max(dim=-1)
        moved = top > -torch.inf
        pick = rows * len(lengths) + which
        x = torch.where(moved[:, None], trial[pick], x)
        f = torch.where(moved, top, f)
        g = torch.where(moved[:, None], trial_g[pick], g)
        step = step * torch.where(moved, lengths[which], lengths[-1])
    return x, f


def ascent_of_least(
    cuts: Callable[[Tensor], tuple[Tensor, Tensor]],
    start: Tensor,
    num_slacks: int = 0,
    tolerance: float | None = None,
    max_iterations: int = 200,
) -> Tensor:
    """Maximises the least of several smooth functions on the unit cube from one start.

    Its maximum is mostly at a kink, where several functions are equal and no gradient leads on.
    SLSQP maximises a number that no function is below.

    Args:
        cuts: The functions, from ``1 x d`` points to ``s x 1`` values, which vary by about 1, and
            their ``s x 1 x d`` gradients.
        start: The ``d``-dim start, in the unit cube.
        num_slacks: The number of functions, the last ones, that must be at least 0 instead; they
            may violate this by `VIOLATION`.
        tolerance: The gain at which the steps end; None for the least that is not noise.
        max_iterations: The largest number of steps.

    Returns:
        The best point on the way from the start, ``d``; the start if no point is better.
    """
    best, height = start, -np.inf
    d = len(start)

    def joint(z: ndarray) -> tuple[ndarray, ndarray]:
        nonlocal best, height
        point = start.new_tensor(z[:-1]).clamp(0, 1)
        values, gradients = cuts(point[None])
        # One copy to the host.
        read = torch.cat([values, gradients[:, 0]], dim=-1).double().cpu().numpy()
        is_cut = np.arange(len(read)) < len(read) - num_slacks
        least, slack = (read[mask, 0].min(initial=np.inf) for mask in (is_cut, ~is_cut))
        if slack >= -VIOLATION and least > height:
            best, height = point, least
        slopes = np.insert(read[:, 1:], d, -1.0 * is_cut, axis=1)
        return np.append(z[-1], read[:, 0] - z[-1] * is_cut), np.vstack([up, slopes])

    up = np.append(np.zeros(d), 1.0)
    first = np.append(start.double().cpu().numpy(), 0.0)
    values = joint(first)[0][1:]
    first[-1] = values[: len(values) - num_slacks].min()
    noise = torch.finfo(start.dtype).eps ** (2 / 3)  # of the model
    gain = noise if tolerance is None else tolerance
    slsqp(joint, first, [*[(0.0, 1.0)] * d, (None, None)], gain, max_iterations)
    return best


def slsqp(
    joint: Callable[[ndarray], tuple[ndarray, ndarray]],
    start: ndarray,
    bounds: Sequence[tuple[float | None, float | None]],
    tolerance: float,
    max_iterations: int,
) -> ndarray:
    """Maximises a function where others are at least 0, by SciPy's SLSQP.

    Args:
        joint: A function from ``d`` numbers to the ``1 + s`` values of the function and the others,
            and their ``(1 + s) x d`` gradients.
        start: The ``d``-dim start.
        bounds: The ``d`` pairs of limits; rounding may move the end slightly past them.
        tolerance: The gain at which the steps end.
        max_iterations: The largest number of steps.

    Returns:
        The ``d``-dim end.
    """

    @lru_cache(maxsize=1)
    def at(entries: tuple[float, ...]) -> tuple[ndarray, ndarray]:
        return joint(np.array(entries))

    def loss(x: ndarray) -> tuple[float, ndarray]:
        values, gradients = at(tuple(x))
        return -values[0], -gradients[0]

    others = {
        "type": "ineq",
        "fun": lambda x: at(tuple(x))[0][1:],
        "jac": lambda x: at(tuple(x))[1][1:],
    }
    with warnings.catch_warnings():
        # The warning is about points that rounding moves past a limit.
        warnings.filterwarnings("ignore", message="Values in x were outside bounds")
        found = minimize(
            loss,
            start,
            jac=True,
            method="SLSQP",
            bounds=bounds,
            constraints=others,
            options={"ftol": tolerance, "maxiter": max_iterations},
        )
    return found.x
