"""Search spaces of Optuna as spaces of this library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_ext.domains.space import Condition, Space
from botorch_ext.integrations.recipes import UnsearchableSpace
from botorch_ext.parameters import ALL_DIGITS, Choice, Integer, Parameter, Real


def free(search_space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """The distributions with more than one value."""
    return {name: each for name, each in search_space.items() if not each.single()}


def space_of(
    search_space: Mapping[str, BaseDistribution], conditions: Mapping[str, Condition] | None = None
) -> Space:
    """Make the space of some distributions.

    Args:
        search_space: Distributions by name.
        conditions: Conditions as for `Space`; None for none.

    Raises:
        UnsearchableSpace: If a distribution cannot be searched, all have only one value, or a
            condition is impossible.
    """
    try:
        parameters = {name: parameter(name, each) for name, each in search_space.items()}
        return Space(parameters, conditions=conditions)
    except ValueError as error:
        raise UnsearchableSpace(str(error)) from error


def as_kept(value: Any, distribution: BaseDistribution) -> Any:
    """A value of a trial as Optuna identifies it: for choices, the first one that is equal."""
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(distribution.to_internal_repr(value))]
    return value


def parameter(name: str, distribution: BaseDistribution) -> Parameter:
    """Make the parameter of a distribution.

    Raises:
        ValueError: If the distribution cannot be searched.
    """
    try:
        match distribution:
            case FloatDistribution(low=low, high=high, log=log, step=step):
                if step is not None:
                    return Real(low, high, step=step)
                return Real(low, high, log=log, significant=ALL_DIGITS)
            case IntDistribution(low=low, high=high, log=log, step=step):
                return Integer(low, high, log=log, step=step)
            case CategoricalDistribution(choices=choices):
                # Optuna identifies values that are equal in Python, such as True, 1 and 1.0.
                return Choice(tuple(x for i, x in enumerate(choices) if choices.index(x) == i))
    except ValueError as error:
        raise ValueError(f"{name} cannot be searched: {error}") from error
    raise ValueError(f"{name} must have a distribution of Optuna, got {distribution!r}")
