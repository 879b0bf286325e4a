"""Batched quasi-Newton ascent in a box: many starts at once, on the device of the starts.

SciPy's L-BFGS-B, which BoTorch uses, runs on the host, one start at a time, and its BLAS threads
fight with torch's. For the handful of coordinates of an experiment a dense BFGS matrix for each
start is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_ext.search.ascent_in_step import climb_in_step
from botorch_ext.search.quasi_newton import (
    HEAD_START,
    HOPE,
    MAX_HALVINGS,
    SUFFICIENT,
    first_matrix,
    free_coordinates,
    newton_step,
    promised_gain,
    updated_matrix,
)

# Step lengths `feasible_ascent` tries at once, each half the one before: relative to the last one
# taken, from twice as long on.
_NUM_TRIED = 4


def projected_bfgs(
    value_and_gradient: Callable[..., tuple[Tensor, Tensor]],
    starts: Tensor,
    gradient_tolerance: float = 1e-6,
    value_tolerance: float = 2e-12,
    max_iterations: int = 200,
    with_rows: bool = False,
    race: bool = False,
    recordable: bool = False,
) -> tuple[Tensor, Tensor]:
    """Maximises a function on the unit cube from many starts at once.

    Each start keeps its own dense approximation of the Hessian. Coordinates at a face whose
    gradient points outwards are held; the others take a quasi-Newton step, projected on the cube
    and shortened until it gains enough (Bertsekas 1982: projected Newton methods). A start ends
    when its projected gradient is small, when a step gains next to nothing, or when no step gains
    at all.

    Args:
        value_and_gradient: ``m x d`` to ``m`` values and ``m x d`` gradients.
        starts: ``k x d``, in the unit cube.
        gradient_tolerance: Largest coordinate of the projected gradient at the end.
        value_tolerance: Least gain of a step, relative to max(|value|, 1).
        max_iterations: Steps of each start.
        with_rows: Whether each start climbs a function of its own: ``value_and_gradient`` is then
            called with a second argument, the ``m`` rows of the starts that the points belong to.
        race: Whether only the highest end counts: starts that will not reach it give up.
        recordable: Whether ``value_and_gradient`` can be a part of a CUDA graph.

    Returns:
        ``k x d`` points and their ``k`` values, none below its start.
    """

    def evaluate(x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        return value_and_gradient(x, rows) if with_rows else value_and_gradient(x)

    limits = gradient_tolerance, value_tolerance, max_iterations, race
    if starts.is_cuda:
        return climb_in_step(evaluate, starts, *limits, recordable)
    return _those_that_move(evaluate, starts, *limits)


def _those_that_move(
    evaluate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    gradient_tolerance: float,
    value_tolerance: float,
    max_iterations: int,
    race: bool,
) -> tuple[Tensor, Tensor]:
    """Starts that have ended take no time: best on the CPU."""
    # Results, and the rows of them that still move; everything below has one entry per moving
    # start.
    rows = torch.arange(len(starts), device=starts.device)
    final_x, (final_f, g) = starts.clone(), evaluate(starts, rows)
    x, f = final_x.clone(), final_f.clone()
    eye = torch.eye(starts.shape[-1], dtype=starts.dtype, device=starts.device)
    B = first_matrix(g, eye)
    fresh = torch.ones_like(f, dtype=torch.bool)
    for iteration in range(max_iterations):
        free = free_coordinates(x, g)
        reduced = torch.where(free, g, 0)
        moving = (reduced.abs() > gradient_tolerance).any(dim=-1)
        if not bool(moving.all()):
            rows, x, f, g, B, fresh, free, reduced = (
                a[moving] for a in (rows, x, f, g, B, fresh, free, reduced)
            )
        if not len(rows):
            break
        step = newton_step(free, reduced, B, eye)
        if race and iteration >= HEAD_START:
            # NaN leaves all of them.
            near = ~(f + HOPE * promised_gain(step, reduced) < final_f.max())
            rows, x, f, g, B, fresh, step = (a[near] for a in (rows, x, f, g, B, fresh, step))
            if not len(rows):
                break
        least = value_tolerance * f.abs().clamp_min(1)
        new_x, new_f, new_g = _line_search(evaluate, rows, x, f, g, step, least)
        gained = new_f - f
        B, fresh = updated_matrix(B, fresh, new_x - x, g - new_g, eye)
        x, f, g = new_x, new_f, new_g
        final_x[rows], final_f[rows] = x, f
        # Where nothing was gained the matrix may be to blame: start it afresh, once in a row.
        stuck = gained <= least
        B = torch.where((stuck & ~fresh)[:, None, None], first_matrix(g, eye), B)
        going = ~stuck | ~fresh
        fresh = fresh | stuck
        rows, x, f, g, B, fresh = (a[going] for a in (rows, x, f, g, B, fresh))
        if not len(rows):
            break
    return final_x, final_f


def _line_search(
    evaluate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    rows: Tensor,
    x: Tensor,
    f: Tensor,
    g: Tensor,
    step: Tensor,
    least: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The first of the steps 1, 1/2, 1/4, ... that gains enough; no step where none can."""
    new_x = (x + step).clamp(0, 1)
    new_f, new_g = evaluate(new_x, rows)
    for _ in range(MAX_HALVINGS):
        predicted = (g * (new_x - x)).sum(dim=-1)
        short = ~(new_f - f >= SUFFICIENT * predicted)  # NaN is short too
        (bad,) = (short & (predicted > least)).nonzero(as_tuple=True)
        if not len(bad):
            break
        step = step.clone()
        step[bad] *= 0.5
        new_x[bad] = (x[bad] + step[bad]).clamp(0, 1)
        new_f[bad], new_g[bad] = evaluate(new_x[bad], rows[bad])
    short = ~(new_f > f)
    keep = short[:, None]
    return torch.where(keep, x, new_x), torch.where(short, f, new_f), torch.where(keep, g, new_g)


def feasible_ascent(
    value_and_gradient: Callable[[Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    feasible: Callable[[Tensor], Tensor] | None = None,
    num_steps: int = 8,
    first_step: float = 0.1,
) -> tuple[Tensor, Tensor]:
    """Climbs in the unit cube along normalised, projected gradients and never leaves a set.

    Every step tries several lengths at once and moves to the best point that is feasible and an
    improvement, so it needs no line search and works with any feasible set that can be tested.

    Args:
        value_and_gradient: ``m x d`` to ``m`` values and ``m x d`` gradients.
        starts: ``k x d``, feasible points of the unit cube.
        feasible: ``m x d`` to ``m`` booleans; None where every point of the cube is feasible.
        num_steps: Steps of each start.
        first_step: Length of the first step.

    Returns:
        ``k x d`` feasible points and their ``k`` values, none below its start.
    """
    x, (f, g) = starts, value_and_gradient(starts)
    k = len(starts)
    lengths = 2.0 ** (1 - torch.arange(_NUM_TRIED, dtype=starts.dtype, device=starts.device))
    step = starts.new_full((k,), first_step)
    rows = torch.arange(k, device=starts.device)
    for _ in range(num_steps):
        direction = torch.where(free_coordinates(x, g), g, 0)
        direction = direction / direction.norm(dim=-1, keepdim=True).clamp_min(1e-300)
        moves = (step[:, None] * lengths).unsqueeze(-1) * direction.unsqueeze(-2)  # k x s x d
        trial = (x.unsqueeze(-2) + moves).clamp(0, 1).flatten(0, 1)
        trial_f, trial_g = value_and_gradient(trial)
        better = trial_f > f.repeat_interleave(len(lengths))
        if feasible is not None:
            if trial.is_cuda:  # a few points more cost less than waiting for the GPU
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
