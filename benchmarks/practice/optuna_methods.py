"""Optuna's samplers, by ask and tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.trial import Trial, TrialState
from torch import Tensor


class OptunaLoop:
    """A study whose first trials are enqueued.

    Args:
        box: ``2 x d`` bounds.
        initial: ``m x d`` points that are asked first; ``n_startup_trials`` of the sampler.
        seed: Of the sampler.
        sampler: Its class, or what makes one of the same arguments.
        options: Of the sampler.
    """

    def __init__(
        self,
        box: Tensor,
        initial: Tensor,
        seed: int,
        sampler: Callable[..., BaseSampler],
        **options: Any,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        made = sampler(seed=seed, n_startup_trials=len(initial), **options)
        self._study = optuna.create_study(direction="maximize", sampler=made)
        self._space: dict[str, BaseDistribution] = {
            f"x{i}": FloatDistribution(lower, upper)
            for i, (lower, upper) in enumerate(box.T.tolist())
        }
        self._trials: list[Trial] = []
        for x in initial.tolist():
            self._study.enqueue_trial(dict(zip(self._space, x, strict=True)))

    def ask(self) -> Tensor:
        """The next ``d``-dim point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            trial = self._study.ask(self._space)
        self._trials.append(trial)
        return torch.tensor([trial.params[name] for name in self._space], dtype=torch.float64)

    def tell(self, which: int, value: float) -> None:
        """The result of the question of that number."""
        self._study.tell(self._trials[which], value)

    def abandon(self, which: int) -> None:
        """No result of that question will come."""
        self._study.tell(self._trials[which], state=TrialState.FAIL)

    def evaluated(self) -> None:
        """Nothing: Optuna has no other recommendation than the largest value it saw."""

    def recommended(self) -> None:
        """Nothing, likewise."""
