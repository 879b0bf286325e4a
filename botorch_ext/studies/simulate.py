"""`simulate`: runs a strategy on a known function, with simulated noise and delays."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import amount, flag, short, whole_number
from botorch_ext.domains import FiniteSet, host, require_same_kind
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.exceptions import WaitingForObservations
from botorch_ext.problems import ContextualProblem, Problem
from botorch_ext.strategies import Strategy
from botorch_ext.studies.simulated_functions import as_problem, same_points
from botorch_ext.studies.streams import (
    Source,
    Stream,
    action_stream,
    context_stream,
    noise_and_delays,
)
from botorch_ext.studies.traces import Trace


def simulate(
    strategy: Strategy,
    problem: Problem | ContextualProblem | Callable[..., Any] | Sequence[float] | Tensor,
    horizon: int,
    *,
    contexts: Source | None = None,
    actions: Source | None = None,
    delay: Any = None,
    seed: int = 0,
    noise_std: float | None = None,
    progress: bool = False,
) -> Trace:
    """Runs a strategy on a known function for ``horizon`` evaluations, in simulated time.

    A point asked at step s with delay tau is told before the ask of step s + tau + 1. Observations
    that arrive before the same ask are told in the order of asking. While a strategy waits for
    observations, steps pass and nothing is evaluated. Noise and delays come from independent
    streams of ``seed``, so the same seed gives every strategy the same noise and the same delays.

    Contexts and actions belong to evaluations, not to steps of time: a strategy that waits misses
    none. A strategy without contexts is not told them, although the function depends on them.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> f = bx.problems.RKHSFunction.random(points, RBFKernel(), norm=1.0, seed=0)
        >>> trace = bx.simulate(bx.strategies.RandomSearch(points), f, horizon=4, delay=1)
        >>> trace.told_at.tolist()
        [2, 3, -1, -1]

        A function is simulated too, and so are the values of a set:

        >>> strategy = bx.strategies.RandomSearch(points)
        >>> bx.simulate(strategy, [0.0, 2.0, 1.0], horizon=3).simple_regret.tolist()
        [1.0, 0.0, 0.0]

    Args:
        strategy: The strategy, without trials.
        problem: The function, with its maximum and its domain, such as those of
            `botorch_ext.problems`. Or a function as for `run`, from a ``d``-dim point to a number,
            or from a dict of values by name if the domain is a `Space`. Or, on a `FiniteSet` of n
            points, the n values of its points. The last two have no noise but ``noise_std``, and no
            contexts. The maximum of a function on a set is exact; on a box it is found by a search
            of some thousand calls, which is exact for smooth functions alone. For a strategy with
            outcomes it is a function that returns them too, noise included, as for `run`; or a
            problem whose method ``outcomes`` gives a dict of them at a point with its context.
        horizon: T, the number of evaluations.
        contexts: ``T x d_z`` contexts, or a function from the number of an evaluation, counted from
            0, to its context; needed if the problem is a `ContextualProblem`.
        actions: The actions available at each evaluation: T tensors ``m x d``, or a function from
            the number of an evaluation to such a tensor; None for the whole domain.
        delay: None, a number of steps, a distribution of `botorch_ext.delays`, or a frozen scipy
            distribution.
        seed: The seed of noise and delays.
        noise_std: The standard deviation of the Gaussian noise; None takes the problem's.
        progress: Whether to show a progress bar.

    Returns:
        A `Trace`.

    Raises:
        ValueError: An argument is impossible, or the maximum of the problem is unknown.
        ObjectiveError: A function takes no point, or returns no number.
        WaitingForObservations: The strategy waits and no observation is on its way.
        HorizonReached: The strategy has a shorter horizon.
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(f"strategy must be a Strategy, got {short(strategy)}")
    if strategy.minimize:
        raise ValueError("strategy must maximise, as problems do, got one that minimises")
    problem = as_problem(problem, strategy.domain, strategy.outcome_names)
    outcomes_at = getattr(problem, "outcomes", None)
    if strategy.outcome_names and outcomes_at is None:
        raise ValueError(
            f"problem must have the outcomes {strategy.outcome_names}, as a function that returns "
            f"them has, got {short(problem)}"
        )
    horizon = whole_number(horizon, "horizon", least=1)
    seed = whole_number(seed, "seed", least=0)
    flag(progress, "progress")
    if problem.domain.dim != strategy.domain.dim:
        raise ValueError(
            f"problem must have a domain of dimension {strategy.domain.dim}, "
            f"got {problem.domain.dim}"
        )
    require_same_kind(problem.domain.like, strategy.domain.like, "problem")
    noise_std = problem.noise_std if noise_std is None else noise_std
    noise_std = amount(noise_std, "noise_std", "non-negative and finite")
    given = _Given.of(strategy, problem, horizon, contexts, actions)
    noise, delays = noise_and_delays(seed, horizon, noise_std, delay)
    # On a finite set, all values are computed at once if the indices are known.
    table = None
    domain = problem.domain
    same = same_points(domain, strategy.domain)
    if isinstance(domain, FiniteSet) and same and given.contexts is None:
        table = problem(domain.points).tolist()
    X, Z, values, best, told_at = [], [], [], [], host.full((horizon,), -1)
    # (step before whose ask it arrives, index of its own ask, id, value, outcomes)
    due: list[tuple[int, int, int, float, dict[str, float] | None]] = []
    seconds, step = 0.0, 0
    for index in tqdm(range(horizon), disable=not progress, unit="evaluation"):
        context, points = given.at(index)
        seen = None if strategy.context_space is None else context
        start = time.perf_counter()
        trial = None
        while trial is None:
            while due and due[0][0] <= step:
                _, asked_at, id, observation, outcomes = heapq.heappop(due)
                strategy.tell(id, observation, outcomes)
                told_at[asked_at] = index
            try:
                trial = strategy.ask(context=seen, actions=points)
            except WaitingForObservations:
                if not due:
                    raise
                step = due[0][0]
        seconds += time.perf_counter() - start
        if table is not None and "index" in trial.info:
            value = table[trial.info["index"]]
        else:
            value = float(problem(with_context(trial.x, context)))
        X.append(trial.x)
        if context is not None:
            Z.append(context)
        values.append(value)
        best.append(_best_value(problem, context, points))
        step += 1
        arrival = step + int(delays[index])
        observation = value + float(noise[index])
        outcomes = outcomes_at(trial.point) if outcomes_at and strategy.outcome_names else None
        heapq.heappush(due, (arrival, index, trial.id, observation, outcomes))
    f = host.tensor(values, dtype=torch.float64)
    return Trace(
        strategy=strategy,
        domain=strategy.domain,
        X=torch.stack(X).cpu(),
        values=f,
        observations=f + torch.from_numpy(noise),
        delays=torch.from_numpy(delays),
        told_at=told_at,
        regret=host.tensor(best, dtype=torch.float64) - f,
        seconds=seconds,
        contexts=torch.stack(Z).cpu() if Z else None,
    )


@dataclass(frozen=True)
class _Given:
    """The contexts and actions of the evaluations."""

    contexts: Stream | None
    actions: Stream | None

    @classmethod
    def of(
        cls,
        strategy: Strategy,
        problem: Problem | ContextualProblem,
        horizon: int,
        contexts: Source | None,
        actions: Source | None,
    ) -> _Given:
        """Checks that contexts and actions fit the problem and the strategy."""
        by_context = isinstance(problem, ContextualProblem)
        if by_context and contexts is None:
            raise ValueError("contexts must be given for a problem with contexts, got None")
        if not by_context and strategy.context_space is not None:
            kind = type(problem).__name__
            raise ValueError(f"problem must have contexts for a strategy with them, got a {kind}")
        if not by_context and contexts is not None:
            raise ValueError("contexts must be None for a problem without contexts")
        if not by_context and actions is None and problem.optimal_value is None:
            raise ValueError("problem must have a known optimal_value, got None")
        seen, offered = None, None
        if by_context and contexts is not None:
            space = strategy.context_space or ContextSpace()
            if space.dim not in (None, problem.context_dim):
                raise ValueError(
                    f"problem must have contexts of dimension {space.dim}, "
                    f"got {problem.context_dim}"
                )
            seen = context_stream(contexts, space, strategy.domain.like, problem.context_dim)
            seen.require_length(horizon, exact=True)
        if actions is not None:
            offered = action_stream(actions, strategy.domain)
            offered.require_length(horizon, exact=True)
        return cls(seen, offered)

    def at(self, index: int) -> tuple[Tensor | None, Tensor | None]:
        """The context and the actions of an evaluation."""
        context = None if self.contexts is None else self.contexts.at(index)
        return context, None if self.actions is None else self.actions.at(index)


def _best_value(
    problem: Problem | ContextualProblem, context: Any, actions: Tensor | None
) -> float | None:
    """The largest value of the available actions at the context."""
    if isinstance(problem, ContextualProblem):
        return problem.optimal_value_at(context, actions)
    return problem.optimal_value if actions is None else float(problem(actions).max())
