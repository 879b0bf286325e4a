"""Lock-outs where there are more than three arms to choose from: on a box, and in contexts.

Both have the arms of `LockOut` among their points, and GP-UCB chooses no others: with a linear
kernel its index is convex along a segment of arms, so its largest value is at an end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from botorch_ext.problems import LockOut
from botorch_ext.problems.base import KnownFunction
from botorch_ext.problems.functions.contextual import ContextualFunction

_ARMS = LockOut()
_THETA = torch.tensor([0.28, 0.96], dtype=torch.float64)
_HEIGHT = 0.25


def _between(X: Tensor) -> Tensor:
    """``... x 2`` points (u, v) to the arm a share v of the way from (sqrt(1 - h^2), u) to the best
    one."""
    u, v = X[..., :1], X[..., 1:]
    near = torch.cat([torch.full_like(u, math.sqrt(1 - _HEIGHT**2)), u], dim=-1)
    return (1 - v) * near + v * X.new_tensor([0.65, 0.6])


def _shrunk(X: Tensor) -> Tensor:
    """``... x 3`` arms and contexts to the arms that the contexts leave: up to a quarter less."""
    return X[..., :2] * (1 - X[..., 2:] / 4)


class ArmKernel(Kernel):
    """k(x, y) = a(x)'a(y).

    Args:
        arms: a, from ``... x d`` points to arms.
    """

    def __init__(self, arms: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.arms = arms

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        """The matrix, or its diagonal."""
        a, b = self.arms(x1), self.arms(x2)
        return (a * b).sum(-1) if diag else a @ b.mT


class _AsArms:
    """What methods are told, as of the arms."""

    noise_variance = _ARMS.noise_variance
    rkhs_bound = _ARMS.rkhs_bound
    misspecification = _ARMS.misspecification
    delta = _ARMS.delta


class LockOutBox(_AsArms, KnownFunction):
    """A box of arms: at its edge v = 0 from one bad arm to the other, all worth about 0.27; towards
    v = 1, where every point is the best arm, f* and the perturbation grow with v."""

    def __init__(self) -> None:
        super().__init__(bx.Box([(-_HEIGHT, _HEIGHT), (0.0, 1.0)]), _ARMS.noise_std)
        self.kernel: Kernel = ArmKernel(_between)

    def _evaluate(self, X: Tensor) -> Tensor:
        u, v = X.unbind(-1)
        # At v = 0 the perturbation is -eps at u = h and eps at -h, where the bad arms are.
        epsilon = _ARMS.misspecification
        return _between(X) @ _THETA + (1 - v) * (-epsilon * u / _HEIGHT) + v * epsilon


class LockOutInContexts(_AsArms, ContextualFunction):
    """Three arms, which a context from 0 to 1 shrinks by up to a quarter, perturbations too."""

    def __init__(self) -> None:
        super().__init__(_ARMS.domain, 1, _ARMS.noise_std)
        self.kernel: Kernel = ArmKernel(_shrunk)

    def _evaluate(self, X: Tensor) -> Tensor:
        return _ARMS(X[:, :2]) * (1 - X[:, 2] / 4)
