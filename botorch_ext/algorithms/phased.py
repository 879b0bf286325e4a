"""Phased elimination: Phased GP Uncertainty Sampling, BPE and BPE-Delay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import checked_names, make_model, published_width
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.models.checks import PriorMean
from botorch_ext.rounds import DelayAware, Doubling, Rounds, SquareRoot
from botorch_ext.strategies.fixed_design.phased import Closes, PhasedElimination
from botorch_ext.widths import FixedDesign, FixedDesignNet, SelfNormalized, Width


@checked_names
def phased_uncertainty_sampling(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    seed: int = 0,
) -> PhasedElimination:
    """Phased GP Uncertainty Sampling: max-variance episodes of 1, 2, 4, ... points, for a
    misspecification nobody knows.

    The width is `SelfNormalized` with the observations of one episode and delta / E, where E is the
    number of episodes (the paper leaves this union out). Source: Bogunovic and Krause 2021,
    algorithm 2.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        horizon: T, the number of trials.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; ``rkhs_bound``, ``noise_std``
            and ``delta`` then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        seed: Seeds every random choice.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    rounds = Doubling()

    def published(rkhs_bound: float, noise_std: float, delta: float) -> Width:
        return SelfNormalized(rkhs_bound, noise_std, delta / rounds.count(horizon, delta))

    model = make_model(domain, kernel, noise_variance, mean)
    width = published_width(
        "phased_uncertainty_sampling", published, width, rkhs_bound, noise_std, delta
    )
    return PhasedElimination(domain, model, width, rounds, horizon, delta=delta, seed=seed)


@checked_names
def bpe(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    seed: int = 0,
) -> PhasedElimination:
    """BPE, batched pure exploration: about ln ln T rounds, each waiting for all its observations.

    The width is `FixedDesign`, on a box `FixedDesignNet`, a heuristic off its net. Source: Li and
    Scarlett 2022, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        horizon: T, the number of trials.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; ``rkhs_bound``, ``noise_std``
            and ``delta`` then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        seed: Seeds every random choice.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    rounds = SquareRoot(horizon)
    model = make_model(domain, kernel, noise_variance, mean)
    published = _fixed_design(domain, kernel, rounds)
    width = published_width("bpe", published, width, rkhs_bound, noise_std, delta)
    return PhasedElimination(domain, model, width, rounds, delta=delta, seed=seed)


@checked_names
def bpe_delay(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    horizon: int,
    delay: Any = "unknown",
    closing: Closes = "allowance",
    kappa: float = 1.0,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    seed: int = 0,
) -> PhasedElimination:
    """BPE-Delay: BPE whose rounds are longer by a delay allowance and never wait for observations.

    The width is `FixedDesign`, on a box `FixedDesignNet`, a heuristic off its net; both with the
    observations that have arrived. Source: Vakili et al. 2023, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f.
        horizon: T, the number of trials.
        delay: An allowance of `botorch_ext.delays` (`SubExponential`, `Quantile`, `Observed`), a
            number of steps, or a distribution of the delay in steps, which becomes a `Quantile`.
            Needed with ``closing="allowance"``, and none with "arrival".
        closing: "allowance": a round goes on for its allowance, as published. "arrival", which is
            not: it goes on with its next max-variance points until what has arrived leaves no more
            variance than its plan promised; and the last round, which the horizon would cut, plays
            the survivor with the highest posterior mean.
        kappa: At least 1, for "arrival": the largest standard deviation may be this many times what
            was promised. 1 for delays with light tails, sqrt(2) for heavy ones.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1), of the width and of the allowance.
        width: A width, or a number, in place of the published one; ``rkhs_bound`` and ``noise_std``
            then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
        seed: Seeds every random choice.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    unknown = isinstance(delay, str) and delay == "unknown"
    rounds: Rounds = SquareRoot(horizon)
    if closing == "allowance" and not unknown:
        rounds = DelayAware(rounds, delay)
    model = make_model(domain, kernel, noise_variance, mean)
    published = _fixed_design(domain, kernel, rounds)
    width = published_width("bpe_delay", published, width, rkhs_bound, noise_std, delta)
    if closing not in ("allowance", "arrival"):
        allowed = '"allowance" or "arrival"'
        raise ValueError(f"bpe_delay(): closing must be {allowed}, got {closing!r}")
    if unknown != (closing == "arrival"):
        needed = "must not be given with" if unknown is False else "must be given unless"
        raise ValueError(f'bpe_delay(): delay {needed} closing="arrival", got {delay!r}')
    return PhasedElimination(
        domain,
        model,
        width,
        rounds,
        waits=False,
        closing=closing,
        kappa=kappa,
        delta=delta,
        seed=seed,
    )


def _fixed_design(
    domain: Domain, kernel: Kernel, rounds: Rounds
) -> Callable[[float, float, float], Width]:
    def published(rkhs_bound: float, noise_std: float, delta: float) -> Width:
        num_rounds = rounds.count(rounds.agreed_horizon(), delta)
        if isinstance(domain, FiniteSet):
            return FixedDesign(rkhs_bound, noise_std, delta, domain.num_points, num_rounds)
        return FixedDesignNet.on_box(rkhs_bound, noise_std, delta, num_rounds, domain, kernel)

    return published
