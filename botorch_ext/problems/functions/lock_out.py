"""Lock-out: the instance on which GP-UCB's confidence bounds exclude the best arm for ever."""

from __future__ import annotations

import math

from botorch_ext.checks import whole_number
from botorch_ext.problems.functions.linear_arms import LinearArms


class LockOut(LinearArms):
    """Arms, a linear kernel, and a perturbation that GP-UCB never recovers from.

    In two dimensions three arms, (sqrt(1 - h^2), h), (sqrt(1 - h^2), -h) and (0.65, 0.6) with h =
    0.25; f = theta'x with theta = (0.28, 0.96), whose RKHS norm is 1; m = (-eps, +eps, +eps) with
    eps = 0.25. So f* = (0.261, 0.281, 1.008): the two bad arms look alike, which leads the linear
    fit to the conclusion that the second coordinate does not matter. Each further dimension has the
    same three arms with its own coordinate in place of the second, where theta and m are 0: two
    arms worth 0.271, and a decoy of the best arm, worth 0.182, which GP-UCB tries once. Ours, for
    the methods of Bogunovic and Krause 2021.

    Args:
        dim: d, from 2 to 6; GP-UCB is not always locked out with more.

    Attributes:
        kernel: k(x, y) = x'y, at most 1 on the arms.
        rkhs_bound: 1, the norm of f.
        misspecification: eps = 0.25, the largest \\|m\\|.
        noise_std: 0.01, the standard deviation of the observation noise.
        noise_variance: 1e-3, that of the model.
        delta: 0.1, the failure probability of the widths.
        horizon: 300 evaluations.

    Raises:
        ValueError: A dimension below 2 or above 6.
    """

    def __init__(self, dim: int = 2) -> None:
        dim = whole_number(dim, "dim", least=2)
        if dim > 6:
            raise ValueError(f"dim must be at most 6, got {dim}")
        height = 0.25
        epsilon = 0.25
        along = math.sqrt(1 - height**2)
        # For each coordinate but the first the three arms; the bad ones of all come first.
        bad = [_arm(dim, along, i, side) for i in range(1, dim) for side in (height, -height)]
        far = [_arm(dim, 0.65, i, 0.6) for i in range(1, dim)]
        zeros = [0.0] * (dim - 2)
        perturbation = [-epsilon, epsilon, *zeros, *zeros, epsilon, *zeros]
        super().__init__([*bad, *far], _arm(dim, 0.28, 1, 0.96), perturbation)

    def __repr__(self) -> str:
        dim = self.domain.dim
        return "LockOut()" if dim == 2 else f"LockOut(dim={dim})"


def lock_out(dim: int = 2) -> LockOut:
    """The lock-out instance, with all that is needed to run it.

    Args:
        dim: d, from 2 to 6.

    Returns:
        A problem on three arms, in more than two dimensions on 3 (d - 1), whose attributes hold the
        kernel and the parameters.

    Raises:
        ValueError: A dimension below 2 or above 6.
    """
    return LockOut(dim)


def _arm(dim: int, first: float, i: int, other: float) -> list[float]:
    """(first, 0, ..., other at i, ..., 0)."""
    return [first, *(other if j == i else 0.0 for j in range(1, dim))]
