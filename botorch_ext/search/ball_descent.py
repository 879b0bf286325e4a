"""Descents to the least values of a function in balls that the faces of a box cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor

Norm = Literal["l2", "linf"]

# Share of the predicted gain that a step must reach (Armijo), and the least that it is halved to.
_SUFFICIENT, _SHORTEST = 1e-4, 2.0**-20
# Steps without a gain above rounding, after which a descent ends.
_MAX_IDLE = 8
# The host looks every so many steps which descents are over. Those leave: on a CPU their arithmetic
# costs most, on a GPU the waits.
_STEPS_TOGETHER = 4


class CutBall(NamedTuple):
    """The allowed offsets from each of n points: the part of the unit ball between limits.

    Offsets are in units of the radii.

    Args:
        low: ``n x *batch x d`` lower limits, in [-1, 0].
        high: ``n x *batch x d`` upper limits, in [0, 1].
        norm: The norm of the ball: "l2" or "linf".
    """

    low: Tensor
    high: Tensor
    norm: Norm

    def clamp(self, U: Tensor) -> Tensor:
        """Clip offsets to the limits."""
        return torch.minimum(torch.maximum(U, self.low), self.high)

    def nearest(self, U: Tensor) -> Tensor:
        """Project offsets onto the ball between the limits.

        Args:
            U: ``... x n x *batch x d`` offsets.

        Returns:
            The nearest allowed offsets, of the same shape.
        """
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


class _Descents(NamedTuple):
    """The state of the descents from n starts.

    Each tensor is ``n x *batch`` or ``n x *batch x d``, with 1 or d in place of d.

    Args:
        rows: ``n`` rows of these starts among all starts.
        centers: The centres of the balls.
        low: The lower limits of the offsets.
        high: The upper limits of the offsets.
        unit: The step whose length tells whether there is anything to gain.
        least: The shortest spectral step.
        most: The longest spectral step.
        slack: The size of rounding errors of a value.
        offsets: The current offsets.
        values: The values at the current offsets.
        gradients: The gradients at the current offsets.
        step: The spectral step.
        share: The share of the step that is tried.
        idle: The number of steps without a gain above rounding.
        moving: Which descents go on.
        moves: The moves from the offsets by the whole step.
    """

    rows: Tensor
    centers: Tensor
    low: Tensor
    high: Tensor
    unit: Tensor
    least: Tensor
    most: Tensor
    slack: Tensor
    offsets: Tensor
    values: Tensor
    gradients: Tensor
    step: Tensor
    share: Tensor
    idle: Tensor
    moving: Tensor
    moves: Tensor

    def aimed(self, norm: Norm) -> Self:
        """The state with the next moves; descents at a minimum stop."""
        ball = CutBall(self.low, self.high, norm)
        steps = torch.stack([self.unit, self.step]) * self.gradients
        plain, moves = ball.nearest(self.offsets - steps) - self.offsets
        some = plain.norm(dim=-1) > torch.finfo(plain.dtype).eps ** 0.6
        return self._replace(moves=moves, moving=self.moving & some & (self.idle < _MAX_IDLE))

    def moved(self, trial: Tensor, new_f: Tensor, new_g: Tensor) -> Self:
        """The state after a step if it is good, or with a shorter step ahead."""
        f, g, slack = self.values, self.gradients, self.slack
        predicted = self.share * (g * self.moves).sum(dim=-1)
        # Near the end rounding decides: what is above by no more than that is no worse.
        hopeful = (predicted < -slack) & (self.share > _SHORTEST)
        enough = new_f <= f + slack + torch.where(hopeful, _SUFFICIENT * predicted, 0)
        taken = self.moving & enough
        moving = self.moving & (enough | hopeful)  # where neither nothing is to be gained
        s, y = trial - self.offsets, new_g - g
        curvature = (s * y).sum(dim=-1, keepdim=True)
        spectral = s.square().sum(dim=-1, keepdim=True) / curvature
        spectral = torch.where(curvature > 0, spectral, 10 * self.step)
        spectral = spectral.clamp(self.least, self.most)
        new = taken.unsqueeze(-1)
        return self._replace(
            offsets=torch.where(new, trial, self.offsets),
            values=torch.where(taken, new_f, f),
            gradients=torch.where(new, new_g, g),
            step=torch.where(new, spectral, self.step),
            share=torch.where(moving & ~taken, 0.5 * self.share, 1),
            idle=torch.where(f - new_f <= slack, self.idle + taken, 0),
            moving=moving,
        )

    def those(self, rows: Tensor) -> Self:
        """The state of some of the descents."""
        return type(self)(*(part.index_select(0, rows) for part in self))


def descend(
    value_and_gradient: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    centers: Tensor,
    starts: Tensor,
    ball: CutBall,
    spread: Tensor,
    moving: Tensor,
    max_iterations: int,
) -> tuple[Tensor, Tensor]:
    """Minimise by spectral projected gradient descent from many starts at once.

    Each descent has its own offset around its own centre. Source: Birgin, Martinez and Raydan 2000.

    Args:
        value_and_gradient: The function to minimise, from ``k x *batch x d`` centres and as many
            offsets to ``k x *batch`` values and ``k x *batch x d`` gradients by the offsets.
        centers: ``n x *batch x d`` centres.
        starts: ``n x *batch x d`` offsets in the ball.
        ball: The allowed offsets of each centre.
        spread: ``n x *batch`` numbers: how much the function varies in each ball.
        moving: ``n x *batch`` booleans: which starts descend. The others stay.
        max_iterations: The largest number of steps of each descent. A step that is halved counts
            again.

    Returns:
        ``n x *batch x d`` offsets and their ``n x *batch`` values, none above its start.
    """
    f, g = value_and_gradient(centers, starts)
    eps, tiny = torch.finfo(f.dtype).eps, torch.finfo(f.dtype).tiny
    # Gradients are of the order of the spread; a flat function is at its minimum.
    scale = spread.clamp_min(tiny**0.5).unsqueeze(-1)
    first = 1 / torch.maximum(g.norm(dim=-1, keepdim=True), scale)
    going = _Descents(
        rows=torch.arange(len(f), device=f.device),
        centers=centers,
        low=ball.low,
        high=ball.high,
        unit=1 / scale,
        least=1e-6 * first,
        most=1e6 * first,
        slack=10 * eps * f.abs(),
        offsets=starts,
        values=f,
        gradients=g,
        step=first,
        share=torch.ones_like(f),
        idle=torch.zeros_like(f),
        moving=moving,
        moves=torch.zeros_like(starts),
    )

    ends = starts, f
    for iteration in range(max_iterations):
        going = going.aimed(ball.norm)
        if iteration % _STEPS_TOGETHER == 0:
            rows = going.moving.view(len(going.rows), -1).any(dim=-1).nonzero().squeeze(-1)
            if len(rows) < len(going.rows):
                ends = _written(ends, going)
                going = going.those(rows)
            if not len(rows):
                break
        trial = going.offsets + going.share.unsqueeze(-1) * going.moves
        going = going.moved(trial, *value_and_gradient(going.centers, trial))
    return _written(ends, going)


def _written(ends: tuple[Tensor, Tensor], going: _Descents) -> tuple[Tensor, Tensor]:
    """The ends of all starts, with those of some of them updated."""
    now = going.offsets, going.values
    if len(going.rows) == len(ends[0]):
        return now
    U, f = (end.index_copy(0, going.rows, new) for end, new in zip(ends, now, strict=True))
    return U, f
