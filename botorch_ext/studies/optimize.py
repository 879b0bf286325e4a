"""Optimize: from an objective and bounds to the best point, in one call."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from botorch_ext.algorithms.practical import integrated_ei
from botorch_ext.checks import flag
from botorch_ext.domains.reading import DomainLike, as_domain
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.strategies.adaptive.improvement import ImprovementStrategy
from botorch_ext.strategies.initial_checks import checked_data
from botorch_ext.studies.run import RunResult, run
from botorch_ext.studies.running_study import Objective


@dataclass(frozen=True)
class OptimizeResult(RunResult):
    """What `optimize` found, in the sign of the objective; besides what `RunResult` has:

    Args:
        recommended_x: The ``d``-dim point where the model believes the objective to be best, or
            None before any result. It need not have been evaluated; with noise it is a better
            choice than ``best_x``, whose value was partly luck.
        recommended_mean: What is expected there, or None.
    """

    strategy: ImprovementStrategy
    recommended_x: Tensor | None
    recommended_mean: float | None

    @property
    def recommended_params(self) -> dict[str, Any] | None:
        """``recommended_x`` by name, or None."""
        x = self.recommended_x
        return None if x is None else self.strategy.domain.params_of(x)


def optimize(
    objective: Objective,
    domain: DomainLike,
    num_trials: int,
    *,
    minimize: bool = False,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int | None = None,
    particles: Particles | None = None,
    seed: int = 0,
    executor: Executor | Callable[[], Executor] | None = None,
    max_pending: int = 1,
    progress: bool = True,
    max_retries: int = 1,
    failure_value: float | None = None,
    max_consecutive_failures: int | None = 10,
) -> OptimizeResult:
    """Maximises an expensive, noisy objective with `integrated_ei`.

    Args:
        objective: A ``d``-dim point to a number; where the domain is a `Space`, a dict of values by
            name to one, called as ``objective(params)``. With a process pool it must be picklable.
        domain: Bounds, a `Box`, a `Space` of named parameters or a `FiniteSet`. Bounds are a list
            of pairs, as in ``[(0, 20), (1, 80)]``, or a tensor of two rows, lower then upper.
        num_trials: How many evaluations.
        minimize: The objective is a cost.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``, in the sign of
            the objective; ``X`` may be a list of dicts of values by name.
        num_initial: How many Sobol points are evaluated first; None for 8, less those in
            ``initial``.
        particles: How hyperparameters are drawn; ``Particles()`` if None.
        seed: Seeds everything random but the objective.
        executor: Any `concurrent.futures.Executor`, or a function that makes one; None evaluates in
            this thread.
        max_pending: How many trials may be under way at once.
        progress: Show a progress bar.
        max_retries: How often a failing trial is tried again before it is given up.
        failure_value: What the strategy is told for a trial that is given up, in the sign of the
            objective; None abandons it.
        max_consecutive_failures: So many trials given up in a row end the run; None never does. See
            `run`.

    Returns:
        An `OptimizeResult`; its ``strategy`` can be asked for more.

    Raises:
        ValueError: An impossible argument; the message names it.
        ObjectiveError: The objective cannot be called, returned no number, or cannot be pickled for
            a process pool.
        RepeatedFailures: Too many trials failed in a row.

    Warns:
        TrialFailedWarning: A trial was given up.
    """
    domain, minimize = as_domain(domain), flag(minimize, "minimize")
    sign = -1.0 if minimize else 1.0
    if initial is not None and minimize:
        checked = checked_data(domain, initial)
        initial = None if checked is None else (checked[0], -checked[1])
    strategy = integrated_ei(domain, particles, seed=seed, initial=initial, num_initial=num_initial)
    strategy.history.sign = sign
    result = run(
        strategy,
        objective,
        num_trials,
        executor=executor,
        max_pending=max_pending,
        minimize=minimize,
        progress=progress,
        max_retries=max_retries,
        failure_value=failure_value,
        max_consecutive_failures=max_consecutive_failures,
    )
    x = mean = None
    if len(strategy.evaluated()[1]):
        x, mean = strategy.recommend()
        mean *= sign
    found = {field.name: getattr(result, field.name) for field in fields(result)}
    return OptimizeResult(**found, recommended_x=x, recommended_mean=mean)
