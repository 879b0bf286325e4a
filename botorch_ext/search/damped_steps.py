"""Damped steps: where quadratic models of an objective and its constraints promise a gain.

Many starts at once, with shapes that never change and nothing that the host looks at: a form of
`sliding` for a GPU, where several steps of each start cost no more than one. Each curvature is
damped by several multiples of its norm, from next to none to more than it, instead of made positive
by its eigenvectors, for which CUDA stops the host.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_ext.search.sliding import INSIDE, LONGEST, NUM_NEAR, active_sets

# Damping of a curvature, in units of its norm. Those above 1 make any curvature positive.
_DAMPINGS = (1e-6, 0.03, 0.3, 1.1, 4.0)
# Steps of each start among constraints: those of the most promise.
_NUM_STEPS = 12


class Quadratic(NamedTuple):
    """The quadratic models of a function around k points.

    Args:
        value: ``k``.
        gradient: ``k x d``.
        hessian: ``k x d x d``.
    """

    value: Tensor
    gradient: Tensor
    hessian: Tensor


class DampedSteps:
    """Steps that models of an objective and of its constraints favour.

    Args:
        num_constraints: How many there are.
        like: ``... x d``: dtype, device and d of the points.
    """

    def __init__(self, num_constraints: int, like: Tensor) -> None:
        d = like.shape[-1]
        self.inside = INSIDE[like.dtype]
        self.eye = torch.eye(d, dtype=like.dtype, device=like.device)
        self.dampings = like.new_tensor(_DAMPINGS)[:, None, None] * self.eye  # t x d x d
        num = min(num_constraints, NUM_NEAR)
        self.on = torch.from_numpy(active_sets(num, d)).to(like)  # s x J
        # Less of a ridge than what a step aims inside by, for constraints that run side by side.
        self.idle = torch.diag_embed(1 - self.on + 1e-12)  # s x J x J
        self.near_eye = torch.eye(num, dtype=like.dtype, device=like.device)

    def __call__(self, objective: Quadratic, near: list[Quadratic], room: Tensor) -> Tensor:
        """The steps, in the units of the models.

        Args:
            objective: Its model at each of k starts; the value does not count.
            near: Those of the constraints, at least 0 at the starts.
            room: ``2 x k x d``: to the lower faces of the box, none positive, and to the upper.

        Returns:
            ``k x s x d``; some may be NaN.
        """
        if not near:
            return self._free_steps(objective, room)
        return self._along(objective, self._nearest(near), room)

    def _free_steps(self, objective: Quadratic, room: Tensor) -> Tensor:
        _, g, H = objective
        free = _free(g, room)
        system = self._damped(H, free)  # k x t x d x d
        right = torch.where(free, g, 0)[:, None, :, None].expand(*system.shape[:-1], 1)
        return shortened(solved(system, right, self.eye)[..., 0])

    def _along(self, objective: Quadratic, near: Quadratic, room: Tensor) -> Tensor:
        (_, g, H), (c, A, C) = objective, near  # c: k x J
        k, d = g.shape
        J = c.shape[-1]
        room = room[:, :, None]
        A_on = A[:, None] * self.on[..., None]  # k x s x J x d
        # How hard each constraint of a set must push to stop the climb, by least squares.
        push = solved(A_on @ A_on.mT + self.idle, -(A_on @ g[:, None, :, None]), self.near_eye)
        push = push.clamp_min(0)[..., 0] * self.on  # k x s x J
        free = _free(g[:, None] + (push[..., None, :] @ A_on)[..., 0, :], room)
        curvature = H[:, None] + (push @ C.flatten(2)).view(k, -1, d, d)
        A_on = torch.where(free[..., None, :], A_on, 0)[:, :, None]  # k x s x 1 x J x d
        system = self._damped(curvature, free)
        pulls = torch.where(free, g[:, None], 0)[..., None]
        right = torch.cat([pulls, A_on[:, :, 0].mT], dim=-1)
        answer = solved(system, right[:, :, None].expand(*system.shape[:-1], J + 1), self.eye)
        climb, pull = answer[..., :1], answer[..., 1:]  # k x s x t x d x (1, J)
        joint = A_on @ pull + self.idle[:, None]
        back = pull @ solved(joint, self.near_eye.expand_as(joint), self.near_eye)
        short = A_on @ climb

        def step(target: Tensor) -> Tensor:  # k x s x t x J
            return shortened((climb + back @ (target[..., None] - short))[..., 0])

        on = self.on[:, None]
        aim = on * (self.inside - c[:, None, None])
        bend = on * _bent(step(aim), C)
        full, safe = step(aim - bend), step(aim - bend + 0.2 * bend.abs())
        p = torch.cat([full, safe], dim=1).flatten(1, 2)
        p = p.clamp(*room)  # k x t x d
        gain = (p @ g[..., None])[..., 0] + _bent(p, H[:, None])[..., 0]
        slack = c[:, None] + p @ A.mT + _bent(p, C)
        outside = (slack < -0.1 * p.norm(dim=-1, keepdim=True)).any(dim=-1)
        gain = torch.where(outside | gain.isnan(), -torch.inf, gain)
        best = gain.topk(min(_NUM_STEPS, gain.shape[-1]), dim=-1).indices
        return p.gather(1, best[..., None].expand(-1, -1, d))

    def _damped(self, curvature: Tensor, free: Tensor) -> Tensor:
        """Minus the curvatures ``... x d x d`` along free coordinates, damped: ``... x t x d x
        d``."""
        curvature = torch.where(free[..., None] & free[..., None, :], curvature, 0)
        size = torch.linalg.vector_norm(curvature, dim=(-2, -1))
        return size[..., None, None, None] * self.dampings - curvature.unsqueeze(-3)

    def _nearest(self, near: list[Quadratic]) -> Quadratic:
        """The nearest constraints of each start, in units of distance."""
        c, A, C = (torch.stack(parts, dim=1) for parts in zip(*near, strict=True))
        length = A.norm(dim=-1).clamp_min(torch.finfo(A.dtype).tiny)
        c, A, C = c / length, A / length[..., None], C / length[..., None, None]
        if len(near) <= NUM_NEAR:
            return Quadratic(c, A, C)
        rows = c.topk(NUM_NEAR, dim=1, largest=False).indices
        d = A.shape[-1]
        return Quadratic(
            c.gather(1, rows),
            A.gather(1, rows[..., None].expand(-1, -1, d)),
            C.gather(1, rows[..., None, None].expand(-1, -1, d, d)),
        )


def solved(A: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B for many small positive matrices, ``... x n x n`` and ``... x n x m``, by elimination
    without pivots; anything where A is not positive.

    No library of linear algebra: what those do with small batches on CUDA may stop the host.
    """
    n = A.shape[-1]
    AB = torch.cat([A, B], dim=-1)
    for i in range(n):
        row = AB[..., i : i + 1, :] / AB[..., i : i + 1, i : i + 1]
        AB = torch.addcmul(AB, eye[:, i : i + 1] - AB[..., i : i + 1], row)
    return AB[..., n:]


def shortened(p: Tensor) -> Tensor:
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
