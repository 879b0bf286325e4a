"""`simulate`: a known function, with delays and noise and without a clock."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import amount, short, whole_number
from botorch_ext.delays import as_delay
from botorch_ext.domains import Box, FiniteSet, require_same_kind
from botorch_ext.domains.contexts import ContextSpace, with_context
from botorch_ext.exceptions import WaitingForObservations
from botorch_ext.problems import ContextualProblem, Problem
from botorch_ext.strategies import Strategy
from botorch_ext.strategies.events import place_of
from botorch_ext.studies.streams import Source, Stream, action_stream, context_stream


@dataclass(frozen=True)
class Trace:
    """What a simulation did, step by step; all tensors on the CPU.

    Args:
        strategy: The strategy, with all its state.
        X: ``T x d``, the asked points, without their contexts.
        values: ``T`` noiseless values.
        observations: ``T`` noisy values.
        delays: ``T`` delays in steps.
        told_at: ``T``: the index of the ask before which the observation arrived, or -1 if it came
            too late.
        regret: ``T``: the maximum minus the value, for each evaluation: over the actions there were
            and at the context there was. A strategy that waits pays nothing for it.
        seconds: The time the strategy took, in ask and tell together.
        contexts: ``T x d_z``, the context of each evaluation, or None.
    """

    strategy: Strategy
    X: Tensor
    values: Tensor
    observations: Tensor
    delays: Tensor
    told_at: Tensor
    regret: Tensor
    seconds: float
    contexts: Tensor | None = None

    def __repr__(self) -> str:
        """How it went, in a few lines."""
        top = int(self.values.argmax())
        context = None if self.contexts is None else self.contexts[top]
        place = place_of(self.X[top], context, self.strategy.domain)
        lines = [
            f"Trace of {type(self.strategy).__name__}",
            f"evaluations: {len(self.values)}",
            f"seconds of the strategy: {self.seconds:.3g}",
            f"best value, without noise: {self.values[top]:.6g} at {place}",
            f"simple regret: {self.simple_regret[-1]:.3g}",
            f"cumulative regret: {self.cumulative_regret[-1]:.6g}",
        ]
        return "\n  ".join(lines)

    @property
    def cumulative_regret(self) -> Tensor:
        """``T`` running sums of the regret."""
        # On the host: CUDA has no running sum that is always the same.
        return self.regret.cpu().cumsum(dim=0).to(self.regret)

    @property
    def simple_regret(self) -> Tensor:
        """``T``: the least regret of the steps so far."""
        return self.regret.cummin(dim=0).values


def simulate(
    strategy: Strategy,
    problem: Problem | ContextualProblem,
    horizon: int,
    *,
    contexts: Source | None = None,
    actions: Source | None = None,
    delay: Any = None,
    seed: int = 0,
    noise_std: float | None = None,
    progress: bool = False,
) -> Trace:
    """Plays a known function for ``horizon`` evaluations, without a real clock.

    A point asked at step s with delay tau is told before the ask of step s + tau + 1. Observations
    that arrive before the same ask are told in the order of asking. While a strategy waits for
    observations the steps go by and nothing is evaluated. Noise and delays come from independent
    streams of ``seed``, so the same seed gives every strategy the same noise and the same delays.

    Contexts and actions belong to evaluations, not to steps of the clock: a strategy that waits
    misses none. One that takes no contexts is not told them, and the function depends on them all
    the same.

    Args:
        strategy: What to ask; a fresh one.
        problem: The function, with its maximum and its domain.
        horizon: T, the number of evaluations.
        contexts: ``T x d_z``, or a function from the number of an evaluation, counted from 0, to
            its context; given where the problem is a `ContextualProblem`.
        actions: What there is to choose from at each evaluation: T tensors ``m x d``, or a function
            from its number to one; None for the whole domain.
        delay: None, whole steps, a distribution of `botorch_ext.delays`, or a frozen scipy
            distribution.
        seed: Of noise and delays.
        noise_std: Standard deviation of the Gaussian noise; None takes the problem's.
        progress: Show a progress bar.

    Returns:
        A `Trace`.

    Raises:
        ValueError: An impossible argument, or a problem whose maximum is unknown.
        WaitingForObservations: The strategy waits and no observation is on its way.
        HorizonReached: The strategy has a horizon, and it is shorter.
    """
    if not isinstance(strategy, Strategy):
        raise ValueError(f"strategy must be a Strategy, got {short(strategy)}")
    if not (callable(problem) and isinstance(getattr(problem, "domain", None), Box | FiniteSet)):
        raise ValueError(f"problem must be a Problem with a domain, got {short(problem)}")
    horizon = whole_number(horizon, "horizon", least=1)
    seed = whole_number(seed, "seed", least=0)
    if problem.domain.dim != strategy.domain.dim:
        raise ValueError(
            f"problem must have a domain of dimension {strategy.domain.dim}, "
            f"got {problem.domain.dim}"
        )
    require_same_kind(problem.domain.like, strategy.domain.like, "problem")
    noise_std = problem.noise_std if noise_std is None else noise_std
    noise_std = amount(noise_std, "noise_std", "non-negative and finite")
    given = _Given.of(strategy, problem, horizon, contexts, actions)
    noise_stream, delay_stream = np.random.SeedSequence(seed).spawn(2)
    noise = noise_std * np.random.default_rng(noise_stream).standard_normal(horizon)
    delays = as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))
    # On a finite set all values at once, where the indices are known.
    table = None
    same = problem.domain is strategy.domain
    if isinstance(problem.domain, FiniteSet) and same and given.contexts is None:
        table = problem(problem.domain.points).tolist()
    X, Z, values, best, told_at = [], [], [], [], torch.full((horizon,), -1)
    # (step before whose ask it arrives, index of its own ask, id, value)
    due: list[tuple[int, int, int, float]] = []
    seconds, step = 0.0, 0
    for index in tqdm(range(horizon), disable=not progress, unit="evaluation"):
        context, points = given.at(index)
        seen = None if strategy.context_space is None else context
        start = time.perf_counter()
        trial = None
        while trial is None:
            while due and due[0][0] <= step:
                _, asked_at, id, observation = heapq.heappop(due)
                strategy.tell(id, observation)
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
        heapq.heappush(due, (arrival, index, trial.id, value + float(noise[index])))
    f = torch.tensor(values, dtype=torch.float64)
    return Trace(
        strategy=strategy,
        X=torch.stack(X).cpu(),
        values=f,
        observations=f + torch.from_numpy(noise),
        delays=torch.from_numpy(delays),
        told_at=told_at,
        regret=torch.tensor(best, dtype=torch.float64) - f,
        seconds=seconds,
        contexts=torch.stack(Z).cpu() if Z else None,
    )


@dataclass(frozen=True)
class _Given:
    """What comes with each evaluation, whatever is asked."""

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
        """Checks that they fit the problem and the strategy."""
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
    """The largest value that could have been chosen."""
    if isinstance(problem, ContextualProblem):
        return problem.optimal_value_at(context, actions)
    return problem.optimal_value if actions is None else float(problem(actions).max())
