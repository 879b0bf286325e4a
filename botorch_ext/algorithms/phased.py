"""Phased elimination: Phased GP Uncertainty Sampling, BPE and BPE-Delay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.arguments import (
    DEFAULT_DELTA,
    Common,
    make_model,
    published_width,
    refuse_ignored,
    refuse_unknown,
)
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.rounds import DelayAware, Doubling, Rounds, SquareRoot
from botorch_ext.strategies.fixed_design.phased import PhasedElimination
from botorch_ext.widths import FixedDesign, FixedDesignNet, SelfNormalized, Width


def phased_uncertainty_sampling(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    **options: Unpack[Common],
) -> PhasedElimination:
    """Phased GP Uncertainty Sampling: max-variance episodes of 1, 2, 4, ... points, for a
    misspecification nobody knows (Bogunovic and Krause 2021, algorithm 2).

    The width is `SelfNormalized` with the observations of one episode and delta / E, where E is the
    number of episodes (the paper leaves this union out).

    Args:
        horizon: T, the number of trials.
        options: The arguments all methods share, described with the package.
    """
    rounds = Doubling()

    def published(rkhs_bound: float, noise_std: float, delta: float) -> Width:
        return SelfNormalized(rkhs_bound, noise_std, delta / rounds.count(horizon, delta))

    return _strategy(domain, kernel, noise_variance, horizon, rounds, published, True, options)


def bpe(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    **options: Unpack[Common],
) -> PhasedElimination:
    """BPE, batched pure exploration: about ln ln T rounds, each waiting for all its observations
    (Li and Scarlett 2022, algorithm 1).

    The width is `FixedDesign`, on a box `FixedDesignNet`, a heuristic off its net.

    Args:
        horizon: T, the number of trials.
        options: The arguments all methods share, described with the package.
    """
    rounds = SquareRoot(horizon)
    published = _fixed_design(domain, kernel, horizon, rounds)
    return _strategy(domain, kernel, noise_variance, horizon, rounds, published, True, options)


def bpe_delay(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    delay: Any,
    **options: Unpack[Common],
) -> PhasedElimination:
    """BPE-Delay: BPE whose rounds are longer by a delay allowance and never wait for observations
    (Vakili et al. 2023, algorithm 1).

    The width is `FixedDesign`, on a box `FixedDesignNet`, a heuristic off its net; both with the
    observations that have arrived.

    Args:
        horizon: T, the number of trials.
        delay: An allowance of `botorch_ext.delays` (`SubExponential`, `Quantile`, `Observed`), a
            number of steps, or a distribution of the delay in steps, which becomes a `Quantile`.
        options: The arguments all methods share, described with the package.
    """
    rounds = DelayAware(SquareRoot(horizon), delay)
    published = _fixed_design(domain, kernel, horizon, rounds)
    return _strategy(domain, kernel, noise_variance, horizon, rounds, published, False, options)


def _fixed_design(
    domain: Domain, kernel: Kernel, horizon: int, rounds: Rounds
) -> Callable[[float, float, float], Width]:
    def published(rkhs_bound: float, noise_std: float, delta: float) -> Width:
        num_rounds = rounds.count(horizon, delta)
        if isinstance(domain, FiniteSet):
            return FixedDesign(rkhs_bound, noise_std, delta, domain.num_points, num_rounds)
        return FixedDesignNet.on_box(rkhs_bound, noise_std, delta, num_rounds, domain, kernel)

    return published


def _strategy(
    domain: Domain,
    kernel: Kernel,
    noise_variance: float,
    horizon: int,
    rounds: Rounds,
    published: Callable[[float, float, float], Width],
    waits: bool,
    options: Mapping[str, Any],
) -> PhasedElimination:
    refuse_ignored(options)
    refuse_unknown(options, Common)
    return PhasedElimination(
        domain,
        make_model(domain, kernel, noise_variance, options),
        published_width(published, options),
        rounds,
        horizon,
        waits=waits,
        delta=options.get("delta", DEFAULT_DELTA),
        seed=options.get("seed", 0),
    )
