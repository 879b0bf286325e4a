"""Spaces of Optuna as named parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_ext.domains.choices import Choice
from botorch_ext.domains.parameters import Integer, Parameter, Real
from botorch_ext.domains.space import Condition, Space
from botorch_ext.integrations.counted import counted
from botorch_ext.integrations.recipes import UnsearchableSpace


def free(search_space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Those that have more than one value."""
    return {name: each for name, each in search_space.items() if not each.single()}


def space_of(
    search_space: Mapping[str, BaseDistribution], conditions: Mapping[str, Condition] | None = None
) -> Space:
    """The space of distributions.

    Args:
        search_space: By name.
        conditions: As those of `Space`.

    Raises:
        UnsearchableSpace: One cannot be searched, by its name, or all have one value; an impossible
            condition.
    """
    try:
        parameters = {name: parameter(name, each) for name, each in search_space.items()}
        return Space(parameters, conditions=conditions)
    except ValueError as error:
        raise UnsearchableSpace(str(error)) from error


def as_kept(value: Any, distribution: BaseDistribution) -> Any:
    """A value of a trial as Optuna knows it again: of choices the first that is equal.

    Args:
        value: Of a trial.
        distribution: Of the trial.
    """
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(distribution.to_internal_repr(value))]
    return value


def parameter(name: str, distribution: BaseDistribution) -> Parameter:
    """A distribution as a parameter.

    Args:
        name: For messages.
        distribution: Of Optuna.

    Raises:
        ValueError: It cannot be searched.
    """
    try:
        match distribution:
            case FloatDistribution(low=low, high=high, log=log, step=step):
                return counted(Real(low, high, log=log, step=step))
            case IntDistribution(low=low, high=high, log=log, step=step):
                return counted(Integer(low, high, log=log, step=step))
            case CategoricalDistribution(choices=choices):
                # Optuna takes those that are equal in Python, as True, 1 and 1.0, for the first.
                return Choice(tuple(x for i, x in enumerate(choices) if choices.index(x) == i))
    except ValueError as error:
        raise ValueError(f"{name} cannot be searched: {error}") from error
    raise ValueError(f"{name} must have a distribution of Optuna, got {distribution!r}")
