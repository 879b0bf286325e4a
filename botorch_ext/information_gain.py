"""Information gain: the greedy maximum, and bounds for composite kernels.

The realised gain of a model is its ``information_gain()``.
"""

from __future__ import annotations

import math

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import amount, one_number, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.reading import as_domain
from botorch_ext.kernel_functions import require_unbatched
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions.planning import POPULATION_SIZE, plan, plan_on_set
from botorch_ext.search.screening import screening_points

# Greedy selection reaches at least this share of the maximum (Nemhauser et al. 1978).
GREEDY_SHARE = 1 - 1 / math.e


def greedy_information_gain(
    kernel: Kernel, domain: Domain, num_points: int, noise_variance: float, seed: int = 0
) -> Tensor:
    """The information gain of 1, 2, ..., ``num_points`` greedily chosen points of largest variance.

    Each point is found as `plan` finds it; of equal points of a finite set the first is taken.

    Args:
        kernel: Any GPyTorch kernel without batch dimensions.
        domain: Where the points are chosen, with repetition.
        num_points: How many; the designs are nested.
        noise_variance: lambda.
        seed: Of the screening points on a box.

    Returns:
        A ``num_points``-dim tensor, increasing and concave: entry t - 1 is G_t.

    Raises:
        ValueError: A count less than 1, a noise variance that is not positive, or a batched kernel.
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
        # Where all points are equal the first is taken: up to ten gain more from a corner on.
        population = torch.cat([domain.bounds[:1], screening_points(domain, POPULATION_SIZE, seed)])
        batch = plan(domain, model, num_points, population=population)
    # On the host: CUDA has no running sum that is always the same.
    return batch.gains.cpu().cumsum(dim=0).to(batch.gains)


def max_information_gain(
    kernel: Kernel,
    domain: Domain,
    num_points: int,
    noise_variance: float,
    upper: bool = False,
    seed: int = 0,
) -> float:
    """gamma_T: the greedy value G_T, which lies in [(1 - 1/e) gamma_T, gamma_T].

    Args:
        kernel: Any GPyTorch kernel without batch dimensions.
        domain: Where the points are chosen.
        num_points: T.
        noise_variance: lambda.
        upper: Return G_T / (1 - 1/e) instead, which is at least gamma_T (on a box as far as each
            greedy step found the largest variance). A width is valid with this end only.
        seed: Of the screening points on a box.

    Returns:
        G_T, or its upper end.

    Raises:
        ValueError: A count less than 1, a noise variance that is not positive, or a batched kernel.
    """
    greedy = float(greedy_information_gain(kernel, domain, num_points, noise_variance, seed)[-1])
    return greedy / GREEDY_SHARE if upper else greedy


def product_kernel_bound(action_gain: float, context_rank: int, horizon: int) -> float:
    """gamma(T; k_S x k_Z) <= d gamma(T; k_S) + d ln T for a context kernel of rank d.

    Source: Krause and Ong 2011, theorem 2. Their proof loses a factor T before ln T; the bound
    holds all the same, even without its term d ln T: K is a sum of d matrices D_j K_S D_j with
    diagonal D_j of entries at most 1, as k_Z(z, z) <= 1, and log det(I + .) is subadditive.

    Args:
        action_gain: gamma(T; k_S), or an upper bound on it.
        context_rank: d, the rank of the context kernel.
        horizon: T.

    Raises:
        ValueError: A negative gain, or a rank or horizon less than 1.
    """
    _check_bound_arguments(horizon, action_gain=action_gain)
    context_rank = whole_number(context_rank, "context_rank", least=1)
    return context_rank * (action_gain + math.log(horizon))


def additive_kernel_bound(action_gain: float, context_gain: float, horizon: int) -> float:
    """gamma(T; k_S + k_Z) <= gamma(T; k_S) + gamma(T; k_Z) + 2 ln T.

    It bounds the halved kernel (k_S + k_Z)/2 as well. Source: Krause and Ong 2011, theorem 3, which
    holds without its term 2 ln T, as log det(I + .) is subadditive.

    Args:
        action_gain: gamma(T; k_S), or an upper bound on it.
        context_gain: gamma(T; k_Z), or an upper bound on it.
        horizon: T.

    Raises:
        ValueError: A negative gain, or a horizon less than 1.
    """
    _check_bound_arguments(horizon, action_gain=action_gain, context_gain=context_gain)
    return action_gain + context_gain + 2 * math.log(horizon)


def _check_bound_arguments(horizon: int, **gains: float) -> None:
    for name, gain in gains.items():
        amount(gain, name, "non-negative and finite")
    whole_number(horizon, "horizon", least=1)
