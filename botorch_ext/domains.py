"""Where actions live: a box in R^d, or a finite set of points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.exceptions import OutsideDomainError

# Numbers whose keys are made at once, to bound memory.
_KEYED_ENTRIES = 2**20


def as_points(
    X: Tensor | Sequence[float] | Sequence[Sequence[float]], dim: int, like: Tensor, name: str = "X"
) -> Tensor:
    """Checks points at the door.

    Args:
        X: A ``n x d`` or ``d``-dim tensor, or nested numbers of that shape.
        dim: The expected ``d``.
        like: A tensor whose dtype and device the points must share.
        name: The name of the argument, for the error message.

    Returns:
        A ``n x d``-dim tensor.

    Raises:
        ValueError: Wrong shape, dtype or device, or an entry that is not finite.
    """
    X = checked_like(X, like, name)
    if X.ndim == 1:
        X = X.unsqueeze(0)
    if X.ndim != 2 or X.shape[-1] != dim:
        raise ValueError(f"{name} must have shape (n, {dim}) or ({dim},), got {tuple(X.shape)}")
    if not bool(torch.isfinite(X).all()):
        raise ValueError(f"{name} must be finite, got NaN or infinite entries")
    return X


def checked_like(values: Any, like: Tensor, name: str) -> Tensor:
    """Numbers as a tensor of the dtype and on the device of ``like``; a tensor must be so already.
    Else a ValueError that names the argument."""
    if isinstance(values, Tensor):
        require_same_kind(values, like, name)
        return values
    return checked_tensor(values, like.dtype, like.device, name)


def require_same_kind(X: Tensor, like: Tensor, name: str) -> None:
    """Raises a ValueError unless ``X`` has the dtype and the device of ``like``."""
    if X.dtype != like.dtype or X.device != like.device:
        raise ValueError(
            f"{name} must be {like.dtype} on {like.device}, got {X.dtype} on {X.device}"
        )


def checked_tensor(
    values: Any, dtype: torch.dtype, device: torch.device | str | None, name: str
) -> Tensor:
    """Numbers as a tensor, or a ValueError that names the argument."""
    if isinstance(values, Tensor):
        return values.to(dtype=dtype, device=device)
    try:
        return torch.tensor(values, dtype=dtype, device=device)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a tensor or nested numbers of one shape, got {values!r}"
        ) from error


def _as_floating(
    values: Tensor | Sequence[Sequence[float]],
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    name: str,
) -> Tensor:
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating-point dtype, got {dtype}")
    given = values.dtype if isinstance(values, Tensor) and values.is_floating_point() else None
    return checked_tensor(values, dtype or given or torch.float64, device, name).detach().clone()


def _row_keys(X: Tensor) -> Tensor:
    """An integer for each row of ``n x d`` floating-point numbers; equal rows have equal ones."""
    generator = torch.Generator().manual_seed(0)
    odd = torch.randint(-(2**62), 2**62, (X.shape[-1],), generator=generator).to(X.device) * 2 + 1
    # Round numbers differ in the upper bits alone, which a product takes beyond its 64.
    keys = []
    for chunk in X.split(max(_KEYED_ENTRIES // X.shape[-1], 1)):
        bits = (chunk + 0.0).to(torch.float64).view(torch.int64)  # -0.0 + 0.0 is 0.0
        keys.append((bits ^ (bits >> 32)).mul_(odd).sum(dim=-1))  # int64 wraps around
    return torch.cat(keys)


@dataclass(frozen=True, eq=False, init=False)
class Box:
    """An axis-aligned box in R^d.

    Args:
        bounds: ``2 x d``: the lower corner, then the upper corner.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device everything that uses this domain runs on.

    Raises:
        ValueError: Wrong shape, not finite, or a lower bound that is not below its upper bound.
    """

    bounds: Tensor

    def __init__(
        self,
        bounds: Tensor | Sequence[Sequence[float]],
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        bounds = _as_floating(bounds, dtype, device, "bounds")
        if bounds.ndim != 2 or bounds.shape[0] != 2 or bounds.shape[1] == 0:
            raise ValueError(
                f"bounds must have shape (2, d), lower then upper, got {tuple(bounds.shape)}"
            )
        if not bool(torch.isfinite(bounds).all()):
            raise ValueError(f"bounds must be finite, got {bounds.tolist()}")
        if not bool((bounds[0] < bounds[1]).all()):
            raise ValueError(
                f"bounds must have lower < upper in every column, got {bounds.tolist()}"
            )
        object.__setattr__(self, "bounds", bounds)

    @property
    def like(self) -> Tensor:
        """A tensor whose dtype and device everything on this domain shares."""
        return self.bounds

    @property
    def lower(self) -> Tensor:
        return self.bounds[0]

    @property
    def upper(self) -> Tensor:
        return self.bounds[1]

    @property
    def dim(self) -> int:
        return self.bounds.shape[1]

    @property
    def dtype(self) -> torch.dtype:
        return self.bounds.dtype

    @property
    def device(self) -> torch.device:
        return self.bounds.device

    def to(self, dtype: torch.dtype | None = None, device: torch.device | str | None = None) -> Box:
        """The same box in another dtype or on another device."""
        return Box(self.bounds, dtype=dtype, device=device)

    def contains(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """Which points lie in the box, its faces included.

        Args:
            X: A ``n x d``-dim tensor, or one point.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        X = as_points(X, self.dim, self.bounds)
        return ((X >= self.lower) & (X <= self.upper)).all(dim=-1)

    def require_contains(
        self, X: Tensor | Sequence[float] | Sequence[Sequence[float]], name: str = "X"
    ) -> Tensor:
        """``X`` as ``n x d`` points, or an `OutsideDomainError` naming the first one outside."""
        X = as_points(X, self.dim, self.bounds, name)
        outside = (~self.contains(X)).nonzero()
        if len(outside):
            x = X[outside[0, 0]].tolist()
            raise OutsideDomainError(f"{name} must lie in the box {self.bounds.tolist()}, got {x}")
        return X

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Scrambled Sobol points.

        Args:
            num_points: How many.
            seed: The same seed gives the same points.

        Returns:
            A ``num_points x d``-dim tensor.
        """
        if num_points == 0:  # which a SobolEngine refuses
            return self.bounds.new_empty(0, self.dim)
        engine = SobolEngine(self.dim, scramble=True, seed=seed)
        return self.from_unit(engine.draw(num_points, dtype=torch.float64).to(self.bounds))

    def from_unit(self, U: Tensor) -> Tensor:
        """Points of the unit cube, ``... x d``, as points of the box."""
        # Rounding can carry the sum past the upper corner.
        return torch.minimum(self.lower + (self.upper - self.lower) * U, self.upper)

    def to_unit(self, X: Tensor) -> Tensor:
        """Points of the box, ``... x d``, as points of the unit cube."""
        return (X - self.lower) / (self.upper - self.lower)

    def __repr__(self) -> str:
        return f"Box({self.bounds.tolist()}, dtype={self.dtype}, device='{self.device}')"


@dataclass(frozen=True, eq=False, init=False)
class FiniteSet:
    """Finitely many points of R^d.

    Args:
        points: ``N x d``.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device everything that uses this domain runs on.

    Raises:
        ValueError: Wrong shape, no points, or an entry that is not finite.
    """

    points: Tensor

    def __init__(
        self,
        points: Tensor | Sequence[Sequence[float]],
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        points = _as_floating(points, dtype, device, "points")
        if points.ndim != 2 or 0 in points.shape:
            raise ValueError(
                f"points must have shape (N, d) with N, d >= 1, got {tuple(points.shape)}"
            )
        if not bool(torch.isfinite(points).all()):
            raise ValueError("points must be finite, got NaN or infinite entries")
        object.__setattr__(self, "points", points)

    @property
    def like(self) -> Tensor:
        """A tensor whose dtype and device everything on this domain shares."""
        return self.points

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
        """The same points in another dtype or on another device."""
        return FiniteSet(self.points, dtype=dtype, device=device)

    def index(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The row of each point, -1 where it is none of the set.

        Args:
            X: A ``n x d``-dim tensor, or one point; compared exactly.

        Returns:
            An integer tensor of ``n`` entries (the first row where rows repeat).
        """
        return self._rows(as_points(X, self.dim, self.points))

    def _rows(self, X: Tensor) -> Tensor:
        keys, order = self._sorted_keys
        wanted = _row_keys(X)
        place = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)
        rows = order[place]  # of equal keys the first row
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

    def contains(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """Which points are members, compared exactly.

        Args:
            X: A ``n x d``-dim tensor, or one point.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        return self.index(X) >= 0

    def require_contains(
        self, X: Tensor | Sequence[float] | Sequence[Sequence[float]], name: str = "X"
    ) -> Tensor:
        """``X`` as ``n x d`` points, or an `OutsideDomainError` naming the first non-member."""
        return self.require_rows(X, name)[0]

    def require_rows(
        self, X: Tensor | Sequence[float] | Sequence[Sequence[float]], name: str = "X"
    ) -> tuple[Tensor, Tensor]:
        """What `require_contains` gives, and the row of each point as in `index`."""
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
        """Distinct random rows (all of them, then again, where more are wanted than there are)."""
        generator = torch.Generator().manual_seed(seed)
        rounds = -(-num_points // self.num_points)
        rows = [torch.randperm(self.num_points, generator=generator) for _ in range(rounds)]
        return (
            torch.cat(rows)[:num_points].to(self.device)
            if rows
            else torch.empty(0, dtype=torch.long, device=self.device)
        )

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Random points of the set, without repetition while that is possible.

        Args:
            num_points: How many.
            seed: The same seed gives the same points.

        Returns:
            A ``num_points x d``-dim tensor.
        """
        return self.points[self.sample_indices(num_points, seed)]

    def __repr__(self) -> str:
        size = f"{self.num_points} points, dim={self.dim}"
        return f"FiniteSet({size}, dtype={self.dtype}, device='{self.device}')"


Domain = Box | FiniteSet
