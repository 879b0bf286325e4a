"""Space: a box whose columns are named parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains.box import Box, require_known
from botorch_ext.domains.choices import Choice, Fixed, Ordered
from botorch_ext.domains.parameters import Parameter
from botorch_ext.domains.points import Params
from botorch_ext.domains.written_constraints import LinearConstraint, is_matrix, read, written
from botorch_ext.exceptions import OutsideDomainError

#: The name of a parent, and the values of it with which a parameter counts.
Condition = tuple[str, Sequence[Any]]
_KINDS = "a bx.Real, bx.Integer or bx.Choice, as in temperature=bx.Real(20, 80)"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Space(Box):
    """A `Box` of named parameters: every method that takes a `Box` takes it.

    It has one column for each parameter that has more than one value, in the order they are given.
    Numbers are in their own units; a choice is the place of its value. `point` and `params` go from
    values by name to a point and back exactly: ``space.params(space.point(params)) == params``.

    Example:
        >>> import botorch_ext as bx
        >>> space = bx.Space(
        ...     temperature=bx.Real(20, 80, unit="°C", digits=1),
        ...     solvent=bx.Choice(["water", "ethanol", "dmso"]),
        ... )
        >>> space.point({"temperature": 61.5, "solvent": "dmso"})
        tensor([61.5000,  2.0000], dtype=torch.float64)
        >>> space.params([61.5, 2])
        {'temperature': 61.5, 'solvent': 'dmso'}

    Args:
        parameters: By name, for names that are no identifiers of Python, or those of the arguments
            here.
        constraints: Linear ones: texts with names, as in ``"0.5 * equivalents + temperature <=
            60"``, with backticks around names that have blanks; pairs ``({name: weight}, bound)``,
            where the weighted sum of values is at most the bound; or ``(A, b)`` as for `Box`.
            Parameters in them are numbers, and count always.
        conditions: From the name of a parameter to a parent, a choice or one with whole numbers or
            steps, and the values of it with which the parameter counts, where the parent does so
            itself. Parameters that do not count have no value.
        dtype: float64 unless given.
        device: The device everything that uses this domain runs on.
        **named: The parameters, by name: `Real`, `Integer` or `Choice`.

    Raises:
        ValueError: No parameter that has two values, something that is no parameter, a constraint
            of an unknown name or of a parameter without a scale, constraints that nothing
            satisfies, or an impossible condition.
    """

    #: By name, in order, those with one value as well.
    parameters: Mapping[str, Parameter]
    #: The names of all parameters: in another order they are another space.
    order: tuple[str, ...]
    #: The conditions as they were given, by name.
    named_conditions: Mapping[str, Condition]
    _names: tuple[str, ...]
    _paths: dict[str, list[tuple[str, list[float]]]]
    _given_constraints: Any
    _texts: list[str]
    _located: dict[int, Tensor]

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | None = None,
        *,
        constraints: Sequence[str | LinearConstraint]
        | tuple[Tensor | Sequence[Sequence[float]], Tensor | Sequence[float]]
        | str
        | None = (),
        conditions: Mapping[str, Condition] | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        **named: Parameter,
    ) -> None:
        self._set("parameters", _checked(parameters, named))
        self._set("order", tuple(self.parameters))
        self._set("named_conditions", dict(conditions or {}))
        ends = {name: each.ends for name, each in self.parameters.items()}
        names = [name for name, (low, high) in ends.items() if low < high]
        if not names:
            raise ValueError(
                f"parameters must have one with two values or more, got {list(self.parameters)}"
            )
        self._set("_names", tuple(names))
        self._set("_paths", self._paths_of(self.named_conditions))
        free = [self.parameters[name] for name in names]
        columns = {name: j for j, name in enumerate(names)}
        rows = self._rows(constraints)
        super().__init__(
            [ends[name] for name in names],
            dtype=dtype,
            device=device,
            integer=[j for j, each in enumerate(free) if each.is_whole],
            steps={j: each.spacing for j, each in enumerate(free) if each.spacing is not None},
            log=[j for j, each in enumerate(free) if each.log],
            categories={
                j: [float(code) for code in range(len(each.values))]
                for j, each in enumerate(free)
                if isinstance(each, Choice) and not isinstance(each, Ordered)
            },
            constraints=rows,
            conditions={
                columns[name]: (columns[path[0][0]], path[0][1])
                for name, path in self._paths.items()
                if name in columns
            },
        )
        located = {j: each.located for j, each in enumerate(free) if isinstance(each, Choice)}
        self._set(
            "_located",
            {j: each.to(self.device) for j, each in located.items() if each is not None},
        )

    @property
    def names(self) -> tuple[str, ...]:
        """``d``: the names of the columns, those of parameters that have more than one value."""
        return self._names

    @property
    def located_codes(self) -> Mapping[int, Tensor]:
        """As for `Box`."""
        return self._located

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of each parameter by name, None where it has none."""
        return {name: each.unit for name, each in self.parameters.items()}

    def without_names(self) -> Box:
        """The same points as a `Box` without names."""
        return super().to()

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Space:
        """The same space in another dtype or on another device."""
        return Space(
            self.parameters,
            constraints=self._given_constraints,
            conditions=self.named_conditions,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
        )

    def point(self, params: Params, name: str = "params") -> Tensor:
        """The point that has these values, ``d``; the inverse of `params`.

        Args:
            params: Values by name, of all parameters that count; those that have one value may be
                missing. What the others have is not looked at.
            name: Of the argument, for messages.

        Raises:
            ValueError: A name that is missing or unknown.
            OutsideDomainError: A value that a parameter cannot take, or a constraint that does not
                hold.
        """
        require_known(params, self.parameters, name)
        numbers: dict[str, float] = {}
        for each in sorted(self.parameters, key=lambda each: len(self._paths.get(each, ()))):
            parameter = self.parameters[each]
            if not self._counts(each, numbers):
                numbers[each] = math.nan
            elif each in params:
                try:
                    numbers[each] = parameter.encoded(params[each])
                except ValueError as error:
                    raise OutsideDomainError(f"{each} {error} in {name}") from None
            elif each in self._names:
                raise ValueError(f"{name} must have {each}, got values of {list(params)}")
            else:
                numbers[each] = parameter.ends[0]
        x = self.bounds.new_tensor([numbers[each] for each in self._names])
        return self.require_contains(x, name)[0]

    def params_of(self, x: Tensor) -> dict[str, Any]:
        """As `params`, of a tensor that is known to be a point of the space."""
        numbers = {name: parameter.ends[0] for name, parameter in self.parameters.items()}
        numbers |= zip(self._names, x.tolist(), strict=True)
        return {
            name: parameter.decoded(numbers[name])
            for name, parameter in self.parameters.items()
            if self._counts(name, numbers)
        }

    def __repr__(self) -> str:
        parts = [f"{name}={each!r}" for name, each in self.parameters.items()]
        if self._texts:
            parts.append(f"constraints={self._texts}")
        if self.named_conditions:
            parts.append(f"conditions={self.named_conditions}")
        return f"Space({', '.join(parts)})"

    def _what_is_wrong(self, x: Tensor, name: str) -> str:
        within = (x >= self.lower) & (x <= self.upper)
        admitted = within if self._scales is None else within & self._scales.admits(x[None])[0]
        for j, is_admitted in enumerate(admitted.tolist()):
            if not is_admitted:
                parameter, number = self.parameters[self._names[j]], float(x[j])
                got = f"the place {number:g}" if isinstance(parameter, Choice) else number
                return f"{self._names[j]} {parameter.rule}, got {got} in {name}"
        linear: Any = self._linear
        row = int(linear.excess(x[None])[0].argmax())
        return f"{self._texts[row]} must hold, got {self.params_of(x)} in {name}"

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
            has_steps = parent.is_whole or parent.spacing is not None
            if not (has_steps or isinstance(parent, Choice | Fixed)):
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
            paths[name] = [pair for pair in path if pair[0] in self._names]
        return {name: path for name, path in paths.items() if path}

    def _rows(self, given: Any) -> tuple[Any, Any] | None:
        """Constraints as those of points, ``m x d`` and ``m``; None where there are none."""
        self._set("_given_constraints", given)
        self._set("_texts", [])
        if given is None:
            return None
        if is_matrix(given):
            for a, b in zip(*(torch.as_tensor(part).tolist() for part in given), strict=False):
                weights = {n: w for n, w in zip(self._names, a, strict=False) if w}
                self._texts.append(written(weights, b))
            return given
        rows, bounds = [], []
        for text, weights, limit in read(given, self.parameters):
            row, bound = [0.0] * len(self._names), one_number(limit, "bound of a constraint")
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
                if name in self._names:
                    row[self._names.index(name)] = weight * slope
            if any(row):
                rows.append(row)
                bounds.append(bound)
                self._texts.append(text)
            elif not bound >= 0:
                raise ValueError(f"constraints must leave a point, got {text}")
        return (rows, bounds) if rows else None

    def _line(self, name: str) -> tuple[float, float]:
        """(a, b) where the value of a parameter is a + b times its number."""
        parameter = self.parameters[name]
        if name in self._names:
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


def _checked(
    parameters: Mapping[str, Parameter] | None, named: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """All parameters by name; or a ValueError that names the one that is none."""
    if not isinstance(parameters, Mapping | None):
        raise ValueError(f"parameters must be a dict of {_KINDS}, got {short(parameters)}")
    given = {**(parameters or {}), **named}
    if both := {*(parameters or {})} & {*named}:
        raise ValueError(f"parameters must have a name once, got {min(both)!r} twice")
    for name, each in given.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"names of parameters must be texts that are not empty, got {name!r}")
        if not hasattr(each, "encoded"):
            raise ValueError(f"{name} must be {_KINDS}, got {short(each)}")
    return given
