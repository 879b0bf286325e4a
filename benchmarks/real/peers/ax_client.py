"""Ax's Client with its default methods."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from benchmarks.real.spaces import Parameter, Params

_TYPES: dict[type, Any] = {bool: "bool", int: "int", float: "float", str: "str"}


class AxClient:
    """An experiment of one objective.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        logging.disable(logging.WARNING)
        self._client = Client(random_seed=seed)
        self._client.configure_experiment([_config(p, parameters) for p in parameters])
        self._client.configure_optimization("-loss")
        self._client.configure_generation_strategy()
        self._index = 0

    def ask(self) -> Params:
        """The next setting."""
        ((self._index, params),) = self._client.get_next_trials(max_trials=1).items()
        return dict(params)

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._client.complete_trial(self._index, raw_data={"loss": loss})

    def best(self) -> Params:
        """What Ax says is best, by its model."""
        return dict(self._client.get_best_parameterization()[0])


def _config(p: Parameter, parameters: Sequence[Parameter]) -> Any:
    if p.kind == "choice":
        kind = _TYPES[type(p.choices[0])]
        dependent = {
            value: [q.name for q in parameters if q.only_if == (p.name, (value,))]
            for value in p.choices
        }
        # Ax takes trees alone, in which a parameter has one value of one parent.
        if any(q.only_if and len(q.only_if[1]) > 1 for q in parameters):
            dependent = {}
        return ChoiceParameterConfig(
            name=p.name,
            values=list(p.choices),
            parameter_type=kind,
            is_ordered=False,
            dependent_parameters={value: names for value, names in dependent.items() if names}
            or None,
        )
    kind = "int" if p.kind == "integer" else "float"
    scaling = "log" if p.log else None
    bounds = (p.lower, p.upper)
    return RangeParameterConfig(name=p.name, bounds=bounds, parameter_type=kind, scaling=scaling)
