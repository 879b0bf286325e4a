"""Noisy lock-out: a better arm that GP-UCB never evaluates, whose lead is within the noise."""

from __future__ import annotations

from botorch_ext.problems.functions.linear_arms import LinearArms

_NOISE_STD = 0.1
_SHORTER = 0.9
# From this gap on, f*(1) is not positive.
_LARGEST = 19


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
        if not 0.0 < gap < _LARGEST:
            raise ValueError(f"gap must be positive and less than {_LARGEST}, got {gap}")
        self.gap: float = gap
        epsilon = (gap * _NOISE_STD + 1 - _SHORTER) / 2
        super().__init__(
            [[1.0], [_SHORTER]],
            [1.0],
            [-epsilon, epsilon],
            noise_std=_NOISE_STD,
            noise_variance=_NOISE_STD**2,
        )
