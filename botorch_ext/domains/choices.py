"""Parameters of a space that are one of some values, or one value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import did_you_mean, one_number

# Descriptors that differ by less, relative to the largest, are the same.
_LEAST_SPREAD = 1e-12


@dataclass(frozen=True, repr=False)
class Choice:
    """Values of any kind without an order. The column has their places: 0 for the first, 1 for the
    second.

    Methods that fit their hyperparameters see any two values equally far apart or, where there are
    descriptors, as far as those are: each descriptor is standardised, and the two values that are
    farthest apart are as far as the two ends of a range. A kernel of your own sees places.

    Args:
        values: Those that there are; a value may come once. Or a dict from each of them to its
            descriptors, numbers, as in ``{"water": [1.0, 0.3], "dmso": [0.4, 0.9]}``.
        descriptors: Those of each value, in place of such a dict.

    Raises:
        ValueError: No values, or one that comes twice; descriptors that are not equally many finite
            numbers for each value, or the same for two values.
    """

    values: Sequence[Any]
    descriptors: Sequence[Sequence[float]] | None = None

    is_whole, spacing, log, line, unit = False, None, False, None, None

    def __post_init__(self) -> None:
        if isinstance(self.values, Mapping):
            object.__setattr__(self, "descriptors", [*self.values.values()])
        object.__setattr__(self, "values", _checked_values(self.values))
        if self.descriptors is None:
            return
        checked = _checked_descriptors(self.values, self.descriptors)
        object.__setattr__(self, "descriptors", checked)
        located: Any = self.located
        same = torch.cdist(located, located) == 0
        for i, j in same.triu(1).nonzero().tolist():
            raise ValueError(
                f"descriptors of {self.values[j]!r} must differ from those of {self.values[i]!r}"
            )

    @cached_property
    def located(self) -> Tensor | None:
        """``k x p``, where descriptors put the values; the farthest two are 1 apart. None without
        descriptors."""
        if self.descriptors is None:
            return None
        D = torch.tensor(self.descriptors, dtype=torch.float64)
        spread = D.std(dim=0, correction=0)
        varies = spread > _LEAST_SPREAD * D.abs().amax(dim=0)
        D = ((D - D.mean(dim=0)) / spread)[:, varies]
        return D / torch.cdist(D, D).max()

    @property
    def ends(self) -> tuple[float, float]:
        """The places of the first and the last value."""
        return 0.0, len(self.values) - 1.0

    @property
    def rule(self) -> str:
        """As for `Real`."""
        return f"must be one of {list(self.values)}"

    def encoded(self, value: Any) -> float:
        """The place of a value, or a ValueError whose message follows the name."""
        place = _place(self.values, value)
        if place is None:
            raise ValueError(f"{self.rule}, got {value!r}{did_you_mean(value, self.values)}")
        return float(place)

    def decoded(self, number: float) -> Any:
        """The value at a place."""
        return self.values[round(number)]

    def __repr__(self) -> str:
        values: Any = list(self.values)
        if self.descriptors is not None:
            values = dict(zip(values, map(list, self.descriptors), strict=True))
        return f"{type(self).__name__}({values})"


@dataclass(frozen=True, repr=False)
class Ordered(Choice):
    """Values of which neighbours are alike; the column has their places.

    Args:
        values: Those that there are, in their order, which of numbers is the ascending one.

    Raises:
        ValueError: As `Choice`, or numbers that do not ascend.
    """

    is_whole = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(isinstance(value, int | float) for value in self.values):
            return
        numbers = [one_number(value, "values") for value in self.values]
        if any(not a < b for a, b in pairwise(numbers)):
            raise ValueError(f"values must be in ascending order, got {list(self.values)}")


@dataclass(frozen=True)
class Fixed:
    """One value; no column.

    Args:
        value: Of any kind.
    """

    value: Any

    is_whole, spacing, log, line, unit = False, None, False, None, None
    ends = (0.0, 0.0)

    @property
    def rule(self) -> str:
        """As for `Real`."""
        return f"must be {self.value!r}"

    def encoded(self, value: Any) -> float:
        """0, or a ValueError whose message follows the name."""
        if _place((self.value,), value) is None:
            raise ValueError(f"{self.rule}, got {value!r}")
        return 0.0

    def decoded(self, number: float) -> Any:
        """The value."""
        return self.value


def _checked_values(values: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(values, str):
        raise ValueError(f"values must be a list, as in ['water', 'ethanol'], got {values!r}")
    values = tuple(values)
    if not values:
        raise ValueError("values must have an entry, got none")
    for i, value in enumerate(values):
        if any(_same(value, other) for other in values[:i]):
            raise ValueError(f"values must differ from each other, got {value!r} twice")
    return values


def _checked_descriptors(values: Sequence[Any], given: Any) -> tuple[tuple[float, ...], ...]:
    """The descriptors of each value; or a ValueError that names the value."""
    if len(given) != len(values):
        raise ValueError(
            f"descriptors must be given for each of {len(values)} values, got {len(given)}"
        )
    read: list[tuple[float, ...]] = []
    for value, row in zip(values, given, strict=True):
        name, listed = f"descriptors of {value!r}", row if isinstance(row, list | tuple) else [row]
        numbers = tuple(one_number(each, name) for each in listed)
        if not all(map(math.isfinite, numbers)) or len(numbers) != len((read or [numbers])[0]):
            raise ValueError(f"{name} must be finite, as many as of the others, got {row!r}")
        read.append(numbers)
    return tuple(read)


def _place(values: Sequence[Any], value: Any) -> int | None:
    """Where a value stands: as itself or, where it is a number, as an equal one of another type."""
    for i, other in enumerate(values):
        if _same(value, other):
            return i
    if isinstance(value, int | float) and not isinstance(value, bool):
        for i, other in enumerate(values):
            if isinstance(other, int | float) and not isinstance(other, bool) and other == value:
                return i
    return None


def _same(value: Any, other: Any) -> bool:
    """Whether two values are one choice: True is not 1, NaN is NaN, and a tuple is the list that
    JSON makes of it."""
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(map(_same, value, other))
    if type(value) is not type(other):
        return False
    return bool(value == other) or (value != value and other != other)
