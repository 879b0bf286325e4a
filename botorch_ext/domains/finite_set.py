"""FiniteSet: finitely many points of R^d."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
from botorch_ext.domains.box import Box
from botorch_ext.domains.points import PointsLike, as_floating, as_points, numbered, require_finite
from botorch_ext.domains.shards import Shard
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.state import Immutable

# How many numbers are turned into keys at once, to bound memory.
_KEYED_ENTRIES = 2**20


@dataclass(frozen=True, eq=False, init=False)
class FiniteSet(Immutable):
    """A domain of finitely many points of R^d.

    Example:
        >>> import botorch_ext as bx
        >>> candidates = bx.FiniteSet([[0.0, 1.0], [0.5, 1.0], [0.5, 2.0]])
        >>> candidates
        FiniteSet(3 points, dim=2, dtype=torch.float64, device='cpu')
        >>> candidates.index([[0.5, 2.0], [0.5, 3.0]])
        tensor([ 2, -1])

    Args:
        points: The points, ``N x d``.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device that everything on this domain runs on.

    Raises:
        ValueError: If the shape is wrong, there are no points, or an entry is not finite.
    """

    points: Tensor
    #: The part of the points that this process keeps; None if it keeps all of them.
    shard: ClassVar[Shard | None] = None

    def __init__(
        self,
        points: PointsLike,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        points = as_floating(points, dtype, device, "points")
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(
                f"points must have shape (N, d) with N, d >= 1, got {tuple(points.shape)}"
            )
        require_finite({"points": points})
        object.__setattr__(self, "points", points)

    @property
    def like(self) -> Tensor:
        """A tensor whose dtype and device everything on this domain shares."""
        return self.points

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ``d`` columns: ``x0``, ``x1``, ..."""
        return tuple(f"x{j}" for j in range(self.dim))

    def params_of(self, x: Tensor) -> dict[str, Any]:
        """The numbers of a point by the names of the columns.

        Args:
            x: A point, ``d``; it is not checked.

        Returns:
            A dict such as ``{"x0": 0.3, "x1": 2.0}``.
        """
        return numbered(x)

    @property
    def num_points(self) -> int:
        return self.points.shape[0]

    @property
    def dim(self) -> int:
        return self.points.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.points.dtype

    @property
    def device(self) -> torch.device:
        return self.points.device

    def to(
        self, dtype: torch.dtype | None = None, device: torch.device | str | None = None
    ) -> FiniteSet:
        """The same points in another dtype or on another device.

        Args:
            dtype: The dtype of the result; None keeps it.
            device: The device of the result; None keeps it.

        Returns:
            A new `FiniteSet`.
        """
        return FiniteSet(self.points, dtype=dtype, device=device)

    def index(self, X: PointsLike) -> Tensor:
        """The row of each point in the set.

        Args:
            X: Points, ``n x d``, or one point, ``d``; they are compared exactly.

        Returns:
            An integer tensor of ``n`` entries: the row of each point (the first one if rows
            repeat), or -1 if the point is not in the set.
        """
        return self._rows(as_points(X, self.dim, self.points))

    def _rows(self, X: Tensor) -> Tensor:
        keys, order = self._sorted_keys
        wanted = _row_keys(X)
        place = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
        rows = order[place]  # the first row among those with an equal key
        found = (self.points[rows] == X).all(dim=-1)
        rows = torch.where(found, rows, -1)
        # Other points may have the same key.
        for i in ((keys[place] == wanted) & ~found).nonzero().flatten().tolist():
            match = (self.points == X[i]).all(dim=-1)
            rows[i] = torch.where(match.any(), match.to(torch.uint8).argmax(), -1)
        return rows

    @cached_property
    def _sorted_keys(self) -> tuple[Tensor, Tensor]:
        keys = _row_keys(self.points).sort(stable=True)
        return keys.values, keys.indices

    def contains(self, X: PointsLike) -> Tensor:
        """Which points are in the set.

        Args:
            X: Points, ``n x d``, or one point, ``d``; they are compared exactly.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        return self.index(X) >= 0

    def require_contains(self, X: PointsLike, name: str = "X") -> Tensor:
        """Check that all points are in the set.

        Args:
            X: Points, ``n x d``, or one point, ``d``.
            name: The name of the argument, for the message.

        Returns:
            The points, ``n x d``.

        Raises:
            OutsideDomainError: If a point is not in the set; the message names the first one.
            ValueError: If ``X`` has the wrong shape, dtype or device, or an entry is not finite.
        """
        return self.require_rows(X, name)[0]

    def require_rows(self, X: PointsLike, name: str = "X") -> tuple[Tensor, Tensor]:
        """Check that all points are in the set and find their rows.

        Args:
            X: Points, ``n x d``, or one point, ``d``.
            name: The name of the argument, for the message.

        Returns:
            The points, ``n x d``, and the row of each one, ``n``.

        Raises:
            OutsideDomainError: If a point is not in the set; the message names the first one.
            ValueError: If ``X`` has the wrong shape, dtype or device, or an entry is not finite.
        """
        X = as_points(X, self.dim, self.points, name)
        rows = self._rows(X)
        outside = (rows < 0).nonzero()
        if len(outside):
            x = X[outside[0, 0]].tolist()
            raise OutsideDomainError(
                f"{name} must be one of the {self.num_points} points of the set, got {x}"
            )
        return X, rows

    def sample_indices(self, num_points: int, seed: int) -> Tensor:
        """Random rows, distinct while that is possible.

        Args:
            num_points: The number of rows; if it exceeds the size of the set, every row comes once
                before any row comes again.
            seed: The same seed gives the same rows.

        Returns:
            An integer tensor of ``num_points`` rows.
        """
        num_points = whole_number(num_points, "num_points", least=0)
        generator = torch.Generator().manual_seed(whole_number(seed, "seed"))
        rounds = -(-num_points // self.num_points)
        rows = [host.randperm(self.num_points, generator=generator) for _ in range(rounds)]
        return (
            torch.cat(rows)[:num_points].to(self.device)
            if rows
            else torch.empty(0, dtype=torch.long, device=self.device)
        )

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Random points of the set, distinct while that is possible.

        Args:
            num_points: The number of points.
            seed: The same seed gives the same points.

        Returns:
            Points, ``num_points x d``.
        """
        return self.points[self.sample_indices(num_points, seed)]

    def __repr__(self) -> str:
        size = f"{self.num_points} points, dim={self.dim}"
        return f"FiniteSet({size}, dtype={self.dtype}, device='{self.device}')"


Domain = Box | FiniteSet


def _row_keys(X: Tensor) -> Tensor:
    """A key for each row of ``n x d`` floating-point numbers, ``n`` integers; equal rows have equal
    keys."""
    generator = torch.Generator().manual_seed(0)
    odd = host.randint(-(2**62), 2**62, (X.shape[-1],), generator=generator).to(X.device) * 2 + 1
    # Round numbers differ only in their upper bits, which a product would shift out of its 64 bits.
    keys = []
    for chunk in X.split(max(_KEYED_ENTRIES // X.shape[-1], 1)):
        bits = (chunk + 0.0).to(torch.float64).view(torch.int64)  # -0.0 + 0.0 is 0.0
        keys.append((bits ^ (bits >> 32)).mul_(odd).sum(dim=-1))  # int64 wraps around
    return torch.cat(keys)
