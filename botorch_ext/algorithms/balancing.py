"""Regret-bound balancing over EC-GP-UCB strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import algorithm, taken
from botorch_ext.algorithms.optimistic import ec_gp_ucb
from botorch_ext.algorithms.signatures import GivenModel
from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.exceptions import EnlargementWarning
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.search.screening import screening_points
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions
from botorch_ext.strategies.masters.balancing import RegretBalancing, checked_range
from botorch_ext.strategies.masters.regret_bounds import CandidateBound
from botorch_ext.widths import Width
from botorch_ext.widths.base import require

# The number of points, of a box or of pairs of an action and a context, among which gamma_T is
# sought.
_NUM_POINTS = 2048


class _Balanced(GivenModel, BoundsOptions, total=False):
    """What regret balancing shares with other methods."""


@algorithm
def regret_balancing(
    domain: Domain,
    kernel: Kernel,
    *,
    rkhs_bound: float,
    noise_std: float,
    horizon: int,
    reward_range: tuple[float, float] = (0.0, 1.0),
    misspecifications: Sequence[float] | None = None,
    c: float = 1.0,
    c1: float = 1.0,
    c2: float = 1.0,
    max_information_gain: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    **given: Unpack[_Balanced],
) -> RegretBalancing:
    """Regret-bound balancing: several `ec_gp_ucb` strategies with different misspecifications, of
    which the one with the smallest regret bound so far plays.

    The method is for an unknown misspecification, and for action sets or contexts that are drawn
    independently. The published method has M = ceil(1 + 1/2 log2(T / gamma_T^2)) bases, at least 1.
    Base i has eps_i = 2^(1-i) / sqrt(gamma_T), in units of the length of ``reward_range``; its
    candidate bound is `CandidateBound`. At practical horizons M is 1 to 3, the bounds are no less
    than n, and nothing is eliminated. With ``misspecifications`` and smaller ``c1`` and ``c2`` the
    method is a heuristic that balances.

    Source: Bogunovic and Krause 2021, algorithm 3.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.regret_balancing(
        ...     points,
        ...     RBFKernel(),
        ...     noise_variance=0.01,
        ...     rkhs_bound=1.0,
        ...     noise_std=0.1,
        ...     horizon=100,
        ...     misspecifications=[0.1, 0.01],
        ...     width=2.0,
        ... )
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [(base["plays"], base["status"]) for base in strategy.report()["bases"]]
        [(3, 'active'), (2, 'active')]

    Args:
        rkhs_bound: B, at least the RKHS norm of f, in units of f. The bases and their candidate
            bounds use it.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. The bases use it.
        horizon: T, the number of trials. The candidate bounds promise nothing beyond it.
        reward_range: The smallest and the largest value that can be told, with the noise.
        misspecifications: The misspecification eps of each base, in units of f. The bases are
            sorted, the largest eps first. None: the published levels.
        c: The constant c of the elimination test.
        c1: The constant of the term of the candidate bounds that does not depend on eps.
        c2: The constant of the term of the candidate bounds that grows with eps.
        max_information_gain: gamma_T, or an upper bound on it. None: the upper bound that greedy
            selection gives (see `max_information_gain`); on a box, among points that fill it.
        delta: The failure probability of the elimination, and of the confidence bounds of each
            base, in (0, 1).
        width: A width, or a number, that the bases enlarge in place of `SelfNormalized`. None:
            `SelfNormalized`.
        seed: The seed of the first base. The others have ``seed + 1``, ``seed + 2``, ...
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts. If it is not a domain, ``max_information_gain`` is needed.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``max_information_gain`` or
            ``context_domain`` is missing where it is needed. The message names the argument.
    """
    horizon = whole_number(horizon, "horizon", least=1)
    rkhs_bound = one_number(rkhs_bound, "rkhs_bound")
    low, high = checked_range(reward_range)
    seed, context_domain = taken(given, "seed", "context_domain").values()
    space = as_context_space(context_domain)
    if space is None and isinstance(kernel, ActionContextKernel):
        raise ValueError("context_domain must be given with an ActionContextKernel, got None")
    if max_information_gain is None:
        gamma = _upper_gain(kernel, domain, space, horizon, given["noise_variance"])
    else:
        gamma = one_number(max_information_gain, "max_information_gain")
        require(0 < gamma < math.inf, "max_information_gain", gamma, "positive and finite")
    if misspecifications is None:
        count = max(1, math.ceil(1 + 0.5 * math.log2(horizon / gamma**2)))
        levels = [(high - low) * 2.0**-i / math.sqrt(gamma) for i in range(count)]
    else:
        levels = _checked_levels(misspecifications)
    seed = whole_number(seed, "seed")
    bases, bounds = [], []
    for i, level in enumerate(levels):
        options = {**given, "seed": seed + i, "context_domain": space}
        base = ec_gp_ucb(
            domain,
            kernel,
            misspecification=level,
            rkhs_bound=rkhs_bound,
            noise_std=noise_std,
            delta=delta,
            width=width,
            **options,
        )
        base.expect(EnlargementWarning)  # some levels are large, so that others need not be
        bases.append(base)
        bounds.append(CandidateBound(rkhs_bound, level, gamma, c1, c2, high - low))
    return RegretBalancing(bases, bounds, reward_range=reward_range, delta=delta, c=c)


def _checked_levels(misspecifications: Sequence[float]) -> list[float]:
    """The levels sorted, the largest first, so that it plays where bounds are equal."""
    is_array = bool(getattr(misspecifications, "ndim", 0))
    if not (is_array or isinstance(misspecifications, list | tuple)):
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
    # The room of analysis is loaded when it is needed: few methods do.
    from botorch_ext.analysis.information_gain import max_information_gain

    noise_variance = one_number(noise_variance, "noise_variance")
    if space is None:
        points = _filling(domain)
    elif space.domain is None:
        raise ValueError(
            "max_information_gain must be given unless context_domain is a Box or a FiniteSet, got "
            "None"
        )
    else:
        points = _pairs(_filling(domain), _filling(space.domain))
    return max_information_gain(kernel, FiniteSet(points), horizon, noise_variance, upper=True)


def _filling(domain: Domain) -> Tensor:
    if isinstance(domain, Box):
        return screening_points(domain, _NUM_POINTS, seed=0)
    return domain.points


def _pairs(actions: Tensor, contexts: Tensor) -> Tensor:
    """Joint rows of all pairs, or of ``_NUM_POINTS`` random pairs where there are more."""
    num_pairs = len(actions) * len(contexts)
    rows = host.arange(num_pairs)
    if num_pairs > _NUM_POINTS:
        generator = torch.Generator().manual_seed(0)
        rows = host.randint(num_pairs, (_NUM_POINTS,), generator=generator)
    rows = rows.to(actions.device)
    first, second = rows // len(contexts), rows % len(contexts)
    return torch.cat([actions[first], contexts[second]], dim=-1)
