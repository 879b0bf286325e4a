"""Optuna's samplers, by ask and tell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import BaseSampler
from optuna.trial import Trial


class OptunaLoop:
    """A study whose first trials are enqueued.

    Args:
        bounds: A pair of lower and upper bound for each input.
        initial: Points that are asked first; ``n_startup_trials`` of the sampler.
        seed: Of the sampler.
        make: Makes the sampler.
    """

    def __init__(
        self,
        bounds: Sequence[tuple[float, float]],
        initial: Sequence[Sequence[float]],
        seed: int,
        make: Callable[..., BaseSampler],
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = make(seed=seed, n_startup_trials=len(initial))
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._space: dict[str, BaseDistribution] = {
            f"x{i}": FloatDistribution(*ends) for i, ends in enumerate(bounds)
        }
        self._trial: Trial
        for x in initial:
            self._study.enqueue_trial(dict(zip(self._space, x, strict=True)))

    def ask(self) -> list[float]:
        """The next point."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            self._trial = self._study.ask(self._space)
        return [self._trial.params[name] for name in self._space]

    def tell(self, value: float) -> None:
        """The value that was seen there."""
        self._study.tell(self._trial, value)
