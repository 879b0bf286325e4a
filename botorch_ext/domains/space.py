"""Space: a box whose columns are named parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains import host
from botorch_ext.domains.box import Box, require_known
from botorch_ext.domains.function_constraints import FunctionConstraints, ParamsFunction
from botorch_ext.domains.points import Params
from botorch_ext.domains.written_constraints import (
    Comparison,
    LinearConstraint,
    is_matrix,
    read,
    written,
)
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.parameters import Choice, Ordered, Parameter, Real

#: The name of a parent parameter, and the values of it for which a parameter counts.
Condition = tuple[str, Sequence[Any]]
_KINDS = "a bx.Real, bx.Integer or bx.Choice, as in temperature=bx.Real(20, 80)"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Space(Box):
    """A `Box` of named parameters: every method that takes a `Box` takes a `Space`.

    The space has one column for each parameter that has more than one value, in the order in which
    they are given. Numbers are in their own units; a choice is represented by the position of its
    value. `point` and `params` convert between values by name and points exactly:
    ``space.params(space.point(params)) == params``.

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
        parameters: A dict of parameters by name, for names that are not Python identifiers or that
            are names of the arguments here.
        constraints: Which values are allowed together; one of these kinds, or a list of the first
            three. Texts, as in ``"0.5 * equivalents + temperature <= 60"`` or
            ``"temperature * time <= 3000"``: expressions of numeric parameters without a condition,
            with + - * / ** and exp, log, sqrt, abs, min and max, compared by <= or >=, with
            backticks around names that have blanks. Functions of the dict of values, as objectives
            get it, that return True or False, or a number that is at least 0 where the values are
            allowed. Pairs ``({name: weight}, bound)``: the weighted sum of the values is at most
            the bound. Matrices ``(A, b)`` as for `Box`.
        conditions: A dict from the name of a parameter to its parent and the values of the parent
            for which the parameter counts, as in ``{"depth": ("model", ["forest"])}``. The parent
            is a choice or has whole numbers or steps; where the parent does not count, the
            parameter does not count either. Parameters that do not count have no value.
        dtype: float64 unless given.
        device: The device that everything on this domain runs on.
        **named: The parameters by name: `Real`, `Integer` or `Choice`.

    Raises:
        ValueError: If no parameter has two values, something is not a parameter, a constraint uses
            an unknown name or a parameter that is not numeric, nothing is found that satisfies
            the constraints, a function fails or returns something else, or a condition is
            impossible.
    """

    #: All parameters by name, in order, including those with one value.
    parameters: Mapping[str, Parameter]
    #: The names of all parameters; the same parameters in another order make another space.
    order: tuple[str, ...]
    #: The conditions by name: the parent and a list of its values.
    named_conditions: Mapping[str, Condition]
    _names: tuple[str, ...]
    _paths: dict[str, list[tuple[str, list[float]]]]
    _given_constraints: Any
    _texts: list[str]
    _located: dict[int, Tensor]
    _rounded: dict[int, Real]

    def __init__(
        self,
        parameters: Mapping[str, Parameter] | None = None,
        *,
        constraints: Sequence[str | LinearConstraint | ParamsFunction]
        | tuple[Tensor | Sequence[Sequence[float]], Tensor | Sequence[float]]
        | ParamsFunction
        | str
        | None = (),
        conditions: Mapping[str, Condition] | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        **named: Parameter,
    ) -> None:
        self._set("parameters", checked_parameters(parameters, named))
        self._set("order", tuple(self.parameters))
        ends = {name: each.ends for name, each in self.parameters.items()}
        names = [name for name, (low, high) in ends.items() if low < high]
        if not names:
            raise ValueError(
                "parameters must include one that has two values or more, got "
                f"{list(self.parameters)}"
            )
        self._set("_names", tuple(names))
        given = dict(conditions or {})
        self._set("_paths", self._paths_of(given))
        self._set("named_conditions", {k: (parent, list(v)) for k, (parent, v) in given.items()})
        free = [self.parameters[name] for name in names]
        columns = {name: j for j, name in enumerate(names)}
        limits = self._read_constraints(constraints)
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
            constraints=limits,
            conditions={
                columns[name]: (columns[path[0][0]], path[0][1])
                for name, path in self._paths.items()
                if name in columns
            },
        )
        if self._points is not None and isinstance(self.constraints, FunctionConstraints):
            _ = self._points.found  # an error if there are none
        described = {j: each for j, each in enumerate(free) if isinstance(each, Choice)}
        self._set(
            "_located",
            {j: _located(e).to(self.device) for j, e in described.items() if e.descriptors},
        )
        rounded = {j: each for j, each in enumerate(free) if isinstance(each, Real)}
        self._set("_rounded", {j: each for j, each in rounded.items() if each.asked_digits})

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ``d`` columns: the parameters that have more than one value."""
        return self._names

    @property
    def located_codes(self) -> Mapping[int, Tensor]:
        """From the column of each choice with descriptors to the positions of its values in
        descriptor space, ``k x p``."""
        return self._located

    @property
    def units(self) -> dict[str, str | None]:
        """The unit of each parameter by name; None for a parameter without a unit."""
        return {name: each.unit for name, each in self.parameters.items()}

    def without_names(self) -> Box:
        """The same points as a `Box` without names.

        Returns:
            A `Box` with the same columns.
        """
        return super().to()

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> Space:
        """The same space in another dtype or on another device.

        Args:
            dtype: The dtype of the result; None keeps it.
            device: The device of the result; None keeps it.

        Returns:
            A new `Space`.
        """
        kind = {
            "dtype": self.dtype if dtype is None else dtype,
            "device": self.device if device is None else device,
        }
        return Space(**self.to_arguments() | kind)

    def widened(self, parameters: Mapping[str, Parameter]) -> Space:
        """The space with wider parameters, in which all points of this one are the same points.

        Constraints and conditions stay as they are.

        Args:
            parameters: The parameters that change, by name. A range may have a lower ``low`` or a
                higher ``high``, on the same steps; a choice may have further values at the end.

        Returns:
            A new `Space`.

        Raises:
            ValueError: If a name is unknown, if a parameter changes in another way, if one with a
                single value gets a second one, or if nothing is wider.
        """
        require_known(parameters, self.parameters, "parameters")
        for name, new in checked_parameters(parameters, {}).items():
            old = self.parameters[name]
            if name not in self.names and new.ends[0] < new.ends[1]:
                raise ValueError(
                    f"{name} must stay {old!r}, whose single value has no column, got {new!r}"
                )
            if not old.may_become(new):
                raise ValueError(f"{name} must be {old!r} with {old.growth}, got {new!r}")
        if all(repr(each) == repr(self.parameters[name]) for name, each in parameters.items()):
            raise ValueError(f"parameters must have one that is wider, got {dict(parameters)}")
        wider: dict[str, Any] = {"parameters": {**self.parameters, **parameters}}
        return Space(**self.to_arguments() | wider, device=self.device)

    def to_arguments(self) -> dict[str, Any]:
        """The arguments that make the same space on any device, by name."""
        return {
            "parameters": self.parameters,
            "constraints": self._given_constraints,
            "conditions": self.named_conditions,
            "dtype": self.dtype,
        }

    def point(self, params: Params, name: str = "params") -> Tensor:
        """The point that has these values; the inverse of `params`.

        Args:
            params: Values by name, for all parameters that count; parameters with only one value
                may be missing. Values of parameters that do not count are ignored.
            name: The name of the argument, for messages.

        Returns:
            The point, ``d``.

        Raises:
            ValueError: If a name is missing or unknown.
            OutsideDomainError: If a parameter cannot take its value, or a constraint does not hold.
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
                raise ValueError(f"{name} must have {each}, got values for {list(params)} only")
            else:
                numbers[each] = parameter.ends[0]
        x = self.bounds.new_tensor([numbers[each] for each in self._names])
        return self.require_contains(x, name)[0]

    @property
    def is_plain(self) -> bool:
        return super().is_plain and not self._rounded

    def settable(self, X: Tensor) -> Tensor:
        """Round points to the digits that are asked, one column after the other.

        A rounded number outside of the space is replaced by the rounded number on the other side.
        If that lies outside too, the number stays as it is.

        Args:
            X: Points of the space, ``... x d``.

        Returns:
            Points of the space, ``... x d``.
        """
        if not self._rounded:
            return X
        rows = X.reshape(-1, self.dim)
        active = self.active(rows)
        for j, parameter in self._rounded.items():
            pairs = rows.new_tensor([parameter.settable(x) for x in rows[:, j].tolist()])
            other, nearer = rows.clone(), rows.clone()
            nearer[:, j], other[:, j] = pairs.view(-1, 2).unbind(-1)
            for moved in (other, nearer):
                fits = active[:, j] & self._hold(moved)
                rows = torch.where(fits[:, None], moved, rows)
        return rows.view_as(X)

    def params_of(self, x: Tensor) -> dict[str, Any]:
        """The values by name of a tensor that is known to be a point of the space.

        Args:
            x: A point, ``d``; it is not checked.

        Returns:
            The dict that `params` returns.
        """
        numbers = {name: parameter.ends[0] for name, parameter in self.parameters.items()}
        # The shortest decimals: 0.0149, which a float32 holds as 0.014899999834597111.
        decimals = x.tolist() if x.dtype == torch.float64 else map(float, map(str, x.cpu().numpy()))
        numbers |= zip(self._names, decimals, strict=True)
        return {
            name: parameter.decoded(numbers[name])
            for name, parameter in self.parameters.items()
            if not self._paths or self._counts(name, numbers)
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
        limits: Any = self._limits
        if isinstance(limits, FunctionConstraints):
            text = limits.broken_by(x)
        else:
            text = self._texts[int(limits.excess(x[None])[0].argmax())]
        return f"{text} must hold, got {self.params_of(x)} in {name}"

    def _counts(self, name: str, numbers: Mapping[str, float]) -> bool:
        """Whether a parameter counts, given the numbers of the parameters it depends on."""
        return all(numbers[parent] in codes for parent, codes in self._paths.get(name, ()))

    def _paths_of(
        self, conditions: Mapping[str, Condition]
    ) -> dict[str, list[tuple[str, list[float]]]]:
        """The conditions that must hold for each conditional parameter: the one on its parent, the
        one on the parent of its parent, and so on. Parents with one value are left out, since they
        have that value wherever they count."""
        coded = {}
        for name, pair in conditions.items():
            if not isinstance(pair, tuple | list) or len(pair) != 2 or isinstance(pair[1], str):
                raise ValueError(
                    f"condition of {name} must be the name of a parent and a list of its values, "
                    f"as in ('model', ['forest']), got {pair!r}"
                )
            for each in (name, pair[0]):
                if each not in self.parameters:
                    raise ValueError(
                        f"conditions must only have names of {list(self.parameters)}, got {each!r}"
                    )
            parent = self.parameters[pair[0]]
            has_steps = parent.is_whole or parent.spacing is not None
            if not (has_steps or isinstance(parent, Choice)):
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
                    raise ValueError(
                        f"conditions must be trees, got {name!r}, which depends on itself"
                    )
            paths[name] = [pair for pair in path if pair[0] in self._names]
        return {name: path for name, path in paths.items() if path}

    def _read_constraints(self, given: Any) -> Any:
        """The constraints as `Box` takes them: a matrix, ``m x d``, and bounds, ``m``; with
        functions, all of them; None where there are none."""
        self._set("_given_constraints", given)
        self._set("_texts", [])
        if given is None:
            return None
        if is_matrix(given):
            A, b = (
                torch.as_tensor(part, dtype=torch.float64, device="cpu").tolist() for part in given
            )
            for row, bound in zip(A, b, strict=False):
                weights = {n: w for n, w in zip(self._names, row, strict=False) if w}
                self._texts.append(written(weights, bound))
            return given
        rows, bounds, linear, comparisons, called, lines = [], [], [], [], [], {}
        for text, found in read(given, self.parameters):
            if callable(found):
                called.append((text, found))
                continue
            if isinstance(found, Comparison):
                comparisons.append(found)
                lines |= {name: self._line(name) for name in found.names}
                continue
            weights, limit = found
            row, bound = [0.0] * len(self._names), one_number(limit, "bound of a constraint")
            for name, weight in weights.items():
                weight = one_number(weight, f"weight of {name}")
                column, offset, slope = lines[name] = self._line(name)
                bound -= weight * offset
                row[column] += weight * slope
            if any(row):
                rows.append(row)
                bounds.append(bound)
                self._texts.append(text)
                linear.append(Comparison.of_weights(text, weights, limit))
            elif not bound >= 0:
                raise ValueError(
                    f"constraints must leave a feasible point, got {text}, which never holds"
                )
        if not comparisons and not called:
            return (rows, bounds) if rows else None
        functions = FunctionConstraints([*linear, *comparisons], lines, called, self.params_of)
        self._set("_texts", functions.names)
        return functions

    def _line(self, name: str) -> tuple[int, float, float]:
        """The column of a parameter in a constraint, and (a, b) where its value is a + b times its
        number; column 0 and b = 0 for a parameter with one value."""
        if name not in self.parameters:
            raise ValueError(
                f"constraints must only have names of {list(self.parameters)}, got {name!r}"
            )
        if name in self._paths:
            raise ValueError(
                f"{name} must have no condition to be in a constraint, got a condition"
            )
        parameter, column = self.parameters[name], 0
        if name in self._names:
            line, column = parameter.line, self._names.index(name)
        else:
            value = parameter.decoded(parameter.ends[0])
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            line = (float(value), 0.0) if is_number and math.isfinite(value) else None
        if line is None:
            raise ValueError(
                f"{name} must be a range of numbers to be in a constraint, got {parameter!r}"
            )
        return column, *line


def _located(choice: Choice) -> Tensor:
    """The positions of the values of a choice in descriptor space, ``k x p``, scaled so that the
    farthest two are 1 apart."""
    D = host.tensor(choice.telling, dtype=torch.float64)
    D = (D - D.mean(dim=0)) / D.std(dim=0, correction=0)
    return D / torch.cdist(D, D).max()


def checked_parameters(
    parameters: Mapping[str, Parameter] | None, named: Mapping[str, Parameter]
) -> dict[str, Parameter]:
    """All parameters by name; or a ValueError that names the first that is not a parameter."""
    if not isinstance(parameters, Mapping | None):
        raise ValueError(f"parameters must be a dict of {_KINDS}, got {short(parameters)}")
    given = {**(parameters or {}), **named}
    if both := {*(parameters or {})} & {*named}:
        raise ValueError(f"parameters must have each name only once, got {min(both)!r} twice")
    for name, each in given.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"names of parameters must be non-empty strings, got {name!r}")
        if not hasattr(each, "encoded"):
            raise ValueError(f"{name} must be {_KINDS}, got {short(each)}")
    return given
