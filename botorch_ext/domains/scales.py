"""Scales: how the unit interval maps to each column of a box with integer, stepped, logarithmic,
categorical or conditional columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import one_number, some_of, whole_number
from botorch_ext.domains import host
from botorch_ext.parameters.steps import TOLERANCE, Steps
from botorch_ext.state import Immutable

# A number may miss a step by so many times its floating-point precision.
_ROUNDING = 4


class Scales(Immutable):
    """The scales of columns: integer, stepped, logarithmic, categorical and conditional ones.

    The unit interval is divided evenly among the values of a column of steps or codes; on a
    logarithmic scale it is divided by the logarithms of the values. A column that does not count is
    inactive and has its resting value: the middle of its range, or its first code.

    Args:
        bounds: The bounds of the columns, ``2 x d``.
        integer: The columns of whole numbers.
        steps: A dict from a column to the distance between its values, which begin at its lower
            bound.
        log: The columns with a logarithmic scale.
        categories: A dict from a column to its codes.
        conditions: A dict from a column to its parent, a column of steps or codes, and the values
            of the parent for which the column counts.

    Raises:
        ValueError: If a column does not exist, comes twice or is of two kinds at once; if a column
            with a logarithmic scale has a lower bound that is not above 0; if a step is not
            positive; if no whole number or code lies within the bounds; or if a column depends on
            itself.
    """

    def __init__(
        self,
        bounds: Tensor,
        integer: Iterable[int],
        steps: Mapping[int, float],
        log: Iterable[int],
        categories: Mapping[int, Sequence[float]],
        conditions: Mapping[int, tuple[int, Sequence[float]]],
    ) -> None:
        d = bounds.shape[1]
        self.integer = _columns(integer, "integer", d)
        self.log = _columns(log, "log", d)
        if not isinstance(categories, Mapping):
            raise ValueError(
                "categories must map columns to their codes, as in {3: [0, 1, 2]}, got "
                f"{categories!r}"
            )
        coded = _columns(categories, "categories", d)
        if not isinstance(steps, Mapping):
            raise ValueError(f"steps must map columns to numbers, as in {{2: 0.5}}, got {steps!r}")
        #: The distance between values of each column of steps other than all whole numbers.
        self.steps = {
            j: one_number(steps[j], f"step of column {j}") for j in _columns(steps, "steps", d)
        }
        for name, others in (("integer", self.integer), ("steps", self.steps), ("log", self.log)):
            if both := sorted({*coded} & {*others}):
                raise ValueError(
                    f"{name} must not name a column that categories name, got column {both[0]}"
                )
        if both := sorted({*self.integer} & {*self.steps}):
            raise ValueError(
                f"steps must not name a column that integer names, got column {both[0]}"
            )
        self.categories = {
            j: _codes(categories[j], f"categories of column {j}", bounds[:, j]) for j in coded
        }
        for j in self.log:
            if not bool(bounds[0, j] > 0):
                raise ValueError(
                    f"log must name columns whose lower bound is above 0, got {float(bounds[0, j])}"
                    f" in column {j}"
                )
        ends = bounds.clone()
        for j in self.integer:
            low, high = bounds[0, j].ceil(), bounds[1, j].floor()
            if not bool(low <= high):
                raise ValueError(
                    "integer must name columns with a whole number within their bounds, got "
                    f"{bounds[:, j].tolist()} in column {j}"
                )
            ends[0, j], ends[1, j] = low, high
        counted = {j: Steps(0.0, 1.0) for j in self.integer}
        for j, step in self.steps.items():
            counted[j] = _steps(bounds[:, j], step, j, j in self.log)
            ends[1, j] = min(counted[j].value(counted[j].num), float(bounds[1, j]))
        for j, codes in self.categories.items():
            ends[0, j], ends[1, j] = codes[0], codes[-1]
        #: The least and the largest value that each column can take, ``2 x d``.
        self.ends = ends
        #: The distance between values of each column of whole numbers or other steps.
        self.distances = dict.fromkeys(self.integer, 1.0) | self.steps
        # The unit interval of a column of steps begins and ends half a step beyond them; that of a
        # column of codes is divided by their positions.
        cells = ends.clone()
        for j, step in self.distances.items():
            cells[0, j], cells[1, j] = ends[0, j] - step / 2, ends[1, j] + step / 2
        for j in self.categories:
            cells[:, j] = bounds[:, j]
        #: The bounds of the columns if all of them were continuous, ``2 x d``.
        self.cells = cells
        #: The columns that take only certain numbers.
        self.stepped = tuple(sorted({*counted, *self.categories}))
        rows = (self.log, tuple(counted), self.stepped)
        self._log, self._counted, self._stepped = (
            torch.tensor(j, dtype=torch.long, device=bounds.device) for j in rows
        )
        #: The steps of each column of whole numbers or other steps.
        self.counted = counted
        self._steps = _all_of(list(counted.values()), bounds.device) if self.steps else None
        #: The codes of each column of codes.
        self.codes = {j: bounds.new_tensor(codes) for j, codes in self.categories.items()}
        start, stop = cells.clone()
        for j, codes in self.categories.items():
            start[j], stop[j] = 0, len(codes)
        start[self._log], stop[self._log] = start[self._log].log(), stop[self._log].log()
        self._start, self._span = start, stop - start
        #: The parent of each conditional column and the parent's values for which it counts;
        #: parents come first.
        self.conditions = _conditions(conditions, self, bounds)
        self._parents = {
            j: (parent, bounds.new_tensor(codes)) for j, (parent, codes) in self.conditions.items()
        }
        middle = torch.full_like(ends[0], 0.5)
        middle[list(self.categories)] = 0
        self._resting = self.spread(middle)

    def values(self, column: int) -> Tensor:
        """All values of a column of steps or codes, in ascending order.

        Args:
            column: The column.

        Returns:
            The values, ``k``.
        """
        if column in self.categories:
            return self.codes[column]
        steps, (low, high) = self.counted[column], self.ends[:, column]
        first = int(steps.place(low).round())
        places = host.arange(first, first + self.num_values(column), dtype=torch.float64)
        return steps.value(places).to(self.ends).clamp(low, high)

    def num_values(self, column: int) -> int:
        """The number of values of a column of steps or codes.

        Args:
            column: The column.

        Returns:
            The number of values, k.
        """
        if column in self.categories:
            return len(self.categories[column])
        low, high = self.ends[:, column].tolist()
        return round((high - low) / self.distances[column]) + 1

    def from_unit(self, U: Tensor) -> Tensor:
        """Map points of the unit cube to points.

        Args:
            U: Points of the unit cube, ``... x d``.

        Returns:
            Points, ``... x d``, with inactive columns at their resting value.
        """
        return self.settled(self.spread(U))

    def spread(self, U: Tensor) -> Tensor:
        """Map points of the unit cube to points, inactive columns like the others.

        Args:
            U: Points of the unit cube, ``... x d``.

        Returns:
            Points, ``... x d``.
        """
        low, high = self.ends
        X = self._start + self._span * U
        X[..., self._log] = X[..., self._log].exp()
        X[..., self._counted] = self._rounded(X[..., self._counted])
        for j, codes in self.codes.items():
            X[..., j] = codes[X[..., j].long().clamp(0, len(codes) - 1)]
        X = X.clamp(low, high)
        # The exponential of a logarithm may miss the bounds by rounding.
        X = torch.where(U <= 0, low, X)
        return torch.where(U >= 1, high, X)

    def active(self, X: Tensor) -> Tensor:
        """Which columns count at each point.

        Args:
            X: Points, ``... x d``.

        Returns:
            Booleans, ``... x d``.
        """
        active = torch.ones_like(X, dtype=torch.bool)
        for j, (parent, codes) in self._parents.items():
            has_code = (X[..., parent, None] == codes).any(dim=-1)
            active[..., j] = active[..., parent] & has_code
        return active

    def settled(self, X: Tensor) -> Tensor:
        """Set inactive columns to their resting value.

        Args:
            X: Points, ``... x d``.

        Returns:
            Points, ``... x d``.
        """
        return torch.where(self.active(X), X, self._resting) if self.conditions else X

    def snapped(self, X: Tensor) -> Tensor:
        """Round points to the nearest values of their columns.

        Args:
            X: Points, ``... x d``.

        Returns:
            Points, ``... x d``, with inactive columns at their resting value.
        """
        X = X.clone()
        X[..., self._counted] = self._rounded(X[..., self._counted])
        for j, codes in self.codes.items():
            X[..., j] = codes[(X[..., j, None] - codes).abs().argmin(dim=-1)]
        return self.settled(X.clamp(self.ends[0], self.ends[1]))

    def _rounded(self, counted: Tensor) -> Tensor:
        """The nearest steps to numbers in the columns of steps."""
        if self._steps is None:
            return counted.round() + 0.0  # -0.0 becomes 0.0
        places = self._steps.place(counted.double()).round()
        return self._steps.value(places).to(counted) + 0.0

    def cleaned(self, X: Tensor) -> Tensor:
        """Replace numbers that miss a step only by rounding by that step.

        Args:
            X: Points, ``... x d``.

        Returns:
            Points, ``... x d``.
        """
        if self._steps is None:
            return X
        counted = X[..., self._counted]
        rounded = self._rounded(counted).clamp(*self.ends[:, self._counted])
        distances = counted.new_tensor([*self.distances.values()])
        slack = TOLERANCE * distances + _ROUNDING * torch.finfo(X.dtype).eps * rounded.abs()
        X = X.clone()
        X[..., self._counted] = torch.where((counted - rounded).abs() <= slack, rounded, counted)
        return X

    def to_unit(self, X: Tensor) -> Tensor:
        """Map points to the unit cube.

        Args:
            X: Points, ``... x d``.

        Returns:
            Points of the unit cube, ``... x d``; steps and codes become the middles of their parts
            of the unit interval.
        """
        V = X.clone()
        V[..., self._log] = V[..., self._log].log()
        for j, codes in self.codes.items():
            V[..., j] = torch.searchsorted(codes, X[..., j].contiguous()).to(V) + 0.5
        return (V - self._start) / self._span

    def stretch(self, X: Tensor) -> Tensor:
        """The derivative of `from_unit` in each column.

        Args:
            X: Points, ``... x d``.

        Returns:
            ``... x d``; 0 in columns that take only certain numbers or are inactive.
        """
        speed = self._span.expand_as(X).clone()
        speed[..., self._log] *= X[..., self._log]
        speed[..., self._stepped] = 0
        return torch.where(self.active(X), speed, 0) if self.conditions else speed

    def admits(self, X: Tensor) -> Tensor:
        """Which entries of points within the bounds are values of their columns.

        Args:
            X: Points within the bounds, ``n x d``.

        Returns:
            Booleans, ``n x d``.
        """
        admitted = torch.ones_like(X, dtype=torch.bool)
        counted = X[:, self._counted]
        admitted[:, self._counted] = counted == self._rounded(counted)
        for j, codes in self.codes.items():
            admitted[:, j] = (X[:, j, None] == codes).any(dim=-1)
        return admitted


def _columns(given: Any, name: str, d: int) -> tuple[int, ...]:
    """The columns in ascending order; or a ValueError that names the argument."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list of columns, as in [2], got {given!r}")
    given = list(given)
    columns = sorted(whole_number(column, f"each column of {name}") for column in given)
    if columns and not 0 <= columns[0] <= columns[-1] < d:
        raise ValueError(f"{name} must name columns from 0 to {d - 1}, got {given}")
    if len({*columns}) < len(columns):
        raise ValueError(f"{name} must name each column only once, got {given}")
    return tuple(columns)


def _steps(limits: Tensor, step: float, column: int, log: bool) -> Steps:
    """The steps of a column between its bounds; or a ValueError that names it."""
    # The shortest decimal form of a bound, also if it is a float32.
    low, high = (float(str(end)) for end in limits.cpu().numpy())
    try:
        steps = Steps.between(low, high, step)
    except ValueError as error:
        raise ValueError(f"steps of column {column}: {error}") from None
    if log and not step < 2 * low:
        raise ValueError(
            f"steps of column {column} must be less than twice its lower bound on a logarithmic "
            f"scale, got {step} for {low}"
        )
    return steps


def _all_of(steps: list[Steps], device: torch.device) -> Steps:
    """The steps of several columns as tensors of float64, which holds the decimals exactly."""
    columns = [(each.first, each.stride, each.scale) for each in steps]
    first, stride, scale = torch.tensor(columns, dtype=torch.float64, device=device).unbind(-1)
    return Steps(first, stride, scale)


def _codes(given: Any, name: str, limits: Tensor) -> tuple[float, ...]:
    """The codes of a column in ascending order and in the precision of its bounds; or a ValueError
    that names them."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise ValueError(f"{name} must be a list of codes, got {given!r}")
    numbers = [one_number(code, f"each of the {name}") for code in given]
    codes = sorted({*limits.new_tensor(numbers).tolist()})
    if not codes or len(codes) < len(numbers):
        raise ValueError(f"{name} must be one or more different codes, got {some_of(numbers)}")
    low, high = limits.tolist()
    if not all(math.isfinite(code) and low <= code <= high for code in codes):
        raise ValueError(f"{name} must lie within the bounds {[low, high]}, got {some_of(numbers)}")
    return tuple(codes)


def _conditions(
    given: Any, scales: Scales, bounds: Tensor
) -> dict[int, tuple[int, tuple[float, ...]]]:
    """The parent of each conditional column and the parent's values, parents first; or a
    ValueError."""
    if not isinstance(given, Mapping):
        raise ValueError(
            "conditions must map columns to a parent column and its codes, as in "
            f"{{3: (0, [1, 2])}}, got {given!r}"
        )
    read, ordered = {}, {}
    for j in _columns(given, "conditions", bounds.shape[1]):
        name, pair = f"conditions of column {j}", given[j]
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ValueError(
                f"{name} must be a parent column and its codes, as in (0, [1, 2]), got {pair!r}"
            )
        parent = whole_number(pair[0], f"parent of column {j}")
        if parent not in scales.stepped:
            raise ValueError(
                f"parent of column {j} must be a column of whole numbers, steps or categories, got "
                f"{parent}"
            )
        codes = _codes(pair[1], name, bounds[:, parent])
        at = scales.ends[:1].repeat(len(codes), 1)
        at[:, parent] = at.new_tensor(codes)
        at = scales.cleaned(at)
        codes = tuple(at[:, parent].tolist())
        if not bool(scales.admits(at)[:, parent].all()):
            raise ValueError(f"{name} must be values of column {parent}, got {list(codes)}")
        read[j] = parent, codes
    while read:
        ready = {j: pair for j, pair in read.items() if pair[0] not in read}
        if not ready:
            raise ValueError(
                f"conditions must be trees, got columns that depend on themselves: {list(read)}"
            )
        ordered |= ready
        read = {j: pair for j, pair in read.items() if j not in ready}
    return ordered
