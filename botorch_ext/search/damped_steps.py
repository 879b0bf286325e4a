"""Damped steps: where starts in a box may come higher, along the constraints that stop them.

Many starts at once, with shapes that never change and nothing that the host looks at: a form of
`sliding` for a GPU, where several steps of each start cost no more than one. Each curvature is
damped by several multiples of its norm, from next to none to more than it, instead of made positive
by its eigenvectors, for which CUDA stops the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.search.sliding import (
    INSIDE,
    LONGEST,
    NUM_NEAR,
    PROBE,
    ValueAndGradient,
    active_sets,
)

# Damping of a curvature, in units of its norm and that of the slope. Those above 1 make any
# curvature positive, and no step is longer than one over its damping.
_DAMPINGS = (1e-6, 0.03, 0.3, 1.1, 4.0, 20.0)
# Steps of each start among constraints: those of the most promise.
_NUM_STEPS = 12


class _Quadratic(NamedTuple):
    """Values ``k x ...``, gradients and Hessians around k starts, in units of the scale."""

    value: Tensor
    gradient: Tensor
    hessian: Tensor


class DampedSteps:
    """Points that quadratic models of an objective and of its constraints favour.

    Args:
        box: Where.
        scale: ``d`` lengths by which the feasible set extends.
        num_constraints: How many there are.
    """

    def __init__(self, box: Box, scale: Tensor, num_constraints: int) -> None:
        like, d = box.like, box.dim
        self.box, self.scale = box, scale
        self.middle = (box.lower + box.upper) / 2
        probe = PROBE[like.dtype] * scale
        self.probes, self.half = torch.stack([probe, -probe]), 0.5 * scale
        self.eye = torch.eye(d, dtype=like.dtype, device=like.device)
        self.beside = torch.cat([like.new_zeros(1, d), self.eye])
        self.inside = INSIDE[like.dtype]
        num = min(num_constraints, NUM_NEAR)
        damped = torch.cat([self.eye, like.new_zeros(d, 1 + num)], dim=-1)
        self.dampings = like.new_tensor(_DAMPINGS)[:, None, None] * damped  # t x d x (d + 1 + J)
        self.on = torch.from_numpy(active_sets(num, d)).to(like)  # s x J
        # Less of a ridge than what a step aims inside by, for constraints that run side by side.
        self.idle = torch.diag_embed(1 - self.on + 1e-12)  # s x J x J
        self.near_eye = torch.eye(num, dtype=like.dtype, device=like.device)

    def points(
        self,
        gradient: Callable[[Tensor], Tensor],
        constraints: Sequence[ValueAndGradient],
        x: Tensor,
    ) -> Tensor:
        """Each start, and where steps from it lead: in the box, some outside the constraints, some
        lower, some NaN.

        Args:
            gradient: Of the objective, ``m x d`` to ``m x d``.
            constraints: Smooth functions that are at least 0 in the feasible set.
            x: ``k x d`` starts.

        Returns:
            ``k x s x d``, the starts first.
        """
        k, d = x.shape
        # Inwards, so that no probe leaves the box.
        move = torch.where(x < self.middle, *self.probes)
        probes = torch.addcmul(x[:, None], move[:, None], self.beside).flatten(0, 1)
        quotient = (self.half / move)[..., None]

        def model(value: Tensor, gradient: Tensor) -> _Quadratic:
            gradient = gradient.view(k, d + 1, d) * self.scale
            half = (gradient[:, 1:] - gradient[:, :1]) * quotient
            return _Quadratic(value[:: d + 1], gradient[:, 0], half + half.mT)

        objective = model(probes[:0], gradient(probes))  # its value makes no difference
        near = [model(*constraint(probes)) for constraint in constraints]
        room = (self.box.bounds[:, None] - x) / self.scale
        steps = self._along(objective, near, room) if near else self._freely(objective, room)
        ends = torch.addcmul(x[:, None], steps, self.scale).clamp(self.box.lower, self.box.upper)
        return torch.cat([x[:, None], ends], dim=1)

    def _freely(self, objective: _Quadratic, room: Tensor) -> Tensor:
        _, g, H = objective
        free = _free(g, room)
        return _shortened(self._climbs(H, free, torch.where(free, g, 0)[..., None])[..., 0])

    def _along(self, objective: _Quadratic, near: list[_Quadratic], room: Tensor) -> Tensor:
        (_, g, H), (c, A, C) = objective, _nearest(near)  # c: k x J
        k, d = g.shape
        room = room[:, :, None]
        A_on = A[:, None] * self.on[..., None]  # k x s x J x d
        # How hard each constraint of a set must push to stop the climb, by least squares.
        push = solved(A_on @ A_on.mT + self.idle, -(A_on @ g[:, None, :, None]), self.near_eye)
        push = push.clamp_min(0)[..., 0] * self.on  # k x s x J
        free = _free(g[:, None] + (push[..., None, :] @ A_on)[..., 0, :], room)
        curvature = H[:, None] + (push @ C.flatten(2)).view(k, -1, d, d)
        A_on = torch.where(free[..., None, :], A_on, 0)[:, :, None]  # k x s x 1 x J x d
        right = torch.cat([torch.where(free, g[:, None], 0)[..., None], A_on[:, :, 0].mT], dim=-1)
        answer = self._climbs(curvature, free, right)
        climb, pull = answer[..., :1], answer[..., 1:]  # k x s x t x d x (1, J)
        joint = A_on @ pull + self.idle[:, None]
        back = pull @ solved(joint, self.near_eye.expand_as(joint), self.near_eye)
        short = A_on @ climb

        def step(target: Tensor) -> Tensor:  # k x s x t x J
            return _shortened((climb + back @ (target[..., None] - short))[..., 0])

        on = self.on[:, None]
        aim = on * (self.inside - c[:, None, None])
        bend = on * _bent(step(aim), C)
        full, safe = step(aim - bend), step(aim - bend + 0.2 * bend.abs())
        # Of no constraint they are the same.
        p = torch.cat([full, safe[:, 1:]], dim=1).flatten(1, 2).clamp(*room)  # k x t x d
        gain = (p @ g[..., None])[..., 0] + _bent(p, H[:, None])[..., 0]
        slack = c[:, None] + p @ A.mT + _bent(p, C)
        outside = (slack < -0.1 * p.norm(dim=-1, keepdim=True)).any(dim=-1)
        gain = torch.where(outside | gain.isnan(), -torch.inf, gain)
        best = gain.topk(min(_NUM_STEPS, gain.shape[-1]), dim=-1).indices
        return p.take_along_dim(best[..., None], 1)

    def _climbs(self, curvature: Tensor, free: Tensor, right: Tensor) -> Tensor:
        """Minus the damped curvatures, inverted, times slopes.

        Args:
            curvature: ``... x d x d``.
            free: ``... x d``: the coordinates that may move.
            right: ``... x d x (1 + J)``: slopes; of the first the norm counts.

        Returns:
            ``... x t x d x (1 + J)``.
        """
        both = free[..., None] & free[..., None, :]
        joint = torch.cat([torch.where(both, curvature, 0), right], dim=-1)
        part = joint[..., : free.shape[-1] + 1]
        size = torch.linalg.vector_norm(part, dim=(-2, -1), keepdim=True).unsqueeze(-3)
        return -_eliminated(joint.unsqueeze(-3) - size * self.dampings, self.eye)


def solved(A: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B for many small definite matrices, ``... x n x n`` and ``... x n x m``; anything where
    A is not definite.

    No library of linear algebra: what those do with small batches on CUDA may stop the host.
    """
    return _eliminated(torch.cat([A, B], dim=-1), eye)


def _eliminated(AB: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B, by elimination without pivots."""
    n = len(eye)
    for i in range(n):
        row = AB[..., i : i + 1, :] / AB[..., i : i + 1, i : i + 1]
        AB = torch.addcmul(AB, eye[:, i : i + 1] - AB[..., i : i + 1], row)
    return AB[..., n:]


def _shortened(p: Tensor) -> Tensor:
    """Steps ``... x d`` of the longest length at most."""
    length = torch.linalg.vector_norm(p, dim=-1, keepdim=True)
    return p / (length / LONGEST).clamp_min(1)


def _free(pull: Tensor, room: Tensor) -> Tensor:
    """Which coordinates can go where they are pulled: those at a face may not."""
    return pull.clamp(*room) != 0


def _bent(p: Tensor, C: Tensor) -> Tensor:
    """p' C p / 2 of steps ``k x ... x d`` and matrices ``k x J x d x d``: ``k x ... x J``."""
    squares = (p[..., None] * p[..., None, :]).flatten(-2)
    return ((squares.flatten(1, -2) @ C.flatten(2).mT) / 2).view(*p.shape[:-1], C.shape[1])


def _nearest(near: list[_Quadratic]) -> _Quadratic:
    """The nearest constraints of each start, in units of distance."""
    c, A, C = (torch.stack(parts, dim=1) for parts in zip(*near, strict=True))
    length = A.norm(dim=-1).clamp_min(torch.finfo(A.dtype).tiny)
    c, A, C = c / length, A / length[..., None], C / length[..., None, None]
    if len(near) <= NUM_NEAR:
        return _Quadratic(c, A, C)
    rows = c.topk(NUM_NEAR, dim=1, largest=False).indices
    return _Quadratic(
        c.gather(1, rows),
        A.take_along_dim(rows[..., None], 1),
        C.take_along_dim(rows[..., None, None], 1),
    )
