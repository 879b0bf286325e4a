"""Batched quasi-Newton ascent in a box: many starts at once, on the device of the starts.

SciPy's L-BFGS-B, which BoTorch uses, runs on the host, one start at a time, and its BLAS threads
fight with torch's. For the handful of coordinates of an experiment a dense BFGS matrix for each
start is cheaper.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Share of the predicted gain that a step must reach (Armijo).
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 25
# In a race a start gives up where so many times the gain that its quadratic model promises would
# leave it below the best so far; not in the first steps, when that model is a guess.
_HOPE, _HEAD_START = 4.0, 4
# Where shapes never change: lengths of a step that are tried at once, and iterations that the host
# does not look at.
_NUM_LENGTHS, _UNSEEN = 5, 8
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

    Returns:
        ``k x d`` points and their ``k`` values, none below its start.
    """

    def evaluate(x: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        return value_and_gradient(x, rows) if with_rows else value_and_gradient(x)

    climb = _all_to_the_end if starts.is_cuda else _those_that_move
    return climb(evaluate, starts, gradient_tolerance, value_tolerance, max_iterations, race)


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
    B = _first_matrix(g, eye)
    fresh = torch.ones_like(f, dtype=torch.bool)
    for iteration in range(max_iterations):
        free = _free(x, g)
        reduced = torch.where(free, g, 0)
        moving = (reduced.abs() > gradient_tolerance).any(dim=-1)
        if not bool(moving.all()):
            rows, x, f, g, B, fresh, free, reduced = (
                a[moving] for a in (rows, x, f, g, B, fresh, free, reduced)
            )
        if not len(rows):
            break
        step = _newton_step(free, reduced, B, eye)
        if race and iteration >= _HEAD_START:
            # NaN leaves all of them.
            near = ~(f + _HOPE * _promised(step, reduced) < final_f.max())
            rows, x, f, g, B, fresh, step = (a[near] for a in (rows, x, f, g, B, fresh, step))
            if not len(rows):
                break
        least = value_tolerance * f.abs().clamp_min(1)
        new_x, new_f, new_g = _line_search(evaluate, rows, x, f, g, step, least)
        gained = new_f - f
        B, fresh = _update(B, fresh, new_x - x, g - new_g, eye)
        x, f, g = new_x, new_f, new_g
        final_x[rows], final_f[rows] = x, f
        # Where nothing was gained the matrix may be to blame: start it afresh, once in a row.
        stuck = gained <= least
        B = torch.where((stuck & ~fresh)[:, None, None], _first_matrix(g, eye), B)
        going = ~stuck | ~fresh
        fresh = fresh | stuck
        rows, x, f, g, B, fresh = (a[going] for a in (rows, x, f, g, B, fresh))
        if not len(rows):
            break
    return final_x, final_f


def _all_to_the_end(
    evaluate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    gradient_tolerance: float,
    value_tolerance: float,
    max_iterations: int,
    race: bool,
) -> tuple[Tensor, Tensor]:
    """Shapes never change, several lengths of a step are tried at once, and the host looks at the
    device every few iterations only: best where launches and waiting cost more than arithmetic."""
    rows = torch.arange(len(starts), device=starts.device)
    powers = torch.arange(_NUM_LENGTHS, dtype=starts.dtype, device=starts.device)
    lengths, order = 2.0**-powers, _NUM_LENGTHS - powers
    each = rows.repeat_interleave(_NUM_LENGTHS)
    x, (f, g) = starts, evaluate(starts, rows)
    eye = torch.eye(starts.shape[-1], dtype=starts.dtype, device=starts.device)
    B, longest = _first_matrix(g, eye), torch.ones_like(f)
    fresh = torch.ones_like(f, dtype=torch.bool)
    going = fresh
    for iteration in range(max_iterations):
        free = _free(x, g)
        reduced = torch.where(free, g, 0)
        going = going & (reduced.abs() > gradient_tolerance).any(dim=-1)
        if iteration % _UNSEEN == _UNSEEN - 1 and not bool(going.any()):
            break
        step = _newton_step(free, reduced, B, eye)
        if race and iteration >= _HEAD_START:
            going = going & ~(f + _HOPE * _promised(step, reduced) < f.max())
        least = value_tolerance * f.abs().clamp_min(1)
        trial = x[:, None] + (longest[:, None] * lengths).unsqueeze(-1) * step[:, None]  # k x s x d
        trial = trial.clamp(0, 1)
        trial_f, trial_g = evaluate(trial.flatten(0, 1), each)
        trial_f, trial_g = trial_f.view_as(trial[..., 0]), trial_g.view_as(trial)
        predicted = (g[:, None] * (trial - x[:, None])).sum(dim=-1)
        gain = trial_f - f[:, None]
        enough = (gain >= _SUFFICIENT * predicted) & (gain > 0) & going[:, None]
        pick = (enough * order).argmax(dim=-1)  # the longest
        moved, picked = enough.any(dim=-1), rows * _NUM_LENGTHS + pick
        new_x = torch.where(moved[:, None], trial.flatten(0, 1)[picked], x)
        new_g = torch.where(moved[:, None], trial_g.flatten(0, 1)[picked], g)
        new_f = torch.where(moved, trial_f.flatten()[picked], f)
        gained = new_f - f
        B, fresh = _update(B, fresh, new_x - x, g - new_g, eye)
        x, f, g = new_x, new_f, new_g
        # Steps that are shorter still come next.
        shorter = ~moved & (predicted[:, -1] > least) & (longest > 2.0**-_MAX_HALVINGS)
        longest = torch.where(shorter, longest * lengths[-1] / 2, 1)
        stuck = (gained <= least) & ~shorter
        B = torch.where((stuck & ~fresh)[:, None, None], _first_matrix(g, eye), B)
        going = going & (~stuck | ~fresh)
        fresh = fresh | stuck
    return x, f


def _free(x: Tensor, g: Tensor) -> Tensor:
    """The coordinates that are not held at a face."""
    return ~(((x <= 0) & (g < 0)) | ((x >= 1) & (g > 0)))


def _newton_step(free: Tensor, reduced: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """The quasi-Newton steps of the free coordinates, of a gradient that is zero in the others."""
    # The Newton system of the free coordinates alone; the identity for the others, which stay.
    both = free.unsqueeze(-1) & free.unsqueeze(-2)
    factor, _ = torch.linalg.cholesky_ex(torch.where(both, B, eye))
    step = torch.cholesky_solve(reduced.unsqueeze(-1), factor).squeeze(-1)
    # B is positive definite; this only catches rounding.
    uphill = (step * reduced).sum(dim=-1) > 0
    return torch.where(uphill[:, None], step, reduced)


def _promised(step: Tensor, reduced: Tensor) -> Tensor:
    """What quasi-Newton steps promise to gain."""
    return 0.5 * (step * reduced).sum(dim=-1)


def _first_matrix(g: Tensor, eye: Tensor) -> Tensor:
    """The first step is a tenth of the cube along the steepest coordinate."""
    return 10 * eye * g.abs().amax(dim=-1).clamp_min(1e-300)[:, None, None]


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
    for _ in range(_MAX_HALVINGS):
        predicted = (g * (new_x - x)).sum(dim=-1)
        short = ~(new_f - f >= _SUFFICIENT * predicted)  # NaN is short too
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


def _update(B: Tensor, fresh: Tensor, s: Tensor, y: Tensor, eye: Tensor) -> tuple[Tensor, Tensor]:
    """The BFGS update of the Hessian of minus f, where the curvature is positive."""
    curvature = (s * y).sum(dim=-1)
    squared = y.square().sum(dim=-1)
    good = curvature > 1e-10 * (s.square().sum(dim=-1) * squared).sqrt()
    curvature = torch.where(good, curvature, 1)[:, None, None]
    # Before the first update: the scale of the curvature seen (Nocedal and Wright, eq. 6.20).
    first = (fresh & good)[:, None, None]
    B = torch.where(first, squared[:, None, None] / curvature * eye, B)
    Bs = (B @ s.unsqueeze(-1)).squeeze(-1)
    quadratic = torch.where(good, (s * Bs).sum(dim=-1), 1)[:, None, None]
    updated = (
        B
        - Bs.unsqueeze(-1) * Bs.unsqueeze(-2) / quadratic
        + y.unsqueeze(-1) * y.unsqueeze(-2) / curvature
    )
    return torch.where(good[:, None, None], updated, B), fresh & ~good


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
        direction = torch.where(_free(x, g), g, 0)
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
