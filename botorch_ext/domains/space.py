"""NamedSpace: the named parameters of another tool as a box."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains.box import Box
from botorch_ext.domains.parameters import Choice, Fixed, Ordered, Parameter

#: The name of a parent, and the values of it with which a parameter counts.
Condition = tuple[str, Sequence[Any]]
#: Weights of parameters, and what the weighted sum may be at most.
LinearConstraint = tuple[Mapping[str, float], float]


class NamedSpace:
    """Named parameters as a `Box`: one column for each that has more than one value, in the order
    they are given, in their own units but for steps and choices, which are counted.

    Points and values go into each other exactly: ``to_values(to_point(values)) == values``.

    Args:
        parameters: By name.
        constraints: Linear ones, ``({name: weight}, bound)``: the weighted sum of values is at most
            the bound. Their parameters are numbers, and count always.
        conditions: From the name of a parameter to a parent, a choice or whole numbers, and the
            values of it with which the parameter counts, where the parent does so itself. The
            others have no value.

    Raises:
        ValueError: No parameter that has two values, a constraint of an unknown name or of a
            parameter without a scale, constraints that nothing satisfies, or an impossible
            condition.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter],
        constraints: Sequence[LinearConstraint] = (),
        conditions: Mapping[str, Condition] | None = None,
    ) -> None:
        self.parameters = dict(parameters)
        #: The names of the columns.
        self.names = [name for name, each in self.parameters.items() if each.ends[0] < each.ends[1]]
        if not self.names:
            raise ValueError(
                f"parameters must have one with two values or more, got {list(self.parameters)}"
            )
        free = [self.parameters[name] for name in self.names]
        self._paths = self._paths_of(conditions or {})
        columns = {name: j for j, name in enumerate(self.names)}
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
            conditions={
                columns[name]: (columns[path[0][0]], path[0][1])
                for name, path in self._paths.items()
                if name in columns
            },
        )

    def to_point(self, values: Mapping[str, Any]) -> Tensor:
        """The point of values, ``d``.

        Args:
            values: Of all parameters that count; those that have one value may be missing. What
                the others have is not looked at.

        Raises:
            ValueError: A parameter that is missing or unknown, a value that it cannot take, or a
                constraint that does not hold.
        """
        unknown = [name for name in values if name not in self.parameters]
        if unknown:
            raise ValueError(f"values must be of {list(self.parameters)}, got {unknown[0]!r}")
        numbers: dict[str, float] = {}
        for name in sorted(self.parameters, key=lambda name: len(self._paths.get(name, ()))):
            parameter = self.parameters[name]
            if not self._counts(name, numbers):
                numbers[name] = math.nan
            elif name in values:
                try:
                    numbers[name] = parameter.encoded(values[name])
                except ValueError as error:
                    raise ValueError(f"{name} {error}") from None
            elif name in self.names:
                raise ValueError(f"{name} must be given, got values of {list(values)}")
            else:
                numbers[name] = parameter.ends[0]
        x = torch.tensor([numbers[name] for name in self.names], dtype=torch.float64)
        return self.box.require_contains(x, "values")[0]

    def to_values(self, x: Tensor | Sequence[float]) -> dict[str, Any]:
        """The values of a point, plain Python ones of all parameters that count.

        Args:
            x: ``d``, a point of the box.

        Raises:
            OutsideDomainError: Another one.
        """
        numbers = {name: parameter.ends[0] for name, parameter in self.parameters.items()}
        point = self.box.require_contains(x, "x")[0].tolist()
        numbers |= zip(self.names, point, strict=True)
        return {
            name: parameter.decoded(numbers[name])
            for name, parameter in self.parameters.items()
            if self._counts(name, numbers)
        }

    def contains(self, values: Mapping[str, Any]) -> bool:
        """Whether `to_point` takes the values."""
        try:
            self.to_point(values)
        except ValueError:
            return False
        return True

    def _counts(self, name: str, numbers: Mapping[str, float]) -> bool:
        """Whether a parameter counts, given the numbers of those it depends on."""
        return all(numbers[parent] in codes for parent, codes in self._paths.get(name, ()))

    def _paths_of(
        self, conditions: Mapping[str, Condition]
    ) -> dict[str, list[tuple[str, list[float]]]]:
        """The conditions that each conditional parameter depends on: the one on its parent, that on
        the parent of its parent, and so on. Parents with one value are left out, since they have it
        wherever they count."""
        coded = {}
        for name, pair in conditions.items():
            if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[1], str):
                raise ValueError(
                    f"condition of {name} must be the name of a parent and its values, as in "
                    f"('model', ['forest']), got {pair!r}"
                )
            for each in (name, pair[0]):
                if each not in self.parameters:
                    raise ValueError(f"conditions must be of {list(self.parameters)}, got {each!r}")
            parent = self.parameters[pair[0]]
            if not (parent.is_whole or isinstance(parent, Choice | Fixed)):
                raise ValueError(
                    f"condition of {name}: {pair[0]} must be a choice or have whole numbers or "
                    f"steps, got {parent!r}"
                )
            try:
                coded[name] = pair[0], [parent.encoded(value) for value in pair[1]]
            except ValueError as error:
                raise ValueError(f"condition of {name}: {pair[0]} {error}") from None
        paths = {}
        for name in coded:
            path, at = [], name
            while at in coded:
                path.append(coded[at])
                at = coded[at][0]
                if len(path) > len(coded):
                    raise ValueError(f"conditions must be trees, got {name!r}, which needs itself")
            paths[name] = [pair for pair in path if pair[0] in self.names]
        return {name: path for name, path in paths.items() if path}

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
                if name in self._paths:
                    raise ValueError(f"{name} must always count to be in a constraint")
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
