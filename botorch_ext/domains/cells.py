"""A binary tree of the cells of a box. Cells are computed from their codes and never stored."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number
from botorch_ext.domains import host
from botorch_ext.domains.box import Box
from botorch_ext.state import Immutable

# The last level whose codes fit int64.
MAX_LEVEL = 62


class CellTree(Immutable):
    """A binary tree of cells: level h splits a box into 2^h congruent cells.

    Each level cuts the cells of the level before in two across their longest side, measured in
    lengthscales; among sides of equal length the first is cut. A cell of level h has a code c in
    [0, 2^h). Its children have the codes 2 c (the half with the lower coordinates) and 2 c + 1.

    Source: Shekhar and Javidi 2022, definition 12 (which prints 2^i cells at level h for 2^h, and
    the inner and the outer ball of a cell the wrong way round).

    Args:
        box: The box, which is the cell of level 0.
        lengthscales: One for each column, in the units of the box; infinite for a column that does
            not count and is never cut; None for 1 in every column.

    Raises:
        ValueError: If there is not one positive lengthscale for each column, or all are infinite.
    """

    def __init__(self, box: Box, lengthscales: Sequence[float] | None = None) -> None:
        scales = (
            [1.0] * box.dim
            if lengthscales is None
            else [one_number(each, "lengthscales") for each in lengthscales]
        )
        if len(scales) != box.dim or not all(each > 0 for each in scales):
            raise ValueError(
                f"lengthscales must be {box.dim} positive numbers, one for each column, "
                f"got {lengthscales}"
            )
        if set(scales) == {math.inf}:
            raise ValueError(f"lengthscales must not all be infinite, got {lengthscales}")
        self.box = box
        self.lengthscales: tuple[float, ...] = tuple(scales)
        # Sides in lengthscales at each level so far, and the column that the level splits.
        sides = (box.upper - box.lower).tolist()
        self._sides = [[side / scale for side, scale in zip(sides, scales, strict=True)]]
        self._splits: list[int] = []

    @property
    def rho(self) -> float:
        """2^(-1/d), the mean factor by which cells shrink per level, with d the number of columns
        that are cut."""
        return 2 ** (-1 / self._num_split)

    @cached_property
    def outer(self) -> float:
        """v1, the least number for which every cell of any level h lies inside a ball of radius
        v1 rho^h, in lengthscales."""
        return max(self.half_diagonal(h) / self.rho**h for h in self._one_of_each_shape)

    @cached_property
    def inner(self) -> float:
        """v2, the largest number for which every cell of any level h contains a ball of radius
        v2 rho^h, in lengthscales."""
        return min(
            min(side for side in self.scaled_sides(h) if side > 0) / 2 / self.rho**h
            for h in self._one_of_each_shape
        )

    @property
    def _num_split(self) -> int:
        return sum(scale < math.inf for scale in self.lengthscales)

    @property
    def _one_of_each_shape(self) -> range:
        """Levels with every shape of cells: from then on, shapes repeat d levels later at half the
        size."""
        level, d = 0, self._num_split
        while len({self._split(h) for h in range(level, level + d)}) < d:
            level += 1
        return range(level + d)

    def scaled_sides(self, level: int) -> list[float]:
        """The side lengths of the cells of a level, in lengthscales.

        Args:
            level: h, at least 0.

        Returns:
            ``d`` numbers.
        """
        level = whole_number(level, "level", least=0)
        if level > 0:
            self._split(level - 1)
        return list(self._sides[level])

    def half_diagonal(self, level: int) -> float:
        """r_h, the largest distance of a point of a cell from the center of the cell.

        Args:
            level: h, at least 0.

        Returns:
            The distance in lengthscales.
        """
        return math.hypot(*self.scaled_sides(level)) / 2

    def sides(self, level: int) -> Tensor:
        """The side lengths of the cells of a level, in the units of the box.

        Args:
            level: h, at least 0.

        Returns:
            ``d`` numbers.
        """
        level = whole_number(level, "level", least=0)
        counts = torch.bincount(
            host.tensor(self._splits_before(level), dtype=torch.long), minlength=self.box.dim
        )
        return (self.box.upper - self.box.lower) / torch.exp2(counts.to(self.box.like))

    def centers(self, level: int, codes: Tensor) -> Tensor:
        """The centers of cells.

        Args:
            level: h.
            codes: The codes of the cells, ``n`` integers in [0, 2^h).

        Returns:
            The centers, ``n x d``.

        Raises:
            ValueError: If the level is outside [0, 62], or a code is not one of the level.
        """
        return self._at(level, codes, 0.5)

    def lower(self, level: int, codes: Tensor) -> Tensor:
        """The lower corners of cells.

        Args:
            level: h.
            codes: The codes of the cells, ``n`` integers in [0, 2^h).

        Returns:
            The corners, ``n x d``.

        Raises:
            ValueError: As for `centers`.
        """
        return self._at(level, codes, 0.0)

    def upper(self, level: int, codes: Tensor) -> Tensor:
        """The upper corners of cells.

        Args:
            level: h.
            codes: The codes of the cells, ``n`` integers in [0, 2^h).

        Returns:
            The corners, ``n x d``.

        Raises:
            ValueError: As for `centers`.
        """
        return self._at(level, codes, 1.0)

    def _at(self, level: int, codes: Tensor, place: float) -> Tensor:
        level = whole_number(level, "level", least=0)
        if level > MAX_LEVEL:
            raise ValueError(f"level must be at most {MAX_LEVEL}, got {level}")
        self._check_codes(level, codes)
        steps = codes.new_zeros(len(codes), self.box.dim)
        for above, column in enumerate(self._splits_before(level)):
            bit = (codes >> (level - 1 - above)) & 1
            steps[:, column] = 2 * steps[:, column] + bit
        corners = self.box.lower + self.sides(level) * (steps.to(self.box.like) + place)
        # Rounding must not leave the box.
        return torch.minimum(corners, self.box.upper)

    def _check_codes(self, level: int, codes: Tensor) -> None:
        whole = isinstance(codes, Tensor) and codes.dtype == torch.int64 and codes.ndim == 1
        if not whole or bool(((codes < 0) | (codes > 2**level - 1)).any()):
            raise ValueError(
                f"codes must be one row of int64 in [0, 2^{level}), got {reprlib.repr(codes)}"
            )

    def _splits_before(self, level: int) -> list[int]:
        """The columns that the levels above this one cut."""
        if level > 0:
            self._split(level - 1)
        return self._splits[:level]

    def _split(self, level: int) -> int:
        """The column that a level cuts."""
        while len(self._splits) <= level:
            sides = list(self._sides[-1])
            longest = sides.index(max(sides))
            sides[longest] /= 2
            self._splits.append(longest)
            self._sides.append(sides)
        return self._splits[level]

    def __repr__(self) -> str:
        return f"CellTree({self.box!r}, lengthscales={self.lengthscales})"
