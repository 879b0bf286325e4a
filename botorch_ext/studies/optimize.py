"""`optimize`: finds the best point of an objective within bounds, in one call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from botorch_ext.algorithms.practical import integrated_ei
from botorch_ext.checks import flag, short
from botorch_ext.domains.reading import DomainLike, as_domain
from botorch_ext.hyperparameters.particles import Particles
from botorch_ext.limits import Limit
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.answers.recommendation import lines_of_feasibility
from botorch_ext.strategies.events import place_of
from botorch_ext.strategies.initial_checks import InitialData
from botorch_ext.studies.run import RunResult, run
from botorch_ext.studies.running_study import Objective
from botorch_ext.studies.stopping import Callback
from botorch_ext.studies.study import Study


@dataclass(frozen=True, repr=False)
class OptimizeResult(RunResult):
    """The result of `botorch_ext.optimize`, in the sign of the objective.

    Its other arguments are those of `RunResult`.

    Args:
        recommended_x: The ``d``-dim point to settle for, or None before any result. With noise it
            is the point with the best posterior mean, which need not have been evaluated, unless
            the strategy has no ``recommend``; it is a better choice than ``best_x``, whose value
            was partly luck. If the objective is deterministic, or the hyperparameter samples agree
            that the noise is small, it is ``best_x``.
        recommended_mean: The posterior mean at ``recommended_x``, or None.
        recommended_feasibility: The probability that ``recommended_x`` is feasible, the
            ``feasibility`` of `Recommendation`, or None.
    """

    recommended_x: Tensor | None
    recommended_mean: float | None
    recommended_feasibility: float | None = None

    @property
    def recommended_params(self) -> dict[str, Any] | None:
        """``recommended_x`` by name, or None."""
        x = self.recommended_x
        return None if x is None else self.strategy.domain.params_of(x)

    def __repr__(self) -> str:
        """The result as `RunResult` prints it, and the recommended point."""
        lines = [super().__repr__()]
        if self.recommended_x is not None:
            place = place_of(self.recommended_x, domain=self.strategy.domain)
            lines.append(f"recommended: {place}, expected value {self.recommended_mean:.6g}")
        if self.recommended_feasibility is not None:
            lines += lines_of_feasibility(self.recommended_feasibility)
        return "\n  ".join(lines)


def optimize(
    objective: Objective,
    domain: DomainLike | Strategy | Study,
    num_trials: int,
    *,
    minimize: bool | None = None,
    initial: InitialData | None = None,
    num_initial: int | None = None,
    particles: Particles | None = None,
    seed: int | None = None,
    executor: Executor | Callable[[], Executor] | None = None,
    max_pending: int = 1,
    progress: bool = True,
    max_retries: int = 0,
    failure_value: float | None = None,
    max_consecutive_failures: int | None = 10,
    callback: Callback | None = None,
    time_limit: float | None = None,
    target: float | None = None,
    deterministic: bool = False,
    outcomes: Mapping[str, Limit | str] | None = None,
) -> OptimizeResult:
    """Maximises an expensive, noisy objective with `integrated_ei`. Given a strategy or a study in
    place of the domain, it continues that.

    Example:
        >>> import botorch_ext as bx
        >>> def cost(x):
        ...     return float((x[0] - 5) ** 2 + (x[1] - 40) ** 2 / 100)
        >>> bounds = [(0, 20), (1, 80)]
        >>> result = bx.optimize(cost, bounds, 20, minimize=True, progress=False)
        >>> result.best_value < 0.5, len(result.Y)
        (True, 20)

    Args:
        objective: A function from a ``d``-dim point to a number. If the domain is a `Space`, the
            point is a dict of values by name. It may return repeats, ``[84.1, 85.3]``, or the
            number with its standard error, ``{"value": 84.1, "std": 0.4}``. With outcomes it
            returns them too, as in ``84.1, {"impurity": 3.2}``. With a process pool the function
            must be picklable.
        domain: Bounds, a `Box`, a `Space` of named parameters or a `FiniteSet`. Bounds are a list
            of pairs, as in ``[(0, 20), (1, 80)]``, or a tensor of two rows, lower then upper. Or a
            strategy or a `Study` to continue, such as the strategy of an earlier result.
            ``initial``, ``num_initial``, ``particles``, ``seed``, ``deterministic`` and
            ``outcomes`` cannot be given then. A strategy with contexts needs `run`.
        num_trials: The number of evaluations. If a strategy or a study is continued, the trials
            that it was asked before count.
        minimize: Whether the objective is a cost. None: as in the strategy or the study that is
            continued, else False.
        initial: ``(X, Y)``, data the user already has, ``n x d`` and ``n x 1`` or ``n``, in the
            sign of the objective. ``X`` may be a list of dicts of values by name.
        num_initial: How many Sobol points are evaluated first. None means 8, less the results in
            ``initial``; with more than 20 inputs, all continuous and without constraints, they lie
            in the middle half of each side.
        particles: How hyperparameter samples are drawn; ``Particles()`` if None.
        seed: The seed of everything random except the objective; 0 if None.
        executor: Any `concurrent.futures.Executor`, or a function that makes one; None evaluates in
            this thread.
        max_pending: How many trials may be under way at once.
        progress: Whether to show a progress bar.
        max_retries: How often a failing trial is tried again before it is given up.
        failure_value: The value that the strategy is told for a trial that is given up, in the sign
            of the objective; None abandons the trial.
        max_consecutive_failures: How many trials given up in a row end the run; None never ends it.
            See `run`.
        callback: A function that is called with each trial and its value, and ends the run by
            returning True. See `run`.
        time_limit: Seconds after which nothing more is asked. See `run`.
        target: The value that is good enough. See `run`.
        deterministic: Whether the objective has no noise. No point is evaluated twice then, and
            ``recommended_x`` is ``best_x``. See `integrated_ei`.
        outcomes: The limits of other measured numbers by name, as in
            ``{"impurity": bx.AtMost(5.0, unit="%")}``. ``best_x`` keeps them as measured, and
            ``recommended_x`` with probability 0.9 if such a point is found. See `integrated_ei`.

    Returns:
        An `OptimizeResult`. Its ``strategy`` can be asked for more.

    Raises:
        ValueError: An argument is impossible; the message names it.
        ObjectiveError: The objective cannot be called, returned no number, or cannot be pickled for
            a process pool.
        RepeatedFailures: Too many trials failed in a row.

    Warns:
        TrialFailedWarning: A trial was given up.
    """
    if isinstance(domain, Strategy | Study):
        strategy = _begun(
            domain,
            initial=initial,
            num_initial=num_initial,
            particles=particles,
            seed=seed,
            deterministic=flag(deterministic, "deterministic") or None,
            outcomes=outcomes,
        )
    else:
        seed = 0 if seed is None else seed
        strategy = integrated_ei(
            as_domain(domain),
            particles,
            seed=seed,
            initial=initial,
            num_initial=num_initial,
            minimize=minimize,
            deterministic=deterministic,
            outcomes=outcomes,
        )
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
        callback=callback,
        time_limit=time_limit,
        target=target,
    )
    x = mean = feasibility = None
    if len(result.strategy.evaluated()[1]):
        recommend = getattr(result.strategy, "recommend", result.strategy.best)
        x, mean = recommend()
        feasibility = result.strategy._feasibility(x, None)
    found = {field.name: getattr(result, field.name) for field in fields(result)}
    return OptimizeResult(
        **found,
        recommended_x=x,
        recommended_mean=mean,
        recommended_feasibility=feasibility,
    )


def _begun(given: Strategy | Study, **of_new: Any) -> Strategy | Study:
    """The strategy or the study to continue, if no argument of a new strategy is given."""
    kind = "study" if isinstance(given, Study) else "strategy"
    for name, value in of_new.items():
        if value is not None:
            raise ValueError(
                f"{name} must be None where a {kind} is given, which has its own, got "
                f"{short(value)}"
            )
    strategy = given.strategy if isinstance(given, Study) else given
    if strategy.context_space is not None:
        raise ValueError(
            f"domain must be a {kind} without contexts, got one with them: run takes contexts"
        )
    return given
