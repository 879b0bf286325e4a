"""Phased elimination: Phased GP Uncertainty Sampling, BPE and BPE-Delay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Required, Unpack, cast

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import algorithm, make_model, published_width, taken
from botorch_ext.algorithms.signatures import GivenModel, Published
from botorch_ext.delays.rounds import DelayAware, Doubling, Rounds, SquareRoot
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.strategies.fixed_design.phased import PhasedElimination
from botorch_ext.widths import SelfNormalized, Width
from botorch_ext.widths.composed import BoundsKind, kinds_of_widths


class _Phased(GivenModel, Published, total=False):
    """What all methods of rounds take."""

    horizon: Required[int]
    seed: int
    minimize: bool | None


@algorithm
def phased_uncertainty_sampling(
    domain: Domain, kernel: Kernel, **given: Unpack[_Phased]
) -> PhasedElimination:
    """Phased GP Uncertainty Sampling: episodes of points of largest variance, for an unknown
    misspecification.

    The episodes have 1, 2, 4, ... points.

    The published width is `SelfNormalized` with the observations of one episode and the failure
    probability delta / E, where E is the number of episodes (the paper leaves out this union
    bound).

    Source: Bogunovic and Krause 2021, algorithm 2.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.phased_uncertainty_sampling(
        ...     points, RBFKernel(), noise_variance=0.01, horizon=7, width=1.0
        ... )
        >>> for _ in range(4):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> rounds = strategy.report()["rounds"]
        >>> [(line["round"], line["length"], line["num_candidates"]) for line in rounds]
        [(1, 1, 3), (2, 2, 3), (3, 4, 2)]

    Args:
        seed: The seed of every random choice.
    """
    rounds, horizon = Doubling(), given["horizon"]

    def published(rkhs_bound: float, noise_std: float, delta: float) -> Width:
        return SelfNormalized(rkhs_bound, noise_std, delta / rounds.count(horizon, delta))

    model = make_model(domain, kernel, given)
    width = published_width("phased_uncertainty_sampling", published, given)
    return PhasedElimination(
        domain,
        model,
        width,
        rounds,
        horizon,
        **taken(given, "delta", "seed", "minimize"),
    )


@algorithm
def bpe(
    domain: Domain,
    kernel: Kernel,
    *,
    bounds: BoundsKind = "published",
    **given: Unpack[_Phased],
) -> PhasedElimination:
    """BPE, batched pure exploration: about ln ln T rounds of points of largest variance, each of
    which waits for all its observations.

    The published width is `FixedDesign`; on a box it is `FixedDesignNet`, which is a heuristic off
    its net.

    Source: Li and Scarlett 2022, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.bpe(
        ...     points, RBFKernel(), noise_variance=0.01, horizon=9, width=1.0
        ... )
        >>> trials = strategy.ask(3)
        >>> for trial in trials:
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [trial.info["round"] for trial in trials], strategy.ask().info["round"]
        ([1, 1, 1], 2)

    Args:
        seed: The seed of every random choice.
    """
    rounds = SquareRoot(given["horizon"])
    model = make_model(domain, kernel, given)
    width = published_width("bpe", _published(domain, kernel, rounds, bounds), given)
    return PhasedElimination(
        domain,
        model,
        width,
        rounds,
        **taken(given, "delta", "seed", "minimize"),
    )


@algorithm
def bpe_delay(
    domain: Domain,
    kernel: Kernel,
    *,
    delay: Any,
    bounds: BoundsKind = "published",
    **given: Unpack[_Phased],
) -> PhasedElimination:
    """BPE-Delay: BPE for late feedback, with rounds that are longer by a delay allowance and never
    wait for observations.

    The published width is `FixedDesign`; on a box it is `FixedDesignNet`, which is a heuristic off
    its net. Both use the observations that have arrived.

    Source: Vakili et al. 2023, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.bpe_delay(
        ...     points, RBFKernel(), noise_variance=0.01, horizon=20, delay=2, width=1.0
        ... )
        >>> [trial.info["round"] for trial in strategy.ask(8)]
        [1, 1, 1, 1, 1, 1, 1, 2]

    Args:
        delay: The delay: an allowance of `botorch_ext.delays` (`SubExponential`, `Quantile`,
            `Observed`), a number of steps, or a distribution of the delay in steps, which becomes a
            `Quantile`. None: no delays.
        delta: The failure probability of the confidence width, and of the delay allowance, in (0,
            1).
        width: A width, or a number, in place of the published width. ``rkhs_bound`` and
            ``noise_std`` are then unused. None: the published width.
        seed: The seed of every random choice.
    """
    rounds = DelayAware(SquareRoot(given["horizon"]), delay)
    model = make_model(domain, kernel, given)
    width = published_width("bpe_delay", _published(domain, kernel, rounds, bounds), given)
    return PhasedElimination(
        domain, model, width, rounds, waits=False, **taken(given, "delta", "seed", "minimize")
    )


def width_of_rounds(
    domain: Domain, kernel: Kernel, bounds: BoundsKind
) -> Callable[[float, float, float, int], Width]:
    """The function that makes the width of rounds from rkhs_bound, noise_std, delta and the number
    of rounds.

    Raises:
        ValueError: If ``bounds`` is unknown, or "ladder" on a box.
    """
    kinds = kinds_of_widths(bounds)
    if kinds.net is None and not isinstance(domain, FiniteSet):
        raise ValueError(f'bounds must be "published" or "mixture" on a box, got {bounds!r}')

    def width(rkhs_bound: float, noise_std: float, delta: float, num_rounds: int) -> Width:
        numbers = rkhs_bound, noise_std, delta
        if isinstance(domain, FiniteSet):
            return kinds.block(*numbers, domain.num_points, num_rounds)
        return cast(Any, kinds.net).on_box(*numbers, num_rounds, domain, kernel)

    return width


def _published(
    domain: Domain, kernel: Kernel, rounds: Rounds, bounds: BoundsKind
) -> Callable[[float, float, float], Width]:
    width = width_of_rounds(domain, kernel, bounds)
    return lambda rkhs_bound, noise_std, delta: width(
        rkhs_bound, noise_std, delta, rounds.count(rounds.agreed_horizon(), delta)
    )
