"""Search spaces of Ax as spaces of this library: chosen parameters, contexts, and the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ax.core.parameter import (
    EPS,
    ChoiceParameter,
    DerivedParameter,
    FixedParameter,
    ParameterType,
    RangeParameter,
)
from ax.core.parameter import Parameter as AxParameter
from ax.core.search_space import SearchSpace
from ax.core.types import TParameterization
from ax.exceptions.core import UnsupportedError, UserInputError

from botorch_ext.domains.space import Space
from botorch_ext.domains.written_constraints import LinearConstraint
from botorch_ext.parameters import ALL_DIGITS, Choice, Fixed, Integer, Ordered, Parameter, Real


class AxSpace:
    """A search space of Ax, separated into chosen parameters and contexts.

    Args:
        search_space: The search space of an experiment.
        contexts: The names of parameters that are observed and not chosen.

    Raises:
        UserInputError: If a context is not a parameter, or has a single value.
        UnsupportedError: If strategies cannot have a kind of parameter or of constraint.
    """

    def __init__(self, search_space: SearchSpace, contexts: Sequence[str] = ()) -> None:
        self._parameters = search_space.parameters
        constraints, constrained = _constraints_of(search_space)
        conditions = {
            child: (name, [value])
            for name, each in self._parameters.items()
            if each.is_hierarchical
            for value, children in each.dependents.items()
            for child in children
        }
        made = {
            name: _parameter(each, name in constrained)
            for name, each in self._parameters.items()
            if not isinstance(each, DerivedParameter)
        }
        unknown = [name for name in contexts if name not in made]
        if unknown:
            raise UserInputError(
                f"contexts must be parameters of the search space that are not computed, "
                f"{list(made)}, got {unknown[0]!r}"
            )
        for name in contexts:
            if name in constrained:
                raise UnsupportedError(f"contexts must be in no constraint, got {name!r}")
            if name in conditions or self._parameters[name].is_hierarchical:
                raise UnsupportedError(
                    f"contexts must neither depend on others nor have dependents, got {name!r}"
                )
        try:
            chosen = {name: each for name, each in made.items() if name not in contexts}
            #: The space of the parameters that are chosen, including fixed ones.
            self.chosen = Space(chosen, constraints=constraints, conditions=conditions)
            seen = {name: made[name] for name in contexts}
            #: The space of the contexts; None if there are none.
            self.contexts = Space(seen) if seen else None
        except ValueError as error:
            raise UnsupportedError(f"strategies cannot search this space: {error}") from error

    @staticmethod
    def described(search_space: SearchSpace) -> str:
        """A text that identifies a search space."""
        flags = [
            (name, each.is_disabled, each.default_value)
            for name, each in search_space.parameters.items()
        ]
        return f"{search_space} {flags}"

    def point_of(self, parameters: TParameterization) -> dict[str, Any]:
        """The chosen values of an arm.

        Returns:
            The values by name, with the digits that Ax says they have; values that are outside by
            no more than Ax's tolerance are moved inside.
        """
        known = self.chosen.parameters.keys() & parameters.keys()
        return {name: _inside(self._parameters[name], parameters[name]) for name in known}

    def context_of(self, parameters: Mapping[str, Any]) -> list[float] | None:
        """The context of an arm or of fixed features.

        Returns:
            The context, ``d_z`` numbers; None if there are no contexts.

        Raises:
            UserInputError: If a context is missing, or cannot take its value.
        """
        if self.contexts is None:
            return None
        missing = [name for name in self.contexts.names if name not in parameters]
        if missing:
            raise UserInputError(
                f"fixed_parameters (fixed_features) must have the contexts "
                f"{list(self.contexts.names)}, got no {missing[0]!r}"
            )
        given = {name: parameters[name] for name in self.contexts.parameters if name in parameters}
        try:
            return self.contexts.point(given).tolist()
        except ValueError as error:
            raise UserInputError(f"contexts must lie in the search space: {error}") from error

    def require_contexts_alone(self, fixed: Mapping[str, Any]) -> None:
        """Check that only contexts are fixed.

        Args:
            fixed: The fixed parameters by name; one with a single value may have that value.

        Raises:
            UnsupportedError: If another parameter is fixed.
        """
        for name, value in fixed.items():
            if self.contexts is not None and name in self.contexts.parameters:
                continue
            known = self.chosen.parameters.get(name)
            if isinstance(known, Fixed) and known.value == value:
                continue
            raise UnsupportedError(
                f"only contexts can be fixed, got {name!r}: name it in contexts= where the "
                "strategy is made"
            )

    def arm_of(
        self, values: Mapping[str, Any], context: Sequence[float] | None
    ) -> TParameterization:
        """The parameters of an arm.

        Args:
            values: The chosen values by name.
            context: The context, ``d_z`` numbers; None leaves contexts out.

        Returns:
            All parameters of the arm by name, as Ax writes them.
        """
        given = dict(values)
        if self.contexts is not None and context is not None:
            given |= self.contexts.params(context)
        parameters = self._parameters
        arm = {name: _as_ax(parameters[name], value) for name, value in given.items()}
        for name, each in parameters.items():
            if (
                isinstance(each, DerivedParameter)
                and each.parameter_names_to_weights.keys() <= arm.keys()
            ):
                arm[name] = each.compute(arm)
        return {name: arm[name] for name in parameters if name in arm}


def _parameter(given: AxParameter, is_constrained: bool) -> Parameter:
    if given.is_disabled:
        return Fixed(given.default_value)
    if given.is_fidelity:
        raise UnsupportedError(f"parameter {given.name!r} must not be a fidelity")
    if isinstance(given, FixedParameter):
        return Fixed(given.value)
    if isinstance(given, ChoiceParameter):
        return _choice(given, is_constrained)
    if not isinstance(given, RangeParameter) or given.logit_scale:
        kind = "logit_scale" if isinstance(given, RangeParameter) else type(given).__name__
        raise UnsupportedError(f"parameter {given.name!r} must not be of the kind {kind}")
    if given.parameter_type is ParameterType.INT:
        return Integer(int(given.lower), int(given.upper), log=given.log_scale)
    low, high = float(given.lower), float(given.upper)
    if given.digits is None or given.log_scale:  # Ax rounds the values of log scales
        return Real(low, high, log=given.log_scale, significant=ALL_DIGITS)
    return Real(low, high, step=10.0**-given.digits)


def _choice(given: ChoiceParameter, is_constrained: bool) -> Parameter:
    values: Any = tuple(given.values)
    if not given.is_ordered or (len(values) == 2 and not given.is_numeric):
        return Choice(values)
    if is_constrained and given.is_numeric:
        low, high = float(values[0]), float(values[-1])
        evenly = Real(low, high, step=(high - low) / (len(values) - 1))
        try:
            for value in values:
                evenly.encoded(value)
        except ValueError as error:
            raise UnsupportedError(
                f"parameter {given.name!r} must have values at even steps to be in a constraint, "
                f"got {list(values)}"
            ) from error
        return evenly
    return Ordered(values)


def _as_ax(parameter: AxParameter, value: Any) -> Any:
    """A value as Ax writes it: with the type, the digits and the choices of its parameter."""
    if isinstance(parameter, ChoiceParameter) and parameter.is_numeric:
        values: Any = parameter.values
        return min(values, key=lambda each: abs(each - value))
    return _in_digits(parameter, value)


def _in_digits(parameter: AxParameter, value: Any) -> Any:
    if isinstance(parameter, RangeParameter) and parameter.digits is not None:
        return parameter.cast(value)
    return value


def _inside(parameter: AxParameter, value: Any) -> Any:
    value = _in_digits(parameter, value)
    if not isinstance(parameter, RangeParameter) or not isinstance(value, float):
        return value
    inside = min(max(value, float(parameter.lower)), float(parameter.upper))
    return inside if abs(inside - value) <= EPS else value


def _constraints_of(search_space: SearchSpace) -> tuple[list[LinearConstraint], set[str]]:
    """The constraints, and the names of the parameters that they use."""
    constraints: list[LinearConstraint] = []
    names: set[str] = set()
    for each in search_space.parameter_constraints:
        if each.is_equality:
            raise UnsupportedError(f"constraints must be inequalities, got {each}")
        weights = {name: float(weight) for name, weight in each.constraint_dict.items()}
        constraints.append((weights, float(each.bound)))
        names |= weights.keys()
    return constraints, names
