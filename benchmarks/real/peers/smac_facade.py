"""SMAC's facade for hyperparameters, with its defaults."""

# pyright: reportMissingImports=false

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical, ConfigurationSpace, Float, InCondition, Integer
from smac import HyperparameterOptimizationFacade, Scenario
from smac.runhistory.dataclasses import TrialValue

from benchmarks.real.spaces import Parameter, Params


class SmacFacade:
    """A random forest, in a space with conditions; told to ask no setting twice.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        self._parameters = parameters
        space = ConfigurationSpace(seed=seed)
        made = {p.name: _hyperparameter(p) for p in parameters}
        space.add(*made.values())
        for p in parameters:
            if p.only_if is not None:
                name, values = p.only_if
                space.add(InCondition(made[p.name], made[name], list(map(str, values))))
        self._folder = tempfile.TemporaryDirectory(prefix="smac")
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=evaluations,
            seed=seed,
            output_directory=Path(self._folder.name),
        )
        self._facade = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, logging_level=50, overwrite=True
        )
        self._asked: Any = None

    def ask(self) -> Params:
        """The next setting."""
        self._asked = self._facade.ask()
        found = dict(self._asked.config)
        params: Params = {}
        for p in self._parameters:
            if p.name not in found:
                params[p.name] = p.resting
            elif p.kind == "choice":
                params[p.name] = next(c for c in p.choices if str(c) == found[p.name])
            else:
                params[p.name] = p.read(found[p.name])
        return params

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._facade.tell(self._asked, TrialValue(cost=loss))

    def best(self) -> None:
        """Nothing: SMAC recommends the least value seen."""


def _hyperparameter(p: Parameter) -> Any:
    if p.kind == "choice":
        return Categorical(p.name, [str(c) for c in p.choices])
    if p.kind == "integer":
        return Integer(p.name, (int(p.lower), int(p.upper)), log=p.log)
    return Float(p.name, (p.lower, p.upper), log=p.log)
