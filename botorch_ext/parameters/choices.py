"""Parameters of a space that take one of finitely many values: `Choice`, `Ordered` and `Fixed`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from botorch_ext.checks import did_you_mean, one_number
from botorch_ext.parameters.base import Parameter

# A descriptor whose range, relative to its largest value, is smaller than this is constant.
_LEAST_RANGE = 1e-12


@dataclass(frozen=True, repr=False)
class Choice(Parameter):
    """A parameter with values of any kind that have no order.

    The column of a point holds the position of the value: 0 for the first, 1 for the second.
    Methods that fit their hyperparameters see any two values at the same distance. With descriptors
    they see the values at the distances of their descriptors: each descriptor is standardised, and
    the two values that are farthest apart are as far from each other as the two ends of a range. A
    kernel of your own sees the positions.

    Example:
        >>> import botorch_ext as bx
        >>> bx.Choice(["water", "ethanol"])
        Choice(['water', 'ethanol'])
        >>> space = bx.Space(
        ...     solvent=bx.Choice({"water": [80.1], "ethanol": [24.5], "dmso": [46.7]}),
        ... )
        >>> space.point({"solvent": "dmso"})
        tensor([2.], dtype=torch.float64)

    Args:
        values: A list of the values, each once; or a dict from each value to its descriptors, which
            are numbers, as in ``{"water": [1.0, 0.3], "dmso": [0.4, 0.9]}``.
        descriptors: The descriptors of each value, in place of such a dict; None if values have no
            descriptors.

    Raises:
        ValueError: If there are no values or a value comes twice; if the values do not have equally
            many finite descriptors; or if two values have the same descriptors.
    """

    values: Sequence[Any]
    descriptors: Sequence[Sequence[float]] | None = None

    growth = "further values at the end"

    def __post_init__(self) -> None:
        if isinstance(self.values, Mapping):
            object.__setattr__(self, "descriptors", [*self.values.values()])
        object.__setattr__(self, "values", _checked_values(self.values))
        if self.descriptors is None:
            return
        checked = _checked_descriptors(self.values, self.descriptors)
        object.__setattr__(self, "descriptors", checked)
        for (i, one), (j, other) in combinations(enumerate(self.telling), 2):
            if one == other:
                raise ValueError(
                    f"descriptors of {self.values[j]!r} must differ from those of "
                    f"{self.values[i]!r}, got the same"
                )

    @property
    def telling(self) -> list[tuple[float, ...]]:
        """The descriptors of each value, without those that are the same for all values."""
        kept = [
            column
            for column in zip(*(self.descriptors or ()), strict=True)
            if max(column) - min(column) > _LEAST_RANGE * max(map(abs, column))
        ]
        return [tuple(column[i] for column in kept) for i in range(len(self.values))]

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, len(self.values) - 1.0

    @property
    def rule(self) -> str:
        return f"must be one of {list(self.values)}"

    def encoded(self, value: Any) -> float:
        place = _place(self.values, value)
        if place is None:
            raise ValueError(f"{self.rule}, got {value!r}{did_you_mean(value, self.values)}")
        return float(place)

    def decoded(self, number: float) -> Any:
        return self.values[round(number)]

    def may_become(self, wider: Parameter) -> bool:
        if not isinstance(wider, Choice) or type(wider) is not type(self):
            return False
        num = len(self.values)
        same = len(wider.values) >= num and all(map(_same, self.values, wider.values))
        return same and (wider.descriptors and wider.descriptors[:num]) == self.descriptors

    def __repr__(self) -> str:
        values: Any = list(self.values)
        if self.descriptors is not None:
            values = dict(zip(values, map(list, self.descriptors), strict=True))
        return f"{type(self).__name__}({values})"


@dataclass(frozen=True, repr=False)
class Ordered(Choice):
    """A parameter with values in an order, where neighbouring values are alike.

    The column of a point holds the position of the value: 0 for the first, 1 for the second.

    Example:
        >>> from botorch_ext.parameters import Ordered
        >>> Ordered(["low", "medium", "high"]).encoded("high")
        2.0

    Args:
        values: The values in their order; numbers must be in ascending order.
        descriptors: As for `Choice`.

    Raises:
        ValueError: As for `Choice`; or if numbers are not in ascending order.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(isinstance(value, int | float) for value in self.values):
            return
        numbers = [one_number(value, "values") for value in self.values]
        if any(not a < b for a, b in pairwise(numbers)):
            raise ValueError(f"values must be in ascending order, got {list(self.values)}")

    @property
    def is_whole(self) -> bool:
        return True


class Fixed(Choice):
    """A choice of a single value, which has no column in the points.

    Example:
        >>> from botorch_ext.parameters import Fixed
        >>> Fixed("adam").rule
        "must be 'adam'"

    Args:
        value: The value, of any kind.
    """

    def __init__(self, value: Any) -> None:
        super().__init__([value])

    @property
    def value(self) -> Any:
        """The single value."""
        return self.values[0]

    @property
    def rule(self) -> str:
        return f"must be {self.value!r}"

    def __repr__(self) -> str:
        return f"Fixed(value={self.value!r})"


def _checked_values(values: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(values, str):
        raise ValueError(f"values must be a list, as in ['water', 'ethanol'], got {values!r}")
    values = tuple(values)
    if not values:
        raise ValueError("values must have at least one entry, got none")
    for i, value in enumerate(values):
        if any(_same(value, other) for other in values[:i]):
            raise ValueError(f"values must differ from each other, got {value!r} twice")
    return values


def _checked_descriptors(values: Sequence[Any], given: Any) -> tuple[tuple[float, ...], ...]:
    """The descriptors of each value as numbers; or a ValueError that names the value."""
    if len(given) != len(values):
        raise ValueError(
            f"descriptors must be given for each of the {len(values)} values, got {len(given)}"
        )
    read: list[tuple[float, ...]] = []
    for value, row in zip(values, given, strict=True):
        name, listed = f"descriptors of {value!r}", row if isinstance(row, list | tuple) else [row]
        numbers = tuple(one_number(each, name) for each in listed)
        if not all(map(math.isfinite, numbers)) or len(numbers) != len((read or [numbers])[0]):
            raise ValueError(
                f"{name} must be finite numbers, as many as every other value has, got {row!r}"
            )
        read.append(numbers)
    return tuple(read)


def _place(values: Sequence[Any], value: Any) -> int | None:
    """The position of a value among the values; a number may also match an equal number of another
    type. None if it is not among them."""
    for i, other in enumerate(values):
        if _same(value, other):
            return i
    if isinstance(value, int | float) and not isinstance(value, bool):
        for i, other in enumerate(values):
            if isinstance(other, int | float) and not isinstance(other, bool) and other == value:
                return i
    return None


def _same(value: Any, other: Any) -> bool:
    """Whether two values are the same choice: True is not 1, NaN is NaN, and a tuple is the list
    that JSON makes of it."""
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    if type(value) is not type(other):
        return False
    return bool(value == other) or (value != value and other != other)
