"""This library's default, on a box with whole numbers, logarithms, codes and conditions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.real.spaces import Parameter, Params


class IntegratedEI:
    """`integrated_ei` on a box.

    Args:
        parameters: The inputs of the task.
        seed: Seeds everything that is random.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        self._parameters = parameters
        columns = list(enumerate(parameters))
        place = {p.name: i for i, p in columns}
        box = bx.Box(
            lower=[0.0 if p.kind == "choice" else p.lower for p in parameters],
            upper=[len(p.choices) - 1.0 if p.kind == "choice" else p.upper for p in parameters],
            integer=[i for i, p in columns if p.kind == "integer"],
            log=[i for i, p in columns if p.log],
            categories={
                i: [float(code) for code in range(len(p.choices))]
                for i, p in columns
                if p.kind == "choice"
            },
            conditions={
                i: (
                    place[p.only_if[0]],
                    [parameters[place[p.only_if[0]]].scaled(value) for value in p.only_if[1]],
                )
                for i, p in columns
                if p.only_if is not None
            },
        )
        self._strategy = bx.algorithms.integrated_ei(box, seed=seed)

    def ask(self) -> Params:
        """The next setting."""
        return self._params(self._strategy.ask().x)

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._strategy.tell(self._strategy.pending[0], -loss)

    def best(self) -> Params:
        """The evaluated setting with the largest posterior mean."""
        return self._params(self._strategy.best()[0])

    def _params(self, x: Tensor) -> Params:
        return {
            p.name: p.choices[round(number)]
            if p.kind == "choice"
            else (round(number) if p.kind == "integer" else number)
            for p, number in zip(self._parameters, x.to(torch.float64).tolist(), strict=True)
        }
