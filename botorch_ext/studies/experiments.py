"""Experiments: the problems, the noise and the delays of many runs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import amount, short, whole_number
from botorch_ext.domains import FiniteSet, host
from botorch_ext.strategies import Strategy
from botorch_ext.studies.simulate import simulate
from botorch_ext.studies.simulated_functions import as_problem, same_points
from botorch_ext.studies.streams import noise_and_delays
from botorch_ext.studies.traces import Trace


class Experiment:
    """R runs of T evaluations on one domain, each with a problem and a seed of its own.

    Args:
        domain: The domain.
        problems: A problem for all runs, or one for each, as for `replicate`.
        horizon: T.
        seeds: The seed of each run.
        delay: The delays, as for `simulate`.
        noise_std: The standard deviation of the noise; None takes that of each problem.
        initial: The rows and the values of observations from before each run, ``R x n0`` each, on a
            finite set; None for those of the strategies.

    Raises:
        ValueError: If an argument is impossible.
    """

    def __init__(
        self,
        domain: Any,
        problems: Any,
        horizon: int,
        seeds: Sequence[int],
        delay: Any = None,
        noise_std: float | None = None,
        initial: tuple[Any, Any] | None = None,
    ) -> None:
        self.domain, self.delay = domain, delay
        self.horizon = whole_number(horizon, "horizon", least=1)
        self.seeds = _checked_seeds(seeds)
        self.problems = _one_for_each(problems, domain, len(self.seeds))
        for problem in set(self.problems):
            if not same_points(problem.domain, domain):
                raise ValueError(
                    "problems must be on the domain of the methods, got a "
                    f"{type(problem).__name__} on {short(problem.domain)}"
                )
            if problem.optimal_value is None:
                raise ValueError("problems must have a known optimal_value, got None")
        if noise_std is not None:
            noise_std = amount(noise_std, "noise_std", "non-negative and finite")
        if initial is not None:
            initial = _checked_initial(initial, len(self.seeds), domain)
        self.noise_std, self.initial = noise_std, initial
        best = [[problem.optimal_value] for problem in self.problems]
        #: The maximum of each problem on the CPU, ``R x 1``, in float64.
        self.best = host.tensor(best, dtype=torch.float64)
        stds = [p.noise_std if noise_std is None else noise_std for p in self.problems]
        drawn = [
            noise_and_delays(seed, self.horizon, std, delay)
            for seed, std in zip(self.seeds, stds, strict=True)
        ]
        noise, delays = (np.stack(values) for values in zip(*drawn, strict=True))
        #: The noise on the CPU and the delays, ``R x T`` each.
        self.noise, self.delays = torch.from_numpy(noise), delays.astype(int)

    def __len__(self) -> int:
        return len(self.seeds)

    def __getstate__(self) -> dict[str, Any]:
        # Without the table of values, which is computed again.
        return {name: each for name, each in vars(self).items() if name != "values"}

    def simulated(self, strategy: Strategy, run: int, horizon: int | None = None) -> Trace:
        """The `Trace` of one run of a strategy without trials, whose seed is replaced."""
        given = {name: strategy.arguments.given[name] for name in strategy.arguments.passed}
        given["seed"] = self.seeds[run]
        if self.initial is not None:
            rows, values = (each[run] for each in self.initial)
            given["initial"] = self.domain.points[rows], values
        return simulate(
            type(strategy)(**given),
            self.problems[run],
            self.horizon if horizon is None else horizon,
            delay=self.delay,
            seed=self.seeds[run],
            noise_std=self.noise_std,
        )

    @cached_property
    def values(self) -> Tensor:
        """The values of all points of a finite set, ``R x N``."""
        values = {problem: problem(self.domain.points) for problem in set(self.problems)}
        return torch.stack([values[problem] for problem in self.problems])


def _checked_seeds(seeds: Any) -> list[int]:
    """The seeds as a list; raises a ValueError if there are none or one is none."""
    if isinstance(seeds, str | Set) or not hasattr(seeds, "__len__") or not len(seeds):
        raise ValueError(f"seeds must be a list of at least one seed, got {short(seeds)}")
    return [whole_number(seed, "seeds", least=0) for seed in seeds]


def _one_for_each(problems: Any, domain: Any, num: int) -> list[Any]:
    """The problem of each run."""
    is_table = isinstance(problems, Tensor | np.ndarray) and problems.ndim == 2
    is_list = isinstance(problems, list | tuple) and any(map(callable, problems))
    if not (is_table or is_list):
        return [as_problem(problems, domain)] * num
    if len(problems) != num:
        raise ValueError(
            f"problems must be one, or one for each of {num} seeds, got {len(problems)}"
        )
    return [as_problem(each, domain) for each in problems]


def _checked_initial(initial: tuple[Any, Any], num_runs: int, domain: Any) -> tuple[Tensor, Tensor]:
    device = domain.like.device
    try:
        rows, values = (torch.as_tensor(each, device=device) for each in initial)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"initial must be rows and values, got {short(initial)}") from None
    if rows.shape != values.shape or rows.ndim != 2 or len(rows) != num_runs:
        raise ValueError(
            f"initial must be rows and values of shape {num_runs} x n, got {tuple(rows.shape)} and "
            f"{tuple(values.shape)}"
        )
    whole = rows.dtype in (torch.int64, torch.int32)
    if not isinstance(domain, FiniteSet) or not whole or not bool(values.isfinite().all()):
        raise ValueError("initial must be rows of a finite set and finite values, got others")
    if rows.numel() and not 0 <= int(rows.min()) <= int(rows.max()) < domain.num_points:
        raise ValueError(f"initial must have rows below {domain.num_points}, got {short(rows)}")
    return rows.to(device, torch.int64), values.to(domain.like)
