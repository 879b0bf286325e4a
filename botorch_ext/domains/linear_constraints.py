"""Linear constraints on points: A x <= b."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains.points import as_floating
from botorch_ext.domains.scales import Scales
from botorch_ext.state import Immutable

#: Tolerances relative to a sum of absolute terms: for linear constraints, to the largest one in the
#: box.
TOLERANCES = {torch.float64: 1e-8, torch.float32: 1e-5}
# The number of rounds of projections on one constraint after the other.
_NUM_ROUNDS = 40


class LinearConstraints(Immutable):
    """The linear constraints A x <= b, in the units of the points.

    Args:
        given: The pair ``(A, b)``, ``m x d`` and ``m``.
        bounds: The bounds of the box, ``2 x d``.

    Raises:
        ValueError: If it is not such a pair, a shape is wrong, or a number is not finite.
    """

    def __init__(self, given: Any, bounds: Tensor) -> None:
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise ValueError(
                "constraints must be a pair (A, b), for the points x with A x <= b, got a "
                f"{type(given).__name__}"
            )
        d = bounds.shape[1]
        A, b = (
            as_floating(values, bounds.dtype, bounds.device, f"constraints {name}")
            for values, name in zip(given, ("A", "b"), strict=True)
        )
        if A.ndim != 2 or A.shape[1] != d or b.shape != A.shape[:1] or not len(b):
            raise ValueError(
                f"constraints must have A of shape (m, {d}) and b of shape (m,) with m >= 1, got "
                f"{tuple(A.shape)} and {tuple(b.shape)}"
            )
        if not bool(torch.isfinite(A).all() and torch.isfinite(b).all()):
            raise ValueError("constraints must be finite, got NaN or infinite entries")
        self.A, self.b = A, b
        largest = A.abs() @ bounds.abs().amax(dim=0) + b.abs()
        self._tolerance = TOLERANCES.get(bounds.dtype, 1e-2) * largest

    @property
    def columns(self) -> list[int]:
        """The columns that a constraint uses."""
        return (self.A != 0).any(dim=0).nonzero().flatten().tolist()

    def excess(self, X: Tensor) -> Tensor:
        """The amounts A x - b by which points violate each constraint, less its tolerance.

        Args:
            X: Points, ``n x d``.

        Returns:
            ``n x m``; an entry above 0 is a violation.
        """
        return X @ self.A.T - self.b - self._tolerance

    def hold(self, X: Tensor) -> Tensor:
        """Which points satisfy all constraints, with a small tolerance.

        Args:
            X: Points, ``n x d``.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        return (self.excess(X) <= 0).all(dim=-1)

    def projected(self, X: Tensor, bounds: Tensor, free: Tensor) -> Tensor:
        """Move points until they satisfy the constraints, where that is possible.

        Each point is projected on one violated constraint after the other (Kaczmarz), with the
        sides of the bounds as units. The result need not be the nearest feasible point, and it may
        be infeasible.

        Args:
            X: Points, ``n x d``.
            bounds: Bounds that the points do not leave, ``2 x d``.
            free: 1 in the columns that may change, 0 in the others, ``d``.

        Returns:
            The moved points, ``n x d``.
        """
        squares = ((bounds[1] - bounds[0]) * free).square()
        lengths = self.A.square() @ squares
        movable = lengths > 0
        excess = self.excess(X) > 0
        # A violated constraint without a free column cannot be mended.
        (rows,) = (excess.any(dim=-1) & ~excess[:, ~movable].any(dim=-1)).nonzero(as_tuple=True)
        steps = self.A[movable] * squares / lengths[movable, None]
        limits = list(zip(self.A[movable], self.b[movable], steps, strict=True))
        anywhere = X.new_tensor([[-math.inf], [math.inf]])
        X, (least, most) = X.clone(), torch.where(free > 0, bounds, anywhere)
        for _ in range(_NUM_ROUNDS):
            if not len(rows):
                break
            moved = X[rows]
            for a, b, step in limits:
                moved = moved - (moved @ a - b).clamp_min(0)[:, None] * step
                moved = moved.clamp(least, most)
            X[rows] = moved
            rows = rows[~self.hold(moved)]
        return X

    def nearby(self, X: Tensor, scales: Scales) -> Tensor:
        """Round whole numbers and codes, and project the other columns on the constraints.

        Args:
            X: Points, ``n x d``.
            scales: The scales of the columns.

        Returns:
            Points, ``n x d``; some may be infeasible.
        """
        X = scales.snapped(X)
        free = torch.ones_like(self.A[0])
        free[list(scales.stepped)] = 0
        return self.projected(X, scales.ends, free)

    def extreme_point(self, scales: Scales, direction: Tensor) -> Tensor | None:
        """The feasible point that lies furthest in a direction, by mixed-integer programming.

        Args:
            scales: The scales of the columns.
            direction: The direction, ``d``.

        Returns:
            The point, ``d``; None if no point is feasible.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp  # slow to import

        low, high = (end.double().cpu().numpy() for end in scales.ends)
        A, b = (tensor.double().cpu().numpy() for tensor in (self.A, self.b))
        # A column of codes becomes one column of 0 or 1 for each code; these columns sum to 1.
        codes = [scales.categories.get(j, (1.0,)) for j in range(len(low))]
        column = np.repeat(np.arange(len(low)), [len(values) for values in codes])
        is_choice = np.isin(column, list(scales.categories))
        to_points = np.zeros((len(low), len(column)))
        to_points[column, np.arange(len(column))] = np.concatenate(codes)
        # Steps are counted from the least value.
        steps, first = [*scales.steps], np.zeros_like(low)
        first[steps] = low[steps]
        is_counted = np.isin(column, steps)
        to_points[:, is_counted] *= [scales.steps[j] for j in column[is_counted]]
        low = low - first
        high = (high - first) / [scales.steps.get(j, 1.0) for j in range(len(low))]
        sums = (column == np.array(list(scales.categories), dtype=int)[:, None]).astype(float)
        found = milp(
            -direction.double().cpu().numpy() @ to_points,
            integrality=is_choice | np.isin(column, [*scales.distances]),
            bounds=Bounds(
                np.where(is_choice, 0, low[column]), np.where(is_choice, 1, high[column])
            ),
            constraints=[
                LinearConstraint(A @ to_points, ub=b - A @ first),
                LinearConstraint(sums, 1, 1),
            ],
        )
        if found.x is None:
            return None
        x = torch.from_numpy(first + to_points @ found.x).to(self.A).unsqueeze(0)
        x = self.nearby(x, scales)
        return x[0] if bool(self.hold(x)) else None
