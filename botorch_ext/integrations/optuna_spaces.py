"""Spaces of Optuna as named parameters."""

from __future__ import annotations

from collections.abc import Mapping

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from botorch_ext.integrations.parameters import Choice, Parameter, Real, Whole
from botorch_ext.integrations.spaces import NamedSpace


def free(search_space: Mapping[str, BaseDistribution]) -> dict[str, BaseDistribution]:
    """Those that have more than one value."""
    return {name: each for name, each in search_space.items() if not each.single()}


def space_of(search_space: Mapping[str, BaseDistribution]) -> NamedSpace:
    """The space of distributions.

    Args:
        search_space: By name.

    Raises:
        ValueError: One that cannot be searched, by its name.
    """
    return NamedSpace({name: parameter(name, each) for name, each in search_space.items()})


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
                return Real(low, high, log, step)
            case IntDistribution(low=low, high=high, log=log, step=step):
                return Whole(low, high, log, step)
            case CategoricalDistribution(choices=choices):
                return Choice(tuple(choices))
    except ValueError as error:
        raise ValueError(f"{name} cannot be searched: {error}") from error
    raise ValueError(f"{name} must have a distribution of Optuna, got {distribution!r}")
