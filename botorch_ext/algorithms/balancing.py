"""Regret-bound balancing over EC-GP-UCB strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypedDict, Unpack

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.arguments import refuse_unknown
from botorch_ext.algorithms.optimistic import ec_gp_ucb
from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.information_gain import max_information_gain as greedy_maximum
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.models.checks import PriorMean
from botorch_ext.search.box import screening_points
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.strategies.masters.balancing import RegretBalancing, checked_range
from botorch_ext.strategies.masters.regret_bounds import CandidateBound
from botorch_ext.widths import Width
from botorch_ext.widths.base import require

# Of a box, and of pairs of an action and a context: points among which gamma_T is sought.
_NUM_POINTS = 2048


class _OfBases(TypedDict, total=False):
    width: Width | float | None
    mean: PriorMean | None
    pending: Pending
    inflate: bool
    minimum: float | None
    timeout: int | None
    seed: int
    initial: tuple[Tensor, Tensor] | None
    num_initial: int


def regret_balancing(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    rkhs_bound: float,
    noise_std: float,
    horizon: int,
    delta: float = 0.1,
    reward_range: tuple[float, float] = (0.0, 1.0),
    misspecifications: Sequence[float] | None = None,
    c: float = 1.0,
    c1: float = 1.0,
    c2: float = 1.0,
    max_information_gain: float | None = None,
    context_domain: Domain | int | ContextSpace | None = None,
    **options: Unpack[_OfBases],
) -> RegretBalancing:
    """Regret-bound balancing over EC-GP-UCB strategies that are told different misspecifications,
    for one that nobody knows and for action sets or contexts that are drawn independently
    (Bogunovic and Krause 2021, algorithm 3).

    The published bases are M = ceil(1 + 1/2 log2(T / gamma_T^2)), at least 1, base i with
    eps_i = 2^(1-i) / sqrt(gamma_T), in units of the length of ``reward_range``; their candidate
    bounds are `CandidateBound`. At practical horizons M is 1 to 3, the bounds are no less than n
    and nothing is eliminated: ``misspecifications`` and smaller ``c1`` and ``c2`` are a heuristic
    that balances.

    Args:
        rkhs_bound: B, for the bases and for their candidate bounds.
        noise_std: sigma, for the bases.
        horizon: T, for the candidate bounds, which promise nothing beyond it.
        delta: Failure probability, of the elimination and of each base.
        reward_range: The least and the largest value that can be told, noise included.
        misspecifications: eps of each base, in units of f, in place of the published ones; sorted,
            the largest first.
        c: The constant of the elimination test.
        c1: The constant of the candidate bounds' regret without misspecification.
        c2: The constant of their regret by misspecification.
        max_information_gain: gamma_T, or an upper bound on it. None: the upper end of what greedy
            selection finds (see `max_information_gain`), on a box among points that fill it.
        context_domain: As for `ec_gp_ucb`. Where it is no domain ``max_information_gain`` is
            needed.
        options: The arguments all methods share, described with the package, for each base; those
            draw from the seeds ``seed``, ``seed + 1``, ...
    """
    refuse_unknown(options, _OfBases)
    horizon = whole_number(horizon, "horizon", least=1)
    rkhs_bound = one_number(rkhs_bound, "rkhs_bound")
    low, high = checked_range(reward_range)
    space = as_context_space(context_domain)
    if space is None and isinstance(kernel, ActionContextKernel):
        raise ValueError("context_domain must be given with an ActionContextKernel, got None")
    if max_information_gain is None:
        gamma = _upper_gain(kernel, domain, space, horizon, noise_variance)
    else:
        gamma = one_number(max_information_gain, "max_information_gain")
        require(0 < gamma < math.inf, "max_information_gain", gamma, "positive and finite")
    if misspecifications is None:
        count = max(1, math.ceil(1 + 0.5 * math.log2(horizon / gamma**2)))
        levels = [(high - low) * 2.0**-i / math.sqrt(gamma) for i in range(count)]
    else:
        levels = _checked_levels(misspecifications)
    seed = whole_number(options.get("seed", 0), "seed")
    of_bases = {
        **options,
        "noise_variance": noise_variance,
        "rkhs_bound": rkhs_bound,
        "noise_std": noise_std,
        "delta": delta,
        "context_domain": space,
    }
    bases, bounds = [], []
    for i, level in enumerate(levels):
        own = of_bases | {"misspecification": level, "seed": seed + i}
        bases.append(ec_gp_ucb(domain, kernel, **own))
        bounds.append(CandidateBound(rkhs_bound, level, gamma, c1, c2, high - low))
    return RegretBalancing(bases, bounds, reward_range=reward_range, delta=delta, c=c)


def _checked_levels(misspecifications: Sequence[float]) -> list[float]:
    """The largest first, so that it plays where bounds are equal."""
    if isinstance(misspecifications, str) or not isinstance(misspecifications, Sequence | Tensor):
        raise ValueError(f"misspecifications must be a sequence, got {misspecifications!r}")
    levels = [one_number(level, "misspecifications") for level in misspecifications]
    if not levels:
        raise ValueError("misspecifications must hold at least one, got none")
    for level in levels:
        require(0 <= level < math.inf, "misspecifications", level, "non-negative and finite")
    return sorted(levels, reverse=True)


def _upper_gain(
    kernel: Kernel,
    domain: Domain,
    space: ContextSpace | None,
    horizon: int,
    noise_variance: float,
) -> float:
    noise_variance = one_number(noise_variance, "noise_variance")
    if space is None:
        points = _filling(domain)
    elif space.domain is None:
        raise ValueError(
            "max_information_gain must be given where context_domain is no Box or FiniteSet, got "
            "None"
        )
    else:
        points = _pairs(_filling(domain), _filling(space.domain))
    return greedy_maximum(kernel, FiniteSet(points), horizon, noise_variance, upper=True)


def _filling(domain: Domain) -> Tensor:
    if isinstance(domain, Box):
        return screening_points(domain, _NUM_POINTS, seed=0)
    return domain.points


def _pairs(actions: Tensor, contexts: Tensor) -> Tensor:
    """All pairs where there are few, else random ones, as joint rows."""
    num_pairs = len(actions) * len(contexts)
    rows = torch.arange(num_pairs)
    if num_pairs > _NUM_POINTS:
        generator = torch.Generator().manual_seed(0)
        rows = torch.randint(num_pairs, (_NUM_POINTS,), generator=generator)
    rows = rows.to(actions.device)
    first, second = rows // len(contexts), rows % len(contexts)
    return torch.cat([actions[first], contexts[second]], dim=-1)
