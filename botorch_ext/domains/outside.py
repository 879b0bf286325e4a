"""Points outside a box, which are data all the same: results of before the space was chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains.box import Box, require_known
from botorch_ext.domains.points import as_points
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import OutsideDomainError


def outside_point(box: Box, given: Any, name: str = "x") -> Tensor:
    """A point as numbers from which a model may learn although it lies outside a box: beyond its
    bounds, between its steps, or where constraints do not hold.

    Args:
        box: It has no conditions.
        given: ``d`` numbers, or values by name.
        name: Of the argument, for messages.

    Returns:
        ``d``.

    Raises:
        ValueError: Numbers that are not finite, or a name that is missing or unknown.
        OutsideDomainError: What no model can learn from: a choice that there is not, another value
            of a parameter that has one, or nothing above 0 on a logarithmic scale.
    """
    if box.conditions:
        raise OutsideDomainError(f"{name} must lie in the space, which has conditions")
    if isinstance(given, Mapping):
        given = _numbers(box, given, name)
    (x,) = as_points(given, box.dim, box.bounds, name)
    for j, number in enumerate(x.tolist()):
        if j in box.log and not number > 0:
            raise OutsideDomainError(
                f"{box.names[j]} must be above 0 on a logarithmic scale, got {number} in {name}"
            )
        if j in box.categories and number not in box.categories[j]:
            raise OutsideDomainError(
                f"{box.names[j]} must be one of the codes {list(box.categories[j])}, got {number}"
            )
    return x


def params_outside(box: Box, x: Tensor) -> dict[str, Any]:
    """The values of a point of `outside_point` by name."""
    if not isinstance(box, Space):
        return box.params_of(x)
    numbers = dict(zip(box.names, x.tolist(), strict=True))
    values = {}
    for name, parameter in box.parameters.items():
        number = numbers.get(name, parameter.ends[0])
        is_one = name not in numbers or _has_codes(box, name) or _is_value(parameter, number)
        values[name] = parameter.decoded(number) if is_one else number
    return values


def _numbers(box: Box, params: Mapping[str, Any], name: str) -> list[float]:
    known = box.parameters if isinstance(box, Space) else box.names
    require_known(params, known, name)
    parameters = box.parameters if isinstance(box, Space) else {}
    if isinstance(box, Space):
        for each, parameter in box.parameters.items():
            if each in params and (_has_codes(box, each) or each not in box.names):
                try:
                    parameter.encoded(params[each])
                except ValueError as error:
                    raise OutsideDomainError(f"{each} {error} in {name}") from None
    numbers = []
    for each in box.names:
        if each not in params:
            raise ValueError(f"{name} must have {each}, got values of {list(params)}")
        is_code = isinstance(box, Space) and _has_codes(box, each)
        value = parameters[each].encoded(params[each]) if is_code else params[each]
        numbers.append(one_number(value, each))
        if not math.isfinite(numbers[-1]):
            raise ValueError(f"{each} must be finite, got {params[each]} in {name}")
    return numbers


def _has_codes(space: Space, name: str) -> bool:
    return space.parameters[name].line is None


def _is_value(parameter: Any, number: float) -> bool:
    try:
        parameter.encoded(number)
    except ValueError:
        return False
    return True
