"""Linear arms: a linear bandit whose values deviate from the linear model by up to eps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel, LinearKernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import FiniteSet, host
from botorch_ext.problems.functions.perturbed import Perturbed, tabulated
from botorch_ext.problems.functions.rkhs import RKHSFunction

_Rows = Tensor | Sequence[Sequence[float]]


class LinearArms(Perturbed):
    """A misspecified linear bandit: f* = theta'x + m on finitely many arms.

    Its attributes have the kernel and the parameters that a method needs.

    Args:
        arms: The arms, ``N x d``, of norm at most 1.
        theta: The weights, ``d``; their norm, at most 1, is the RKHS norm of the linear part.
        perturbation: The deviation m at each arm, ``N``.
        noise_std: The standard deviation of the observation noise.
        noise_variance: lambda, the ridge of the model.

    Attributes:
        kernel: k(x, y) = x'y, at most 1 on the arms.
        rkhs_bound: 1.
        misspecification: eps, the largest \\|m\\|.
        delta: 0.1, the failure probability of the widths.
        horizon: 300 evaluations.

    Raises:
        ValueError: If the shapes do not fit, or an arm or theta is longer than 1.
    """

    def __init__(
        self,
        arms: _Rows,
        theta: Tensor | Sequence[float],
        perturbation: Tensor | Sequence[float],
        *,
        noise_std: float = 0.01,
        noise_variance: float = 1e-3,
    ) -> None:
        domain = FiniteSet(arms)
        kernel = LinearKernel().to(torch.float64)
        kernel.variance = 1.0
        center = torch.as_tensor(theta, dtype=domain.dtype, device=domain.device).reshape(1, -1)
        # theta is the one center: theta'x = k(theta, x).
        linear = RKHSFunction(kernel, center, [1.0], domain, noise_std)
        longest = max(linear.norm, float(domain.points.norm(dim=-1).max()))
        if longest > 1 + 1e-9:
            raise ValueError(f"arms and theta must have norm at most 1, got {longest}")
        table = tabulated(domain, perturbation)
        super().__init__(linear, table, float(table(domain.points).abs().max()))
        self.kernel: Kernel = linear.kernel
        self.rkhs_bound: float = 1.0
        self.noise_variance: float = noise_variance
        self.delta: float = 0.1
        self.horizon: int = 300

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_arms={len(self.domain.like)}, dim={self.domain.dim}, "
            f"misspecification={self.misspecification:g}, noise_std={self.noise_std:g})"
        )


def random_linear(
    seed: int, *, dim: int = 2, num_arms: int = 3, misspecification: float = 0.25
) -> LinearArms:
    """Draw a random linear instance: uniform arms in the unit ball, uniform theta of norm 1, and
    m = +-eps.

    A few instances lock GP-UCB out, with the defaults about one in fourteen: the perturbations of
    the arms that it evaluates lead to a linear fit that excludes the best arm. With more dimensions
    and more arms it is about one in three instances, and the exclusion takes longer to detect. The
    other instances show the cost of a safeguard if the model is wrong but harmless. The instances
    are our own.

    Args:
        seed: The seed of the arms, theta and the signs of m.
        dim: d, the dimension of the arms.
        num_arms: N, the number of arms.
        misspecification: eps, the size of m.

    Returns:
        The instance, with noise of standard deviation 0.01.

    Raises:
        ValueError: If the dimension or the number of arms is below 1.
    """
    dim = whole_number(dim, "dim", least=1)
    num_arms = whole_number(num_arms, "num_arms", least=1)
    generator = torch.Generator().manual_seed(seed)
    directions = host.randn(num_arms + 1, dim, dtype=torch.float64, generator=generator)
    directions = directions / directions.norm(dim=-1, keepdim=True)
    radii = host.rand(num_arms, 1, dtype=torch.float64, generator=generator) ** (1 / dim)
    signs = 2 * host.randint(2, (num_arms,), generator=generator).double() - 1
    return LinearArms(radii * directions[1:], directions[0], misspecification * signs)
