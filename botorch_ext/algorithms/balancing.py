"""Regret-bound balancing over EC-GP-UCB strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names
from botorch_ext.algorithms.optimistic import ec_gp_ucb
from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.exceptions import EnlargementWarning
from botorch_ext.information_gain import max_information_gain as greedy_maximum
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.models.checks import PriorMean
from botorch_ext.search.screening import screening_points
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.strategies.masters.balancing import RegretBalancing, checked_range
from botorch_ext.strategies.masters.regret_bounds import CandidateBound
from botorch_ext.widths import Width
from botorch_ext.widths.base import require

# Of a box, and of pairs of an action and a context: points among which gamma_T is sought.
_NUM_POINTS = 2048


@checked_names
def regret_balancing(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
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
    mean: PriorMean | float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> RegretBalancing:
    """Regret-bound balancing over EC-GP-UCB strategies that are told different misspecifications,
    for one that nobody knows and for action sets or contexts that are drawn independently.

    The published bases are M = ceil(1 + 1/2 log2(T / gamma_T^2)), at least 1, base i with eps_i =
    2^(1-i) / sqrt(gamma_T), in units of the length of ``reward_range``; their candidate bounds are
    `CandidateBound`. At practical horizons M is 1 to 3, the bounds are no less than n and nothing
    is eliminated: ``misspecifications`` and smaller ``c1`` and ``c2`` are a heuristic that
    balances. Source: Bogunovic and Krause 2021, algorithm 3.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1; with contexts on joint rows, the d columns of
            the action first.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        rkhs_bound: B, at least the RKHS norm of f, in units of f: for the bases and for their
            candidate bounds.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f: for the bases.
        horizon: T, for the candidate bounds, which promise nothing beyond it.
        reward_range: The least and the largest value that can be told, noise included.
        misspecifications: eps of each base, in units of f, in place of the published ones; sorted,
            the largest first.
        c: The constant of the elimination test.
        c1: The constant of the candidate bounds' regret without misspecification.
        c2: The constant of their regret by misspecification.
        max_information_gain: gamma_T, or an upper bound on it. None: the upper end of what greedy
            selection finds (see `max_information_gain`), on a box among points that fill it.
        delta: Failure probability, in (0, 1), of the elimination and of each base.
        width: A width, or a number, for the bases to enlarge in place of `SelfNormalized`.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones). The bound is valid with it; practice does without.
        minimum: The least value f can take, in units of f: for "censor", which needs it.
        timeout: m, in steps, for "censor": a trial asked at step s and not told before the ask of
            step s + m + 1 stays censored for ever. None: no trial does.
        seed: Of the first base; the others draw from ``seed + 1``, ...
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts. Where it is no
            domain ``max_information_gain`` is needed.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or ``max_information_gain`` or ``context_domain``
            missing where it is needed; the message names it.
    """
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
    seed = whole_number(seed, "seed")
    bases, bounds = [], []
    for i, level in enumerate(levels):
        base = ec_gp_ucb(
            domain,
            kernel,
            noise_variance=noise_variance,
            misspecification=level,
            rkhs_bound=rkhs_bound,
            noise_std=noise_std,
            delta=delta,
            width=width,
            mean=mean,
            pending=pending,
            inflate=inflate,
            minimum=minimum,
            timeout=timeout,
            seed=seed + i,
            initial=initial,
            num_initial=num_initial,
            context_domain=space,
        )
        base.expect(EnlargementWarning)  # some levels are large, so that others need not be
        bases.append(base)
        bounds.append(CandidateBound(rkhs_bound, level, gamma, c1, c2, high - low))
    return RegretBalancing(bases, bounds, reward_range=reward_range, delta=delta, c=c)


def _checked_levels(misspecifications: Sequence[float]) -> list[float]:
    """The largest first, so that it plays where bounds are equal."""
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
