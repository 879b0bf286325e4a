"""Points outside a box that still are data: results from before the space was chosen."""

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
    """The numbers of a point from which a model can learn although it may lie outside a box: beyond
    the bounds, between the steps, or where constraints do not hold.

    Args:
        box: The box; it must have no conditions.
        given: The point: ``d`` numbers, or values by name.
        name: The name of the argument, for messages.

    Returns:
        The point, ``d``.

    Raises:
        ValueError: If a number is not finite, or a name is missing or unknown.
        OutsideDomainError: If no model can learn from the point: a value that a choice does not
            have, another value for a parameter that has only one, a number on a logarithmic scale
            that is not above 0, or a box with conditions.
    """
    if box.conditions:
        raise OutsideDomainError(
            f"{name} must lie inside the space: a space with conditions takes no outside points"
        )
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
    """The values by name of a point that `outside_point` returned.

    Args:
        box: The box.
        x: The point, ``d``.

    Returns:
        A dict of values by name; a number that is no value of its parameter stays as it is.
    """
    if not isinstance(box, Space):
        return box.params_of(x)
    numbers = dict(zip(box.names, x.tolist(), strict=True))
    values = {}
    for name, parameter in box.parameters.items():
        number = numbers.get(name, parameter.ends[0])
        is_one = name not in numbers or parameter.line is None or _is_value(parameter, number)
        values[name] = parameter.decoded(number) if is_one else number
    return values


def _numbers(box: Box, params: Mapping[str, Any], name: str) -> list[float]:
    parameters = box.parameters if isinstance(box, Space) else {}
    require_known(params, parameters or box.names, name)
    for each, parameter in parameters.items():
        if each in params and (parameter.line is None or each not in box.names):
            try:
                parameter.encoded(params[each])
            except ValueError as error:
                raise OutsideDomainError(f"{each} {error} in {name}") from None
    numbers = []
    for each in box.names:
        if each not in params:
            raise ValueError(f"{name} must have {each}, got values for {list(params)} only")
        is_code = each in parameters and parameters[each].line is None
        value = parameters[each].encoded(params[each]) if is_code else params[each]
        numbers.append(one_number(value, each))
        if not math.isfinite(numbers[-1]):
            raise ValueError(f"{each} must be finite, got {params[each]} in {name}")
    return numbers


def _is_value(parameter: Any, number: float) -> bool:
    try:
        parameter.encoded(number)
    except ValueError:
        return False
    return True
