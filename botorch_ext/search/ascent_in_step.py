"""Ascent in step: all starts climb together, by the same operations from beginning to end.

A form of `ascent` for a GPU, where launches and waiting cost more than arithmetic: shapes never
change, several lengths of a step are tried at once, and the host looks at the device every few
iterations only, which become a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_ext.repeats import loop
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

# Lengths of a step that are tried at once, and iterations that the host does not look at.
_NUM_LENGTHS, _UNSEEN = 5, 8


class _Climbers(NamedTuple):
    """Starts that climb together, k of them.

    Args:
        x: ``k x d``, where they are.
        f: ``k`` values there.
        g: ``k x d`` gradients.
        B: ``k x d x d``, of minus the Hessians.
        longest: ``k``: the longest share of a step that is tried.
        fresh: ``k``: whether B is a first one.
        going: ``k``: which of them climb on.
        free: ``k x d``: the coordinates that are not held at a face.
        reduced: ``k x d``: the gradients of these, and zeros.
    """

    x: Tensor
    f: Tensor
    g: Tensor
    B: Tensor
    longest: Tensor
    fresh: Tensor
    going: Tensor
    free: Tensor
    reduced: Tensor


def climb_in_step(
    evaluate: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    starts: Tensor,
    gradient_tolerance: float,
    value_tolerance: float,
    max_iterations: int,
    race: bool,
    recordable: bool = False,
) -> tuple[Tensor, Tensor]:
    """As `projected_bfgs` of `ascent`; ``evaluate`` is given the rows of the starts too."""
    rows = torch.arange(len(starts), device=starts.device)
    powers = torch.arange(_NUM_LENGTHS, dtype=starts.dtype, device=starts.device)
    lengths, order = 2.0**-powers, _NUM_LENGTHS - powers
    each = rows.repeat_interleave(_NUM_LENGTHS)
    eye = torch.eye(starts.shape[-1], dtype=starts.dtype, device=starts.device)

    def aimed(x: Tensor, g: Tensor, going: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        free = free_coordinates(x, g)
        reduced = torch.where(free, g, 0)
        return going & (reduced.abs() > gradient_tolerance).any(dim=-1), free, reduced

    def step(now: _Climbers, race: bool) -> _Climbers:
        x, f, g, B, longest, fresh, going, free, reduced = now
        move = newton_step(free, reduced, B, eye)
        if race:
            going = going & ~(f + HOPE * promised_gain(move, reduced) < f.max())
        least = value_tolerance * f.abs().clamp_min(1)
        trial = x[:, None] + (longest[:, None] * lengths).unsqueeze(-1) * move[:, None]  # k x s x d
        trial = trial.clamp(0, 1)
        trial_f, trial_g = evaluate(trial.flatten(0, 1), each)
        trial_f, trial_g = trial_f.view_as(trial[..., 0]), trial_g.view_as(trial)
        predicted = (g[:, None] * (trial - x[:, None])).sum(dim=-1)
        gain = trial_f - f[:, None]
        enough = (gain >= SUFFICIENT * predicted) & (gain > 0) & going[:, None]
        pick = (enough * order).argmax(dim=-1)  # the longest
        moved, picked = enough.any(dim=-1), rows * _NUM_LENGTHS + pick
        new_x = torch.where(moved[:, None], trial.flatten(0, 1)[picked], x)
        new_g = torch.where(moved[:, None], trial_g.flatten(0, 1)[picked], g)
        new_f = torch.where(moved, trial_f.flatten()[picked], f)
        B, fresh = updated_matrix(B, fresh, new_x - x, g - new_g, eye)
        # Steps that are shorter still come next.
        shorter = ~moved & (predicted[:, -1] > least) & (longest > 2.0**-MAX_HALVINGS)
        longest = torch.where(shorter, longest * lengths[-1] / 2, 1)
        stuck = (new_f - f <= least) & ~shorter
        B = torch.where((stuck & ~fresh)[:, None, None], first_matrix(new_g, eye), B)
        going, free, reduced = aimed(new_x, new_g, going & (~stuck | ~fresh))
        return _Climbers(new_x, new_f, new_g, B, longest, fresh | stuck, going, free, reduced)

    f, g = evaluate(starts, rows)
    fresh = torch.ones_like(f, dtype=torch.bool)
    first = first_matrix(g, eye), torch.ones_like(f), fresh
    now = _Climbers(starts, f, g, *first, *aimed(starts, g, fresh))
    head_start = min(HEAD_START, max_iterations) if race else 0
    for _ in range(head_start):
        now = step(now, False)
    climb = loop(partial(step, race=race), now, recordable, max_iterations - head_start)
    for start in range(head_start, max_iterations, _UNSEEN):
        now = climb(min(_UNSEEN, max_iterations - start))
        if not bool(now.going.any()):
            break
    return now.x, now.f
