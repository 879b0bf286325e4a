"""Information gain: its greedy maximum, and bounds for composite kernels.

The information gain of the data of a model is its ``information_gain()``.
"""

from __future__ import annotations

import math

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import amount, flag, one_number, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.reading import as_domain
from botorch_ext.kernels.frozen import require_unbatched
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.planning import POPULATION_SIZE, plan, plan_on_set
from botorch_ext.search.screening import screening_points

# The share of the maximum that greedy selection reaches at least (Nemhauser et al. 1978).
GREEDY_SHARE = 1 - 1 / math.e


def greedy_information_gain(
    kernel: Kernel, domain: Domain, num_points: int, noise_variance: float, seed: int = 0
) -> Tensor:
    """The information gain of 1, 2, ..., ``num_points`` greedily chosen points of largest variance.

    Each point is found as `plan` finds it; among equal points of a finite set the first is taken.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [5.0], [10.0]])
        >>> bx.information_gain.greedy_information_gain(RBFKernel(), points, 3, 0.01)
        tensor([2.3076, 4.6151, 6.9227], dtype=torch.float64)

    Args:
        kernel: Any GPyTorch kernel without batch dimensions.
        domain: The domain from which points are chosen, with repetition.
        num_points: The largest number of points; the designs are nested.
        noise_variance: lambda.
        seed: The seed of the screening points on a box.

    Returns:
        The gains, in nats, as a ``num_points``-dim tensor, increasing and concave: entry t - 1 is
        G_t.

    Raises:
        ValueError: If the count is less than 1, the noise variance is not positive, or the kernel
            is batched.
    """
    num_points = whole_number(num_points, "num_points", least=1)
    seed = whole_number(seed, "seed")
    require_unbatched(kernel)
    domain = as_domain(domain)
    noise_variance = one_number(noise_variance, "noise_variance")
    model = KernelGP(kernel, noise_variance, dtype=domain.dtype, device=domain.device)
    if isinstance(domain, FiniteSet):
        batch = plan_on_set(domain, model, num_points, None)
    else:
        # If all points are equal the first is taken; up to ten points gain more from a corner on.
        population = torch.cat([domain.bounds[:1], screening_points(domain, POPULATION_SIZE, seed)])
        batch = plan(domain, model, num_points, population=population)
    # On the host, since the running sum of CUDA is not deterministic.
    return batch.gains.cpu().cumsum(dim=0).to(batch.gains)


def max_information_gain(
    kernel: Kernel,
    domain: Domain,
    num_points: int,
    noise_variance: float,
    upper: bool = False,
    seed: int = 0,
) -> float:
    """The maximum information gain gamma_T of T points, by greedy selection.

    The greedy value G_T lies in [(1 - 1/e) gamma_T, gamma_T].

    Args:
        kernel: Any GPyTorch kernel without batch dimensions.
        domain: The domain from which points are chosen, with repetition.
        num_points: T.
        noise_variance: lambda.
        upper: Whether to return G_T / (1 - 1/e), which is at least gamma_T (on a box, provided that
            each greedy step found the largest variance). A width is valid only with this upper end.
        seed: The seed of the screening points on a box.

    Returns:
        G_T, or its upper end, in nats.

    Raises:
        ValueError: If the count is less than 1, the noise variance is not positive, the kernel is
            batched, or ``upper`` is no bool.
    """
    flag(upper, "upper")
    greedy = float(greedy_information_gain(kernel, domain, num_points, noise_variance, seed)[-1])
    return greedy / GREEDY_SHARE if upper else greedy


def product_kernel_bound(action_gain: float, context_rank: int, horizon: int) -> float:
    """An upper bound on the information gain of a product kernel whose context kernel has rank d.

    gamma(T; k_S x k_Z) <= d gamma(T; k_S) + d ln T.

    Source: Krause and Ong 2011, theorem 2. The printed proof loses a factor T before ln T. The
    bound still holds, even without its term d ln T: K is a sum of d matrices D_j K_S D_j with
    diagonal D_j of entries at most 1, since k_Z(z, z) <= 1, and log det(I + .) is subadditive.

    Args:
        action_gain: gamma(T; k_S), or an upper bound on it.
        context_rank: d, the rank of the context kernel.
        horizon: T.

    Returns:
        The bound, in nats.

    Raises:
        ValueError: If the gain is negative, or the rank or the horizon is less than 1.
    """
    _check_bound_arguments(horizon, action_gain=action_gain)
    context_rank = whole_number(context_rank, "context_rank", least=1)
    return context_rank * (action_gain + math.log(horizon))


def additive_kernel_bound(action_gain: float, context_gain: float, horizon: int) -> float:
    """An upper bound on the information gain of a sum of kernels.

    gamma(T; k_S + k_Z) <= gamma(T; k_S) + gamma(T; k_Z) + 2 ln T. It also bounds the gain of the
    halved kernel (k_S + k_Z)/2. Source: Krause and Ong 2011, theorem 3, which also holds without
    its term 2 ln T, since log det(I + .) is subadditive.

    Args:
        action_gain: gamma(T; k_S), or an upper bound on it.
        context_gain: gamma(T; k_Z), or an upper bound on it.
        horizon: T.

    Returns:
        The bound, in nats.

    Raises:
        ValueError: If a gain is negative, or the horizon is less than 1.
    """
    _check_bound_arguments(horizon, action_gain=action_gain, context_gain=context_gain)
    return action_gain + context_gain + 2 * math.log(horizon)


def _check_bound_arguments(horizon: int, **gains: float) -> None:
    for name, gain in gains.items():
        amount(gain, name, "non-negative and finite")
    whole_number(horizon, "horizon", least=1)
