"""Reading domains as users give them: a box, a finite set, or the bounds of a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains.bounds import FORMS, BoundsLike, as_bounds
from botorch_ext.domains.box import Box
from botorch_ext.domains.finite_set import Domain, FiniteSet

DomainLike = Domain | BoundsLike


def as_domain(value: DomainLike, name: str = "domain") -> Domain:
    """Read a domain.

    Args:
        value: A `Box`, a `FiniteSet`, or the bounds of a `Box`.
        name: The name of the argument, for the error message.

    Returns:
        The domain as it is, or a `Box` with these bounds.

    Raises:
        ValueError: If it is anything else.
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
    """Read a box.

    Args:
        value: A `Box`, or bounds of one.
        name: The name of the argument, for the error message.

    Returns:
        The box as it is, or a `Box` with these bounds.

    Raises:
        ValueError: If it is anything else.
    """
    domain = as_domain(value, name)
    if not isinstance(domain, Box):
        raise ValueError(f"{name} must be a Box or its bounds, got {domain!r}")
    return domain


def domain_read(
    names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Read the arguments named ``domain`` and ``context_domain`` of a call, if there are any.

    Args:
        names: The names of the parameters.
        args: The arguments by position.
        kwargs: The arguments by name.

    Returns:
        The arguments by position and by name, with domains as `as_domain` reads them. Contexts may
        also be given as their dimension or as a `ContextSpace`.

    Raises:
        ValueError: If it is not a domain.
    """
    given, named = list(args), dict(kwargs)
    if isinstance(named.get("context_domain"), list | tuple | Tensor | np.ndarray):
        named["context_domain"] = as_domain(named["context_domain"], "context_domain")
    if "domain" in named:
        named["domain"] = as_domain(named["domain"])
    elif "domain" in names[: len(given)]:
        place = names.index("domain")
        given[place] = as_domain(given[place])
    return tuple(given), named
