"""Lock-out: instances on which GP-UCB's confidence bounds exclude the best arm for ever."""

from __future__ import annotations

import math

from botorch_ext.checks import whole_number
from botorch_ext.problems.functions.linear_arms import LinearArms

# Of `NoisyLockOut`: the standard deviation of the noise, the shorter arm, and the gap from which on
# f*(1) is not positive.
_NOISE_STD, _SHORTER, _LARGEST_GAP = 0.1, 0.9, 19


class LockOut(LinearArms):
    """A misspecified linear bandit from whose perturbation GP-UCB never recovers.

    In two dimensions there are three arms, (sqrt(1 - h^2), h), (sqrt(1 - h^2), -h) and (0.65, 0.6)
    with h = 0.25. The linear part is f = theta'x with theta = (0.28, 0.96), whose RKHS norm is 1,
    and m = (-eps, +eps, +eps) with eps = 0.25. So f* = (0.261, 0.281, 1.008). The two bad arms have
    almost the same value, so the linear fit concludes that the second coordinate does not matter.

    Each further dimension adds the same three arms with its own coordinate in place of the second,
    where theta and m are 0: two arms of value 0.271, and a decoy of the best arm of value 0.182,
    which GP-UCB tries once. The instance is our own, for the methods of Bogunovic and Krause 2021.

    Args:
        dim: d, from 2 to 6; with more dimensions GP-UCB is not always locked out.

    Attributes:
        kernel: k(x, y) = x'y, at most 1 on the arms.
        rkhs_bound: 1, the norm of f.
        misspecification: eps = 0.25, the largest \\|m\\|.
        noise_std: 0.01, the standard deviation of the observation noise.
        noise_variance: 1e-3, the ridge of the model.
        delta: 0.1, the failure probability of the widths.
        horizon: 300 evaluations.

    Raises:
        ValueError: If the dimension is below 2 or above 6.
    """

    def __init__(self, dim: int = 2) -> None:
        dim = whole_number(dim, "dim", least=2)
        if dim > 6:
            raise ValueError(f"dim must be at most 6, got {dim}")
        height = 0.25
        epsilon = 0.25
        along = math.sqrt(1 - height**2)
        # Three arms for each coordinate but the first; the bad arms of all coordinates come first.
        bad = [_arm(dim, along, i, side) for i in range(1, dim) for side in (height, -height)]
        far = [_arm(dim, 0.65, i, 0.6) for i in range(1, dim)]
        zeros = [0.0] * (dim - 2)
        perturbation = [-epsilon, epsilon, *zeros, *zeros, epsilon, *zeros]
        super().__init__([*bad, *far], _arm(dim, 0.28, 1, 0.96), perturbation)

    def __repr__(self) -> str:
        dim = self.domain.dim
        return "LockOut()" if dim == 2 else f"LockOut(dim={dim})"


def lock_out(dim: int = 2) -> LockOut:
    """The lock-out instance.

    Example:
        >>> from botorch_ext.problems import lock_out
        >>> problem = lock_out()
        >>> problem(problem.domain.points).round(decimals=3)
        tensor([0.2610, 0.2810, 1.0080], dtype=torch.float64)

    Args:
        dim: d, from 2 to 6.

    Returns:
        A problem on three arms, or on 3 (d - 1) arms in more than two dimensions. Its attributes
        have the kernel and the parameters that a method needs.

    Raises:
        ValueError: If the dimension is below 2 or above 6.
    """
    return LockOut(dim)


class NoisyLockOut(LinearArms):
    """Two arms on a line, 1 and 0.9, of which the shorter one is better by ``gap`` standard
    deviations of the noise.

    A linear model gives the shorter arm 0.9 times the mean and 0.9 times the standard deviation of
    the longer arm, so a positive upper bound is always larger at the longer arm. Since f*(1) = 1 -
    eps is positive, GP-UCB with any valid width never evaluates the better arm. A few evaluations
    of the better arm cannot tell the gap from the noise, so a test that looks only once may give up
    too early. The instance is our own.

    Args:
        gap: f*(0.9) - f*(1) in standard deviations of the noise, which is 0.1; less than 19.

    Attributes:
        kernel: k(x, y) = x y.
        rkhs_bound: 1, the norm of f.
        misspecification: eps = (0.1 gap + 0.1) / 2: m = (-eps, +eps).
        noise_std: 0.1.
        noise_variance: 0.01.
        delta: 0.1, the failure probability of the widths.
        horizon: 300 evaluations.

    Raises:
        ValueError: If the gap is out of its range.
    """

    def __init__(self, gap: float = 1.0) -> None:
        if not 0.0 < gap < _LARGEST_GAP:
            raise ValueError(f"gap must be positive and less than {_LARGEST_GAP}, got {gap}")
        self.gap: float = gap
        epsilon = (gap * _NOISE_STD + 1 - _SHORTER) / 2
        super().__init__(
            [[1.0], [_SHORTER]],
            [1.0],
            [-epsilon, epsilon],
            noise_std=_NOISE_STD,
            noise_variance=_NOISE_STD**2,
        )


def _arm(dim: int, first: float, i: int, other: float) -> list[float]:
    """The arm with ``first`` in column 0, ``other`` in column i, and 0 elsewhere."""
    return [first, *(other if j == i else 0.0 for j in range(1, dim))]
