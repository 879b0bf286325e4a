"""Newton steps in balls that the faces of a box cut off: a few where a descent takes tens."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor

from botorch_ext.search.ball_descent import CutBall

# The longest step in a sphere, in radii.
_LONGEST = 0.7
# Share of the predicted gain above which the model of the function is believed.
_GOOD = 0.5
# Steps after which a start may be given up, and by how many times its next gain, as predicted, it
# is then behind: curvatures change, and a start that falls steeply falls further than they say.
_NUM_TRIED, _BEHIND = 3, 10
# How far inside the sphere, by the square of the norm, an offset counts as on it.
_ON_SPHERE = 1e-9


class _Searches(NamedTuple):
    """The state of n Newton searches; each tensor is ``n x *batch`` or ``n x *batch x d``.

    Args:
        rows: ``n`` rows of these searches among all starts.
        centers: The centres of the balls.
        low: The lower limits of the offsets.
        high: The upper limits of the offsets.
        offsets: The current offsets.
        values: The values at the current offsets.
        gradients: The gradients at the current offsets.
        curvatures: The ``n x *batch x d x d`` curvatures at the current offsets.
        damping: The number that is added to the curvatures.
        moving: Which searches go on.
    """

    rows: Tensor
    centers: Tensor
    low: Tensor
    high: Tensor
    offsets: Tensor
    values: Tensor
    gradients: Tensor
    curvatures: Tensor
    damping: Tensor
    moving: Tensor

    def those(self, places: Tensor) -> Self:
        """The state of the searches at some places, ascending."""
        return type(self)(*(part[places] for part in self))


def polish(
    value_and_gradient: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    centers: Tensor,
    starts: Tensor,
    ball: CutBall,
    moving: Tensor,
    max_iterations: int,
    num_centers: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Minimise by damped Newton steps from many starts at once.

    Each search has its own offset around its own centre.

    Curvatures are differences of gradients. Coordinates at their limits that push outwards are
    held, and offsets on the sphere that push outwards move along it (with the curvature of the
    Lagrangian). Source: Absil, Mahony and Sepulchre 2008, chapter 6.

    Args:
        value_and_gradient: The function to minimise, as for `descend`.
        centers: ``n x *batch x d`` centres.
        starts: ``n x *batch x d`` offsets in the ball.
        ball: The allowed offsets of each centre.
        moving: ``n x *batch`` booleans: which starts search. The others stay.
        max_iterations: The largest number of steps of each search; steps that are taken back count.
        num_centers: k, if only the least of the starts ``i, i + k, i + 2 k, ...`` counts for each
            i. After a few steps a search ends if the predicted gain of its next step is too small
            to catch up with the best one.

    Returns:
        ``n x *batch x d`` offsets and their ``n x *batch`` values, none above its start.
    """

    def looked(centers: Tensor, U: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return _with_curvature(value_and_gradient, centers, U, high)

    f, g, H = looked(centers, starts, ball.high)
    eps = torch.finfo(f.dtype).eps
    short = eps**0.3
    now = _Searches(
        rows=torch.arange(len(f), device=f.device),
        centers=centers,
        low=ball.low,
        high=ball.high,
        offsets=starts,
        values=f,
        gradients=g,
        curvatures=H,
        damping=torch.zeros_like(f),
        moving=moving & f.isfinite(),
    )
    ends = starts, f
    group = now.rows % (num_centers or len(f))
    best = torch.full_like(f[: num_centers or len(f)], torch.inf)
    for iteration in range(max_iterations):
        kept = now.moving.view(len(now.rows), -1).any(dim=-1).nonzero().squeeze(-1)
        if len(kept) < len(now.rows):
            ends = _written(ends, now)
            now, group = now.those(kept), group[kept]
        if not len(now.rows):
            break
        limits = CutBall(now.low, now.high, ball.norm)
        U, f, g, H = now.offsets, now.values, now.gradients, now.curvatures
        trial, largest = _next(U, g, H, now.damping, limits)
        step = trial - U
        predicted = -((g + 0.5 * (H @ step.unsqueeze(-1)).squeeze(-1)) * step).sum(dim=-1)
        best = best.scatter_reduce(
            0, group.view(-1, *(1,) * (f.ndim - 1)).expand(f.shape), f, "amin"
        )
        ahead = f - _BEHIND * predicted.clamp_min(0) <= best[group]
        new_f, new_g, new_H = looked(now.centers, trial, now.high)
        slack = 10 * eps * f.abs()
        taken = now.moving & (new_f <= f + slack)
        good = taken & (f - new_f >= _GOOD * predicted - slack)
        length = step.abs().amax(dim=-1)
        # A full step leaves a square of its error, a damped one a share.
        enough = torch.where(now.damping > 0, eps**0.5, short)
        new = taken.unsqueeze(-1)
        now = now._replace(
            offsets=torch.where(new, trial, U),
            values=torch.where(taken, new_f, f),
            gradients=torch.where(new, new_g, g),
            curvatures=torch.where(new.unsqueeze(-1), new_H, H),
            damping=torch.where(
                good,
                torch.where(now.damping > 0.02 * largest, 0.1 * now.damping, 0),
                torch.maximum(torch.where(taken, 1, 4) * now.damping, 0.1 * largest),
            ),
            moving=now.moving
            & (ahead | (iteration < _NUM_TRIED))
            & (length > torch.where(taken, enough, eps**0.5)),
        )
    return _written(ends, now)


def _with_curvature(
    value_and_gradient: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    centers: Tensor,
    U: Tensor,
    high: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Values, gradients and their differences at ``n x *batch x d`` offsets."""
    d = U.shape[-1]
    h = torch.finfo(U.dtype).eps ** (1 / 3)
    away = torch.where(U + h <= high, h, -h)
    points = torch.cat([U.unsqueeze(0), U + away.diag_embed().movedim(-2, 0)])
    f, g = value_and_gradient(
        centers.expand(d + 1, *centers.shape).flatten(0, 1), points.flatten(0, 1)
    )
    f, g = f.view(points.shape[:-1])[0], g.view(points.shape)
    H = (g[1:] - g[0]).movedim(0, -2) / away.unsqueeze(-1)
    H = torch.nan_to_num(H + H.mT, 0.0, 0.0, 0.0) / 2
    return f, torch.nan_to_num(g[0], 0.0, 0.0, 0.0), H


def _next(U: Tensor, g: Tensor, H: Tensor, damping: Tensor, ball: CutBall) -> tuple[Tensor, Tensor]:
    """The ``n x *batch x d`` ends of the steps from the offsets, and the ``n x *batch`` largest
    curvatures."""
    faces = ball
    if ball.norm == "l2":  # the ends of the ball itself are on the sphere and on no face
        faces = ball._replace(
            low=torch.where(ball.low <= -1, -2, ball.low),
            high=torch.where(ball.high >= 1, 2, ball.high),
        )
    low, high = U <= faces.low, U >= faces.high
    pull, multiplier = g, torch.zeros_like(g[..., :1])
    if ball.norm == "l2":
        inner = torch.where(low | high, 0, U)
        weight = inner.square().sum(dim=-1, keepdim=True)
        inwards = -(g * inner).sum(dim=-1, keepdim=True)
        on_sphere = U.square().sum(dim=-1, keepdim=True) >= 1 - _ON_SPHERE
        on_sphere &= (inwards > 0) & (weight > _ON_SPHERE)
        multiplier = torch.where(on_sphere, inwards / weight, 0)
        pull = g + multiplier * U
    held, place = (low & (pull >= 0)) | (high & (pull <= 0)), U
    while True:
        moved, largest = _stepped(U, place, g, H, damping, multiplier, held, ball)
        limited = faces.clamp(moved)
        beyond = (limited != moved) & ~held
        if not bool(beyond.any()):
            return ball.clamp(limited), largest
        # What would go beyond its limit is held there, and the others make up for it.
        held, place = held | beyond, torch.where(beyond, limited, place)


def _stepped(
    U: Tensor,
    place: Tensor,
    g: Tensor,
    H: Tensor,
    damping: Tensor,
    multiplier: Tensor,
    held: Tensor,
    ball: CutBall,
) -> tuple[Tensor, Tensor]:
    """The ends of the steps, and the largest curvatures.

    Held coordinates go to their place, and the ball alone limits the others. Where there is a
    multiplier, the ends stay on the sphere.
    """
    free = ~held
    slope = torch.where(free, g + _turned(H, torch.where(held, place - U, 0)), 0)
    both = free.unsqueeze(-1) & free.unsqueeze(-2)
    A = torch.where(both, H, held.to(H).diag_embed())
    own, on_sphere = torch.where(free, U, 0), multiplier > 0
    if ball.norm == "l2":
        normal = torch.where(on_sphere, own, 0)
        normal = normal / normal.norm(dim=-1, keepdim=True).clamp_min(_ON_SPHERE)
        across = normal.unsqueeze(-1) * normal.unsqueeze(-2)
        # Along the sphere: the Lagrangian's curvature, and no slope outwards.
        tangent = torch.eye(U.shape[-1], dtype=U.dtype, device=U.device) - across
        A = tangent @ (A + multiplier.unsqueeze(-1) * both * tangent) @ tangent + across
        slope = _turned(tangent, slope)
    e, Q = torch.linalg.eigh(A)
    largest = e.abs().amax(dim=-1)
    # Along a straight line far beyond the ball, and no further: squares must be finite.
    floor = 1e-6 * slope.norm(dim=-1, keepdim=True) + torch.finfo(U.dtype).tiny
    step = -_turned(Q, _turned(Q.mT, slope) / (e.abs() + floor + damping.unsqueeze(-1)))
    if ball.norm == "linf":
        return torch.where(free, own + step, place), largest
    size = step.norm(dim=-1, keepdim=True)
    moved = own + step * (_LONGEST / size.clamp_min(_LONGEST))
    squares = torch.where(held, place, 0).square().sum(dim=-1, keepdim=True)
    radius = (1 - squares).clamp_min(0).sqrt()
    reach = moved.norm(dim=-1, keepdim=True)
    outside = on_sphere | (reach > radius)
    moved = torch.where(outside, moved * (radius / reach.clamp_min(_ON_SPHERE)), moved)
    return torch.where(free, moved, place), largest


def _turned(Q: Tensor, v: Tensor) -> Tensor:
    return (Q @ v.unsqueeze(-1)).squeeze(-1)


def _written(ends: tuple[Tensor, Tensor], now: _Searches) -> tuple[Tensor, Tensor]:
    """The ends of all starts, with those of some of them updated."""
    U, f = (
        end.index_copy(0, now.rows, new)
        for end, new in zip(ends, (now.offsets, now.values), strict=True)
    )
    return U, f
