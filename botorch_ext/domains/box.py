"""Box: an axis-aligned box in R^d."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains.points import as_floating, as_points
from botorch_ext.exceptions import OutsideDomainError


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
        bounds = as_floating(bounds, dtype, device, "bounds")
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
