"""Lock-out: the instance on which GP-UCB's confidence bounds exclude the best arm for ever."""

from __future__ import annotations

import math

import torch
from gpytorch.kernels import Kernel, LinearKernel

from botorch_ext.domains import FiniteSet
from botorch_ext.problems.functions.perturbed import Perturbed, tabulated
from botorch_ext.problems.functions.rkhs import RKHSFunction


class LockOut(Perturbed):
    """Three arms, a linear kernel, and a perturbation that GP-UCB never recovers from.

    Arms (sqrt(1 - h^2), h), (sqrt(1 - h^2), -h) and (0.65, 0.6) with h = 0.25; f = theta'x with
    theta = (0.28, 0.96), whose RKHS norm is 1; m = (-eps, +eps, +eps) with eps = 0.25. So
    f* = (0.261, 0.281, 1.008): the two bad arms look alike, which leads the linear fit to the
    conclusion that the second coordinate does not matter. Ours, for the methods of
    Bogunovic and Krause 2021.

    Attributes:
        kernel: k(x, y) = x'y, at most 1 on the arms.
        rkhs_bound: 1, the norm of f.
        misspecification: eps = 0.25, the largest \\|m\\|.
        noise_std: 0.01, the standard deviation of the observation noise.
        noise_variance: 1e-3, that of the model.
        delta: 0.1, the failure probability of the widths.
        horizon: 300 evaluations.
    """

    kernel: Kernel
    rkhs_bound: float
    noise_variance: float
    delta: float
    horizon: int

    def __init__(self) -> None:
        height = 0.25
        epsilon = 0.25
        along = math.sqrt(1 - height**2)
        arms = FiniteSet([[along, height], [along, -height], [0.65, 0.6]])
        kernel = LinearKernel().to(torch.float64)
        kernel.variance = 1.0
        # theta is the one center: theta'x = k(theta, x).
        linear = RKHSFunction(kernel, [[0.28, 0.96]], [1.0], arms, noise_std=0.01)
        super().__init__(linear, tabulated(arms, [-epsilon, epsilon, epsilon]), epsilon)
        self.kernel = linear.kernel
        self.rkhs_bound = 1.0
        self.noise_variance = 1e-3
        self.delta = 0.1
        self.horizon = 300

    def __repr__(self) -> str:
        return "LockOut()"


def lock_out() -> LockOut:
    """The lock-out instance, with all that is needed to run it.

    Returns:
        A problem on three arms whose attributes hold the kernel and the parameters.
    """
    return LockOut()
