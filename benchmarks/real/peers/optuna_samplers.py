"""Optuna's samplers, in spaces as its users write them: with ranges, choices and conditions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import optuna
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    RandomSampler,
    TPESampler,
)

from benchmarks.real.spaces import Parameter, Params


class OptunaStudy:
    """A study of one sampler.

    Args:
        sampler: What suggests the settings.
        parameters: The inputs of the task.
    """

    def __init__(self, sampler: BaseSampler, parameters: Sequence[Parameter]) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=sampler)
        self._parameters = parameters
        self._trial: Any = None

    def ask(self) -> Params:
        """The next setting. Parameters that are not active are not suggested; tasks ignore the
        values that stand for them."""
        self._trial = self._study.ask()
        params: Params = {}
        for p in self._parameters:
            if not p.is_active(params):
                params[p.name] = p.resting
            elif p.kind == "choice":
                params[p.name] = self._trial.suggest_categorical(p.name, p.choices)
            elif p.kind == "integer":
                params[p.name] = self._trial.suggest_int(
                    p.name, int(p.lower), int(p.upper), log=p.log
                )
            else:
                params[p.name] = self._trial.suggest_float(p.name, p.lower, p.upper, log=p.log)
        return params

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._study.tell(self._trial, loss)

    def best(self) -> None:
        """Nothing: Optuna has no other recommendation than the least value seen."""


def _of(make: Callable[[int], BaseSampler]) -> Callable[..., OptunaStudy]:
    def made(parameters: Sequence[Parameter], seed: int, evaluations: int) -> OptunaStudy:
        return OptunaStudy(make(seed), parameters)

    return made


gp = _of(lambda seed: GPSampler(seed=seed))
tpe = _of(lambda seed: TPESampler(seed=seed))
cma_es = _of(lambda seed: CmaEsSampler(seed=seed))
random = _of(lambda seed: RandomSampler(seed=seed))
