"""Balls of perturbations around points, and the least value of a function inside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.search.box_balls import BoxBalls, Norm
from botorch_ext.state import Immutable

# Pairs of points that are looked at in one go, to bound memory.
_BLOCK = 2**18


@dataclass(frozen=True)
class Perturbations(Immutable):
    """The perturbations of a point: Delta(x) = {x' - x : x' in the domain, |x' - x| <= radius}.

    Source: Bogunovic et al. 2018, section 2; Ziomek et al. 2024, section 6.

    Args:
        radius: The radius of the ball, at least 0, in the units of the coordinates; or one radius
            for each coordinate, which makes the ball an ellipsoid or a box.
        norm: The norm of the ball: "l2" or "linf".

    Raises:
        ValueError: If a radius is negative or infinite, or the norm is another one.
    """

    radius: float | Sequence[float] | Tensor
    norm: Norm = "l2"

    def __post_init__(self) -> None:
        radius: Any = self.radius
        if isinstance(radius, list | tuple) or getattr(radius, "ndim", 0):
            checked = tuple(amount(each, "radius", "non-negative and finite") for each in radius)
            if not checked:
                raise ValueError(f"radius must be non-negative and finite, got {radius!r}")
        else:
            checked = amount(radius, "radius", "non-negative and finite")
        object.__setattr__(self, "radius", checked)
        if not isinstance(self.norm, str) or self.norm not in ("l2", "linf"):
            raise ValueError(f'norm must be "l2" or "linf", got {self.norm!r}')

    def radii(self, like: Tensor) -> Tensor:
        """The radius of each coordinate.

        Args:
            like: ``... x d``, a tensor whose dtype and device the radii take.

        Returns:
            ``d`` radii.

        Raises:
            ValueError: If there are radii for another number of coordinates.
        """
        dim, radius = like.shape[-1], self.radius
        if isinstance(radius, tuple) and len(radius) != dim:
            raise ValueError(
                f"radius must be one number or one for each of {dim} coordinates, got {len(radius)}"
            )
        return like.new_tensor(radius).expand(dim).clone()

    def reach(self, X: Tensor, Z: Tensor) -> Tensor:
        """Which points are within reach of each of some other points, up to rounding.

        Args:
            X: ``n x d`` points.
            Z: ``k x d`` points.

        Returns:
            ``n x k`` booleans: whether point k of ``Z`` is within reach of point n of ``X``.
        """
        return _within(X, Z, self.radii(X), self.norm, _rounding(torch.cat([X, Z])))

    @overload
    def on(self, domain: FiniteSet) -> FiniteBalls: ...

    @overload
    def on(self, domain: Box) -> BoxBalls: ...

    def on(self, domain: Domain) -> FiniteBalls | BoxBalls:
        """The balls around the points of a domain.

        Args:
            domain: A `FiniteSet`, or a `Box` with nothing but bounds.

        Returns:
            `FiniteBalls` for a finite set, `BoxBalls` for a box.

        Raises:
            ValueError: If there are radii for another number of coordinates, or the box has
                more than bounds.
        """
        if isinstance(domain, FiniteSet):
            return FiniteBalls(domain, self)
        domain.require_plain("worst cases over perturbations")
        return BoxBalls(domain, self.radii(domain.bounds), self.norm)


class FiniteBalls(Immutable):
    """The neighbours of each point of a finite set: the points within reach of it.

    Distances are compared up to rounding: on a regular grid of spacing h, a radius of 2 h reaches
    the second neighbour.

    Args:
        domain: The finite set.
        perturbations: The radius and the norm.
    """

    def __init__(self, domain: FiniteSet, perturbations: Perturbations) -> None:
        rows, columns = _pairs(domain.points, perturbations)
        self.sizes = rows.bincount(minlength=domain.num_points)
        self._neighbours = columns
        self._starts = self.sizes.cumsum(dim=0) - self.sizes
        self._groups = self._grouped()

    def neighbours(self, index: int) -> Tensor:
        """The rows of the set within reach of one row, in ascending order, with that row itself.

        Args:
            index: A row of the set.

        Returns:
            The rows, a tensor of whole numbers.
        """
        start = int(self._starts[index])
        return self._neighbours[start : start + int(self.sizes[index])]

    def worst_case(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """The least value within reach of every point.

        Args:
            values: ``*batch x N`` values of functions on the set.

        Returns:
            ``*batch x N`` least values, and the rows where they are attained (the first of equal
            ones).
        """
        worst, where = torch.empty_like(values), values.new_empty(values.shape, dtype=torch.long)
        for rows, lists in self._groups:
            least, column = values[..., lists].min(dim=-1)
            worst[..., rows] = least
            where[..., rows] = lists[torch.arange(len(rows), device=lists.device), column]
        return worst, where

    def _grouped(self) -> list[tuple[Tensor, Tensor]]:
        """Rows with lists of about the same length, and their lists filled up with the last entry:
        sets with a few crowded corners need no more memory than there are pairs."""
        order = self.sizes.argsort(stable=True)
        sizes = self.sizes[order].tolist()
        groups, start = [], 0
        while start < len(sizes):
            stop = start + 1
            while (
                stop < len(sizes)
                and sizes[stop] <= 2 * sizes[start]
                and (stop + 1 - start) * sizes[stop] <= _BLOCK
            ):
                stop += 1
            rows = order[start:stop]
            longest = torch.arange(sizes[stop - 1], device=rows.device)
            last = self.sizes[rows].unsqueeze(-1) - 1
            entries = self._starts[rows].unsqueeze(-1) + torch.minimum(longest, last)
            groups.append((rows, self._neighbours[entries]))
            start = stop
        return groups


def _pairs(points: Tensor, perturbations: Perturbations) -> tuple[Tensor, Tensor]:
    """All pairs of rows within reach of each other, in lexicographic order."""
    radii, num_points = perturbations.radii(points), len(points)
    # Sorted along the coordinate that separates most points, only a window needs a look.
    side = points.amax(dim=0) - points.amin(dim=0)
    axis = int((side / radii.clamp_min(torch.finfo(radii.dtype).tiny)).argmax())
    order = points[:, axis].argsort()
    points, slack = points[order], _rounding(points)
    along = points[:, axis].contiguous()
    reach = radii[axis] + 2 * slack[axis]
    keys = []
    step = max(1, _BLOCK // num_points)
    for start in range(0, num_points, step):
        block = points[start : start + step]
        first = int(torch.searchsorted(along, block[0, axis] - reach))
        last = int(torch.searchsorted(along, block[-1, axis] + reach, right=True))
        near = _within(block, points[first:last], radii, perturbations.norm, slack)
        row, column = near.nonzero(as_tuple=True)
        keys.append(order[row + start] * num_points + order[column + first])
    pairs = torch.cat(keys).sort().values
    return pairs // num_points, pairs % num_points


def _rounding(points: Tensor) -> Tensor:
    """What rounding makes of the differences of coordinates."""
    return 8 * torch.finfo(points.dtype).eps * points.abs().amax(dim=0)


def _within(A: Tensor, B: Tensor, radii: Tensor, norm: Norm, slack: Tensor) -> Tensor:
    """Which pairs are at most the radii apart, up to the rounding of differences of coordinates:
    ``len(A) x len(B)``."""
    # One coordinate after another: a matrix product would lose half of the digits.
    total = A.new_zeros(len(A), len(B))
    inside = torch.ones_like(total, dtype=torch.bool)
    for a, b, radius, rounding in zip(A.T, B.T, radii, slack, strict=True):
        apart = ((a[:, None] - b).abs() - rounding).clamp_min(0)
        inside &= apart <= radius
        total += (apart / torch.where(radius > 0, radius, 1)).square()
    return inside if norm == "linf" else inside & (total <= 1 + 8 * torch.finfo(A.dtype).eps)
