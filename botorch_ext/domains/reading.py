"""Domains as people give them: a box, a finite set, or the bounds of a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains.bounds import FORMS, BoundsLike, as_bounds
from botorch_ext.domains.box import Box
from botorch_ext.domains.finite_set import Domain, FiniteSet

DomainLike = Domain | BoundsLike


def as_domain(value: DomainLike, name: str = "domain") -> Domain:
    """A domain as it is, and bounds as the `Box` that has them.

    Args:
        value: A `Box`, a `FiniteSet`, or bounds as `Box` reads them.
        name: Of the argument, for the error message.

    Raises:
        ValueError: Anything else.
    """
    if isinstance(value, Box | FiniteSet):
        return value
    is_array = hasattr(value, "__array__") and not isinstance(value, type)
    if not (is_array or isinstance(value, Tensor | list | tuple)):
        raise ValueError(
            f"{name} must be a Box, a FiniteSet or the bounds of a box, got {short(value)}: {FORMS}"
        )
    return Box(as_bounds(value, name=name))


def as_box(value: Box | BoundsLike, name: str = "box") -> Box:
    """A box as it is, and bounds as the `Box` that has them.

    Raises:
        ValueError: Anything else.
    """
    domain = as_domain(value, name)
    if not isinstance(domain, Box):
        raise ValueError(f"{name} must be a Box or its bounds, got {domain!r}")
    return domain


def domain_read(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, with the one that is named ``domain``, if any, as a domain.

    Args:
        names: Of the parameters.
        args: By position.
        kwargs: By name.

    Raises:
        ValueError: It is none.
    """
    given, named = list(args), dict(kwargs)
    if "domain" in named:
        named["domain"] = as_domain(named["domain"])
    elif "domain" in names[: len(given)]:
        place = names.index("domain")
        given[place] = as_domain(given[place])
    return tuple(given), named
