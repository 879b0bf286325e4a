"""Damped steps: where starts in a box may come higher, along the constraints that stop them.

Many starts at once, with shapes that never change and nothing that the host looks at: a form of
`sliding` for a GPU, where several steps of each start cost no more than one. Each curvature is
damped by several multiples of its norm, from next to none to more than it, instead of made positive
by its eigenvectors, for which CUDA stops the host.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.search.sliding import (
    INSIDE,
    LONGEST,
    NUM_NEAR,
    PROBE,
    active_sets,
)

# From ``m x d`` points to ``J x m`` values of constraints, or None without any, and ``(1 + J) x m x
# d`` gradients of the objective and of them.
Models = Callable[[Tensor], tuple[Tensor | None, Tensor]]

# Damping of a curvature, in units of its norm and that of the slope. Those above 1 make any
# curvature positive, and steps are the shorter the more they are damped.
_DAMPINGS = (1e-6, 0.03, 0.3, 1.1, 4.0, 20.0)


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
        self.is_on, self.half_on = self.on[..., None] != 0, 0.5 * self.on[:, None]
        # Less of a ridge than what a step aims inside by, for constraints that run side by side.
        self.idle = torch.diag_embed(1 - self.on + 1e-12)  # s x J x J
        self.near_eye = torch.eye(num, dtype=like.dtype, device=like.device)

    def points(self, models: Models, x: Tensor) -> Tensor:
        """Each start, and where steps from it lead: in the box, some outside the constraints, some
        lower, some NaN.

        Args:
            models: What the objective and the constraints are; at least 0 in the feasible set.
            x: ``k x d`` starts.

        Returns:
            ``k x s x d``, the starts first.
        """
        k, d = x.shape
        # Inwards, so that no probe leaves the box.
        move = torch.where(x < self.middle, *self.probes)
        probes = torch.addcmul(x[:, None], move[:, None], self.beside).flatten(0, 1)
        values, gradients = models(probes)
        gradients = gradients.unflatten(1, (k, d + 1)) * self.scale
        slopes = gradients[:, :, 0]
        half = (gradients[:, :, 1:] - gradients[:, :, :1]) * (self.half / move)[..., None]
        bends = half + half.mT
        room = (self.box.bounds[:, None] - x) / self.scale
        if values is None:
            steps = self._freely(slopes[0], bends[0], room)
        else:
            steps = self._along(values[:, :: d + 1], slopes, bends, room)
        ends = torch.addcmul(x[:, None], steps, self.scale).clamp(self.box.lower, self.box.upper)
        return torch.cat([x[:, None], ends], dim=1)

    def _freely(self, g: Tensor, H: Tensor, room: Tensor) -> Tensor:
        free = _free(g, room)
        return _shortened(self._climbs(H, free, torch.where(free, g, 0)[..., None])[..., 0])

    def _along(self, values: Tensor, slopes: Tensor, bends: Tensor, room: Tensor) -> Tensor:
        g, H = slopes[0], bends[0]
        constraints = (part.transpose(0, 1) for part in (values, slopes[1:], bends[1:]))
        c, A, C = _nearest(*constraints)  # c: k x J
        k, d = g.shape
        room = room[:, :, None]
        # How hard each constraint must push to stop the climb: nothing, or less.
        push = (A @ g[..., None]).clamp_max(0).mT * self.on  # k x s x J
        free = _free(g[:, None] - push @ A, room)
        curvature = H[:, None] - (push @ C.flatten(2)).view(k, -1, d, d)
        A_on = torch.where(free[..., None, :] & self.is_on, A[:, None], 0)  # k x s x J x d
        right = torch.cat([torch.where(free, g[:, None], 0)[..., None], A_on.mT], dim=-1)
        answer = self._climbs(curvature, free, right)
        climb, pull = answer[..., :1], answer[..., 1:]  # k x s x t x d x (1, J)
        A_on = A_on[:, :, None]
        back = solved(A_on @ pull + self.idle[:, None], pull.mT, self.near_eye).mT
        aim = (self.inside - c[:, None]) * self.on  # k x s x J
        p = climb + back @ (aim[:, :, None, :, None] - A_on @ climb)
        p = _shortened(p[..., 0])
        bend = _bent(p, C) * self.half_on  # k x s x t x J
        p = p - (back @ bend[..., None])[..., 0]
        return p.flatten(1, 2).clamp(*room)

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
        return -eliminated(joint.unsqueeze(-3) - size * self.dampings, self.eye)


def _shortened(p: Tensor) -> Tensor:
    """Steps ``... x d`` of the longest length at most."""
    length = torch.linalg.vector_norm(p, dim=-1, keepdim=True)
    return p / (length / LONGEST).clamp_min(1)


def _free(pull: Tensor, room: Tensor) -> Tensor:
    """Which coordinates can go where they are pulled: those at a face may not."""
    return pull.clamp(*room) != 0


def _bent(p: Tensor, C: Tensor) -> Tensor:
    """p' C p of steps ``k x ... x d`` and matrices ``k x J x d x d``: ``k x ... x J``."""
    squares = (p[..., None] * p[..., None, :]).flatten(-2)
    return (squares.flatten(1, -2) @ C.flatten(2).mT).view(*p.shape[:-1], C.shape[1])


def _nearest(c: Tensor, A: Tensor, C: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Values, gradients and Hessians of the nearest constraints of each start, in units of
    distance."""
    length = torch.linalg.vector_norm(A, dim=-1).clamp_min(torch.finfo(A.dtype).tiny)
    c, A, C = c / length, A / length[..., None], C / length[..., None, None]
    if c.shape[-1] <= NUM_NEAR:
        return c, A, C
    rows = c.topk(NUM_NEAR, dim=1, largest=False).indices
    return (
        c.gather(1, rows),
        A.take_along_dim(rows[..., None], 1),
        C.take_along_dim(rows[..., None, None], 1),
    )


def solved(A: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B for many small definite matrices, ``... x n x n`` and ``... x n x m``; anything where
    A is not definite.

    No library of linear algebra: what those do with small batches on CUDA may stop the host.
    """
    return eliminated(torch.cat([A, B], dim=-1), eye)


def eliminated(AB: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B, by elimination without pivots."""
    n = len(eye)
    for i in range(n):
        row = AB[..., i : i + 1, :] / AB[..., i : i + 1, i : i + 1]
        AB = torch.addcmul(AB, eye[:, i : i + 1] - AB[..., i : i + 1], row)
    return AB[..., n:]
