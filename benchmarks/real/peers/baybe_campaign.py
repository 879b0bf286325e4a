"""BayBE's Campaign with its defaults."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from baybe import Campaign
from baybe.parameters import CategoricalParameter, NumericalContinuousParameter
from baybe.searchspace import SearchSpace
from baybe.targets import NumericalTarget
from baybe.utils.random import set_random_seed

from benchmarks.real.spaces import Parameter, Params

# No parameter of a task is called so.
_TARGET = "the loss"


class BaybeCampaign:
    """A campaign of one target. Logarithms are parameters themselves, since BayBE has no scale for
    them, and whole numbers are rounded.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        set_random_seed(seed)
        self._parameters = parameters
        space = SearchSpace.from_product([_parameter(p) for p in parameters])
        target = NumericalTarget(name=_TARGET, minimize=True)
        self._campaign = Campaign(space, target.to_objective())
        self._asked: Any = None

    def ask(self) -> Params:
        """The next setting."""
        self._asked = self._campaign.recommend(batch_size=1)
        row = self._asked.iloc[0]
        return {
            p.name: p.read(row[p.name]) if p.kind == "choice" else p.value(row[p.name])
            for p in self._parameters
        }

    def tell(self, params: Params, loss: float) -> None:
        """Its loss, of what was rounded."""
        told = self._asked.copy()
        for p in self._parameters:
            if p.kind == "integer":
                told[p.name] = p.scaled(params[p.name])
        told[_TARGET] = loss
        self._campaign.add_measurements(told, numerical_measurements_must_be_within_tolerance=False)

    def best(self) -> None:
        """Nothing: BayBE recommends no evaluated setting by itself."""


def _parameter(p: Parameter) -> Any:
    if p.kind == "choice":
        return CategoricalParameter(p.name, [str(i) for i in range(len(p.choices))])
    return NumericalContinuousParameter(p.name, p.ends)
