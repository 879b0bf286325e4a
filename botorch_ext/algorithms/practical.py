"""Methods that work from data alone, without a guarantee."""

from __future__ import annotations

from collections.abc import Mapping

from botorch_ext.algorithms.argument_checks import algorithm
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.limits import Limit
from botorch_ext.strategies.adaptive.improvement import ImprovementStrategy
from botorch_ext.strategies.initial_checks import InitialData


@algorithm
def integrated_ei(
    domain: Domain,
    particles: Particles | None = None,
    *,
    seed: int = 0,
    initial: InitialData | None = None,
    num_initial: int | None = None,
    context_domain: Domain | int | ContextSpace | None = None,
    minimize: bool | None = None,
    deterministic: bool = False,
    outcomes: Mapping[str, Limit | str] | None = None,
) -> ImprovementStrategy:
    """Integrated EI, the default: noisy expected improvement, averaged over hyperparameter samples.

    The method needs the domain alone: no kernel, no noise variance and no width. There is no
    guarantee for its regret.

    Where experiments can fail, say so with ``abandon(trial, failed=True)``. The method learns where
    trials fail, multiplies the expected improvement by the probability of success, and asks points
    that succeed with probability 0.7 or more while it finds any. A failed point is not asked again
    while another one is left. While no trial has failed, this changes nothing.

    Where other measured numbers have limits, name them in ``outcomes``, and tell them with each
    result. Every outcome has hyperparameter samples of its own. The method multiplies the expected
    improvement on the best feasible points by the square of the probability that all limits hold,
    and recommends a point that keeps them with probability 0.9 if it finds one. It may ask points
    that break a limit: where that must never happen, use `safe_exploration`.

    Source: Snoek et al. 2012 (integrated expected improvement); Letham et al. 2019 (noisy
    observations); Ament et al. 2023 (the logarithm of the expected improvement); Gardner et al.
    2014 (limits).

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.algorithms.integrated_ei(bx.Box([[0.0], [1.0]]))
        >>> for _ in range(12):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, -((trial.x.item() - 0.3) ** 2))
        >>> x, mean = strategy.best()
        >>> round(x.item(), 1)
        0.3
        >>> strategy.report()["num_particles"]
        32

        Without noise, no point is asked twice:

        >>> sizes = bx.FiniteSet([[1.0], [2.0], [4.0]])
        >>> strategy = bx.algorithms.integrated_ei(sizes, deterministic=True)
        >>> sorted(trial.x.item() for trial in strategy.ask(3))
        [1.0, 2.0, 4.0]

        A purity of at least 0.9 is measured with each result:

        >>> strategy = bx.algorithms.integrated_ei(
        ...     bx.Box([[0.0], [1.0]]), outcomes={"purity": bx.AtLeast(0.9)}, minimize=True
        ... )
        >>> for _ in range(12):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, trial.x.item(), {"purity": 0.5 + trial.x.item()})
        >>> x, mean = strategy.best()
        >>> 0.4 <= x.item() < 0.45
        True

    Args:
        particles: The settings of the hyperparameter samples. None: ``Particles()``.
        seed: The seed of the particles, of the search and of the first points.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``), or a triple ``(X, Y, std)`` with ``n`` standard errors. None: no
            observations.
        num_initial: The number of Sobol points that are asked first. None: as many as it takes for
            8 results, with those in ``initial``, attached ones and failed trials counted, of which
            at least 3 are results; with more than 20 dimensions, all continuous, and neither
            constraints nor contexts, they lie in the middle half of each side.
        deterministic: Whether the objective has no noise, so that a point always has the same
            value. The hyperparameter samples then have no noise variance but a jitter of 1e-8
            variances of the observations, whatever ``particles`` says. A point that was evaluated,
            failed or is pending is not asked again in the same context: a box has other points at
            a distance, and when no point of a set or a discrete space is left, `ask` raises
            `HorizonReached`, which ends a run. Without contexts, ``best`` and
            ``recommend`` give the best value seen.
        outcomes: The limits of other measured numbers by name, as in
            ``{"impurity": bx.AtMost(5.0, unit="%")}`` or ``{"impurity": "<= 5.0"}``. Every result
            must have these numbers: ``tell(trial, value, {"impurity": 3.2})``. They keep their sign
            if the strategy minimises. None: no outcomes.

    Returns:
        An `ImprovementStrategy` to ask and to tell; see `ImprovementStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If an argument is unknown.
        ValueError: If an argument has an impossible value. The message names the argument.
    """
    return ImprovementStrategy(
        domain,
        particles,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
        minimize=minimize,
        deterministic=deterministic,
        outcomes=outcomes,
    )
