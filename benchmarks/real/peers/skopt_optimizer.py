"""scikit-optimize's Optimizer with its defaults."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skopt import Optimizer
from skopt.space import Categorical, Integer, Real

from benchmarks.real.spaces import Parameter, Params


class SkoptOptimizer:
    """A Gaussian process with the hedged acquisition function.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        self._parameters = parameters
        dimensions = [_dimension(p) for p in parameters]
        self._optimizer = Optimizer(dimensions, base_estimator="GP", random_state=seed)
        self._asked: Any = None

    def ask(self) -> Params:
        """The next setting."""
        self._asked = self._optimizer.ask()
        return {
            p.name: p.read(found) for p, found in zip(self._parameters, self._asked, strict=True)
        }

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._optimizer.tell(self._asked, loss)

    def best(self) -> None:
        """Nothing: scikit-optimize recommends the least value seen."""


def _dimension(p: Parameter) -> Any:
    if p.kind == "choice":
        return Categorical(list(range(len(p.choices))))
    prior = "log-uniform" if p.log else "uniform"
    if p.kind == "integer":
        return Integer(int(p.lower), int(p.upper), prior=prior)
    return Real(p.lower, p.upper, prior=prior)
