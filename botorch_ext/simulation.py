"""`simulate`: a known function, with delays and noise and without a clock."""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from botorch_ext.checks import whole_number
from botorch_ext.delays import as_delay
from botorch_ext.domains import FiniteSet, require_same_kind
from botorch_ext.exceptions import WaitingForObservations
from botorch_ext.strategies import Strategy

if TYPE_CHECKING:
    from botorch_ext.problems.base import Problem


@dataclass(frozen=True)
class Trace:
    """What a simulation did, step by step; all tensors on the CPU.

    Args:
        strategy: The strategy, with all its state.
        X: ``T x d``, the asked points.
        values: ``T`` noiseless values.
        observations: ``T`` noisy values.
        delays: ``T`` delays in steps.
        told_at: ``T``: the index of the ask before which the observation arrived, or -1 if it came
            too late.
        regret: ``T``: the maximum minus the value, for each evaluation. A strategy that waits pays
            nothing for it.
        seconds: The time the strategy took, in ask and tell together.
    """

    strategy: Strategy
    X: Tensor
    values: Tensor
    observations: Tensor
    delays: Tensor
    told_at: Tensor
    regret: Tensor
    seconds: float

    @property
    def cumulative_regret(self) -> Tensor:
        """``T`` running sums of the regret."""
        return self.regret.cumsum(dim=0)

    @property
    def simple_regret(self) -> Tensor:
        """``T``: the least regret of the steps so far."""
        return self.regret.cummin(dim=0).values


def simulate(
    strategy: Strategy,
    problem: Problem,
    horizon: int,
    *,
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

    Args:
        strategy: What to ask; a fresh one.
        problem: The function, with its maximum and its domain.
        horizon: T, the number of evaluations.
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
    horizon = whole_number(horizon, "horizon", least=1)
    if problem.domain.dim != strategy.domain.dim:
        raise ValueError(
            f"problem must have a domain of dimension {strategy.domain.dim}, "
            f"got {problem.domain.dim}"
        )
    require_same_kind(problem.domain.like, strategy.domain.like, "problem")
    if problem.optimal_value is None:
        raise ValueError("problem must have a known optimal_value, got None")
    noise_std = problem.noise_std if noise_std is None else noise_std
    if not 0 <= noise_std < math.inf:
        raise ValueError(f"noise_std must be non-negative and finite, got {noise_std}")
    noise_stream, delay_stream = np.random.SeedSequence(seed).spawn(2)
    noise = noise_std * np.random.default_rng(noise_stream).standard_normal(horizon)
    delays = as_delay(delay).sample(horizon, np.random.default_rng(delay_stream))
    # On a finite set all values at once, where the indices are known.
    table = None
    if isinstance(problem.domain, FiniteSet) and problem.domain is strategy.domain:
        table = problem(problem.domain.points).tolist()
    X, values, told_at = [], [], torch.full((horizon,), -1)
    # (step before whose ask it arrives, index of its own ask, id, value)
    due: list[tuple[int, int, int, float]] = []
    seconds, step = 0.0, 0
    for index in tqdm(range(horizon), disable=not progress, unit="evaluation"):
        start = time.perf_counter()
        trial = None
        while trial is None:
            while due and due[0][0] <= step:
                _, asked_at, id, observation = heapq.heappop(due)
                strategy.tell(id, observation)
                told_at[asked_at] = index
            try:
                trial = strategy.ask()
            except WaitingForObservations:
                if not due:
                    raise
                step = due[0][0]
        seconds += time.perf_counter() - start
        if table is not None and "index" in trial.info:
            value = table[trial.info["index"]]
        else:
            value = float(problem(trial.x))
        X.append(trial.x)
        values.append(value)
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
        regret=problem.optimal_value - f,
        seconds=seconds,
    )
