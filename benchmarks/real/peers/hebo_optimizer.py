"""HEBO with its defaults."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from benchmarks.real.spaces import Parameter, Params


class HeboOptimizer:
    """HEBO, one question at a time.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        np.random.seed(seed)  # noqa: NPY002
        torch.manual_seed(seed)
        self._parameters = parameters
        self._optimizer = HEBO(
            DesignSpace().parse([_entry(p) for p in parameters]), scramble_seed=seed
        )
        self._asked: Any = None

    def ask(self) -> Params:
        """The next setting."""
        self._asked = self._optimizer.suggest(n_suggestions=1)
        row = self._asked.iloc[0]
        return {
            p.name: next(c for c in p.choices if str(c) == str(row[p.name]))
            if p.kind == "choice"
            else p.read(row[p.name])
            for p in self._parameters
        }

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._optimizer.observe(pd.DataFrame(self._asked), np.array([[loss]]))

    def best(self) -> None:
        """Nothing: HEBO recommends the least value seen."""


def _entry(p: Parameter) -> dict[str, Any]:
    if p.kind == "choice":
        return {"name": p.name, "type": "cat", "categories": [str(c) for c in p.choices]}
    kind = {
        (False, False): "num",
        (False, True): "pow",
        (True, False): "int",
        (True, True): "pow_int",
    }
    entry = {"name": p.name, "type": kind[p.kind == "integer", p.log], "lb": p.lower, "ub": p.upper}
    return entry | ({"base": 10} if p.log else {})
