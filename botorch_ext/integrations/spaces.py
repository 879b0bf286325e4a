"""NamedSpace: the named parameters of another tool as a box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import Box
from botorch_ext.integrations.parameters import Choice, Ordered, Parameter

#: Weights of parameters, and what the weighted sum may be at most.
LinearConstraint = tuple[Mapping[str, float], float]


class NamedSpace:
    """Named parameters as a `Box`: one column for each that has more than one value, in the order
    they are given, in their own units but for steps and choices, which are counted.

    Points and values go into each other exactly: ``to_values(to_point(values)) == values``.

    Args:
        parameters: By name.
        constraints: Linear ones, ``({name: weight}, bound)``: the weighted sum of values is at most
            the bound. Their parameters are numbers.

    Raises:
        ValueError: No parameter that has two values, a constraint of an unknown name or of a
            parameter without a scale, or constraints that nothing satisfies.
    """

    def __init__(
        self, parameters: Mapping[str, Parameter], constraints: Sequence[LinearConstraint] = ()
    ) -> None:
        self.parameters = dict(parameters)
        #: The names of the columns.
        self.names = [name for name, each in self.parameters.items() if each.ends[0] < each.ends[1]]
        if not self.names:
            raise ValueError(
                f"parameters must have one with two values or more, got {list(self.parameters)}"
            )
        free = [self.parameters[name] for name in self.names]
        #: The points, ``d`` columns in the order of `names`.
        self.box = Box(
            [tuple(each.ends) for each in free],
            dtype=torch.float64,
            integer=[j for j, each in enumerate(free) if each.is_whole],
            log=[j for j, each in enumerate(free) if each.log],
            categories={
                j: [float(code) for code in range(len(each.values))]
                for j, each in enumerate(free)
                if isinstance(each, Choice) and not isinstance(each, Ordered)
            },
            constraints=self._rows(constraints),
        )

    def to_point(self, values: Mapping[str, Any]) -> Tensor:
        """The point of values, ``d``.

        Args:
            values: Of all parameters; those that have one value may be missing.

        Raises:
            ValueError: A parameter that is missing or unknown, a value that it cannot take, or a
                constraint that does not hold.
        """
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise ValueError(f"values must be of {list(self.parameters)}, got {unknown[0]!r}")
        numbers = {}
        for name, parameter in self.parameters.items():
            if name in values:
                try:
                    numbers[name] = parameter.encoded(values[name])
                except ValueError as error:
                    raise ValueError(f"{name} {error}") from None
            elif name in self.names:
                raise ValueError(f"{name} must be given, got values of {list(values)}")
        x = torch.tensor([numbers[name] for name in self.names], dtype=torch.float64)
        return self.box.require_contains(x, "values")[0]

    def to_values(self, x: Tensor | Sequence[float]) -> dict[str, Any]:
        """The values of a point, plain Python ones of all parameters.

        Args:
            x: ``d``, a point of the box.

        Raises:
            OutsideDomainError: Another one.
        """
        numbers = dict(zip(self.names, self.box.require_contains(x, "x")[0].tolist(), strict=True))
        return {
            name: parameter.decoded(numbers.get(name, parameter.ends[0]))
            for name, parameter in self.parameters.items()
        }

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Whether `to_point` takes the values."""
        try:
            self.to_point(values)
        except ValueError:
            return False
        return True

    def _rows(self, constraints: Sequence[LinearConstraint]) -> tuple[Tensor, Tensor] | None:
        """Constraints of values as those of points, ``m x d`` and ``m``."""
        rows, bounds = [], []
        for weights, given in constraints:
            row, bound = [0.0] * len(self.names), one_number(given, "bound of a constraint")
            for name, weight in weights.items():
                weight = one_number(weight, f"weight of {name}")
                if name not in self.parameters:
                    raise ValueError(
                        f"constraints must be of {list(self.parameters)}, got {name!r}"
                    )
                offset, slope = self._line(name)
                bound -= weight * offset
                if name in self.names:
                    row[self.names.index(name)] = weight * slope
            if any(row):
                rows.append(row)
                bounds.append(bound)
            elif not bound >= 0:
                raise ValueError(f"constraints must leave a point, got {dict(weights)} <= {given}")
        if not rows:
            return None
        return torch.tensor(rows, dtype=torch.float64), torch.tensor(bounds, dtype=torch.float64)

    def _line(self, name: str) -> tuple[float, float]:
        """(a, b) where the value of a parameter is a + b times its number."""
        parameter = self.parameters[name]
        if name in self.names:
            line = parameter.line
        else:
            value = parameter.decoded(parameter.ends[0])
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            line = (float(value), 0.0) if is_number and math.isfinite(value) else None
        if line is None:
            raise ValueError(
                f"{name} must be a range of numbers to be in a constraint, got {parameter!r}"
            )
        return line
