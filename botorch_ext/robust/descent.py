"""Descents: the least values of a function in balls that the faces of a box cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Norm = Literal["l2", "linf"]

# Share of the predicted gain that a step must reach (Armijo), and the least that it is halved to.
_SUFFICIENT, _SHORTEST = 1e-4, 2.0**-20
# Steps without a gain above rounding, after which a descent ends.
_MAX_IDLE = 8
# Steps that the host does not look at where waiting costs more than arithmetic.
_UNSEEN = 8


class CutBall(NamedTuple):
    """The offsets from each of n points, in units of the radii: the part of the unit ball between
    limits.

    Args:
        low: ``n x *batch x d``, in [-1, 0].
        high: ``n x *batch x d``, in [0, 1].
        norm: "l2" or "linf".
    """

    low: Tensor
    high: Tensor
    norm: Norm

    def clamp(self, U: Tensor) -> Tensor:
        """Offsets brought between the limits."""
        return torch.minimum(torch.maximum(U, self.low), self.high)

    def nearest(self, U: Tensor) -> Tensor:
        """The nearest offsets of the ball that lie between the limits, of ``... x n x *batch x d``
        ones."""
        if self.norm == "linf" or U.shape[-1] == 1:
            return self.clamp(U)
        # clamp(s U) with the largest s <= 1 that brings it into the ball. While the coordinates
        # that meet their limits before one of them are held, the norm is known; where they should
        # not be it is too large, and s too small: the largest s is the one.
        tiny = torch.finfo(U.dtype).tiny
        size, limit = U.abs(), torch.where(U > 0, self.high, -self.low)
        meets = limit / size.clamp_min(tiny)
        before = meets.unsqueeze(-2) < meets.unsqueeze(-1)
        held = torch.where(before, limit.square().unsqueeze(-2), 0).sum(dim=-1)
        free = torch.where(before, 0, size.square().unsqueeze(-2)).sum(dim=-1)
        s = ((1 - held).clamp_min(0) / free.clamp_min(tiny)).amax(dim=-1, keepdim=True).sqrt()
        return self.clamp(s.clamp_max(1) * U)


def descend(
    value_and_gradient: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    centers: Tensor,
    starts: Tensor,
    ball: CutBall,
    spread: Tensor,
    moving: Tensor,
    max_iterations: int,
) -> tuple[Tensor, Tensor]:
    """Spectral projected gradient descent (Birgin, Martinez and Raydan 2000) of many starts at
    once, each from its own offset around its own centre.

    Args:
        value_and_gradient: What is minimised: of ``k x *batch x d`` centres and as many offsets
            ``k x *batch`` values and ``k x *batch x d`` gradients by the offsets.
        centers: ``n x *batch x d``.
        starts: ``n x *batch x d`` offsets in the ball.
        ball: Of each centre.
        spread: ``n x *batch``: how much the function varies in each ball.
        moving: ``n x *batch``: which of them descend; the others stay.
        max_iterations: Steps of each descent; one that is halved counts again.

    Returns:
        ``n x *batch x d`` offsets and their ``n x *batch`` values, none above its start.
    """
    f, g = value_and_gradient(centers, starts)
    eps, tiny = torch.finfo(f.dtype).eps, torch.finfo(f.dtype).tiny
    root = eps**0.6
    # Gradients are of the order of the spread; a flat function is at its minimum.
    scale = spread.clamp_min(tiny**0.5).unsqueeze(-1)
    first = 1 / torch.maximum(g.norm(dim=-1, keepdim=True), scale)
    X, U, unit, step, slack = centers, starts, 1 / scale, first, 10 * eps * f.abs()
    length, idle = torch.ones_like(f), torch.zeros_like(f)
    ends = U, f  # of all, once some have ended
    rows = torch.arange(len(U), device=U.device)
    for iteration in range(max_iterations):
        # The first of two steps tells whether there is anything to gain.
        plain, direction = ball.nearest(U - torch.stack([unit, step]) * g) - U
        moving = moving & (plain.norm(dim=-1) > root) & (idle < _MAX_IDLE)
        if U.is_cuda:
            # Shapes never change: launches and waiting cost more than arithmetic.
            if iteration % _UNSEEN == _UNSEEN - 1 and not bool(moving.any()):
                break
        else:
            going = moving.view(len(moving), -1).any(dim=-1)
            if not bool(going.all()):
                ends = _written(ends, rows, (U, f))
                ball = CutBall(ball.low[going], ball.high[going], ball.norm)
                rows, X, U, f, g, direction, unit, first, step, slack, length, idle, moving = (
                    a[going]
                    for a in (
                        rows, X, U, f, g, direction, unit, first, step, slack, length, idle, moving
                    )
                )  # fmt: skip
            if not len(rows):
                break
        V = U + length.unsqueeze(-1) * direction
        new_f, new_g = value_and_gradient(X, V)
        predicted = length * (g * direction).sum(dim=-1)
        # Near the end rounding decides: what is above by no more than that is no worse.
        short = moving & ~(new_f <= f + _SUFFICIENT * predicted + slack)
        short &= (-predicted > slack) & (length > _SHORTEST)
        moving = moving & (short | (new_f <= f + slack))  # where not nothing is to be gained
        taken = moving & ~short
        length = torch.where(short, 0.5 * length, 1)
        s, y = V - U, new_g - g
        curvature = (s * y).sum(dim=-1, keepdim=True)
        spectral = s.square().sum(dim=-1, keepdim=True) / curvature
        spectral = torch.where(curvature > 0, spectral, 10 * step)
        spectral = spectral.clamp(1e-6 * first, 1e6 * first)
        idle = torch.where(f - new_f <= slack, idle + taken, 0)
        f = torch.where(taken, new_f, f)
        taken = taken.unsqueeze(-1)
        step, U, g = (
            torch.where(taken, new, old) for new, old in ((spectral, step), (V, U), (new_g, g))
        )
    return _written(ends, rows, (U, f))


def _written(
    ends: tuple[Tensor, Tensor], rows: Tensor, values: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Ends with those of some rows replaced."""
    if len(rows) == len(ends[0]):
        return values
    return ends[0].index_copy(0, rows, values[0]), ends[1].index_copy(0, rows, values[1])
