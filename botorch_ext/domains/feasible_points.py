"""Feasible points of a box that has columns of whole numbers or codes, constraints or
conditions."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains import host
from botorch_ext.domains.feasible_walk import found_points, walked
from botorch_ext.domains.function_constraints import FunctionConstraints
from botorch_ext.domains.linear_constraints import LinearConstraints
from botorch_ext.domains.scales import Scales
from botorch_ext.state import Immutable

# The number of Sobol points drawn at once, and the share of the first draw that must be feasible;
# with fewer feasible points, they are drawn in another way.
_DRAWN, _LEAST_SHARE = 4096, 1 / 64
# The same where a Python function is called at each point.
_FEW_DRAWN, _LEAST_SHARE_CALLED = 512, 1 / 8
# All points of a space are listed if there are at most so many points among so many combinations.
_MOST_LISTED, _MOST_COMBINATIONS = 4096, 2**17
# The walk through the polytope of the constraints: the number of points, the steps before the first
# point, and the steps between two points.
_NUM_WALKED, _BURN_IN, _THINNING = 512, 200, 12
# Samples are moved by up to this share of the way to another point of the walk, so that no sample
# comes twice.
_FARTHEST = 0.1
# The number of extreme points to seek if the walk finds no feasible point.
_NUM_EXTREME = 16


class FeasiblePoints(Immutable):
    """The points of a box: a list of all points if they are few, and random samples.

    Args:
        scales: The scales of the columns.
        constraints: The constraints; None if there are none.
    """

    def __init__(
        self, scales: Scales, constraints: LinearConstraints | FunctionConstraints | None
    ) -> None:
        self._scales, self._constraints = scales, constraints
        is_called = isinstance(constraints, FunctionConstraints) and constraints.called
        self._num_drawn = _FEW_DRAWN if is_called else _DRAWN
        self._least_share = _LEAST_SHARE_CALLED if is_called else _LEAST_SHARE

    @cached_property
    def listed(self) -> Tensor | None:
        """All points in lexicographic order, ``n x d``; None if a column is continuous or there are
        too many points."""
        scales, d = self._scales, self._scales.ends.shape[1]
        if len(scales.stepped) < d:
            return None
        if math.prod(scales.num_values(j) for j in range(d)) > _MOST_COMBINATIONS:
            return None
        X = torch.cartesian_prod(*(scales.values(j) for j in range(d))).view(-1, d)
        X = X if self._constraints is None else X[self._constraints.hold(X)]
        X = scales.settled(X).unique(dim=0) if scales.conditions else X
        return X if len(X) <= _MOST_LISTED else None

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Random points of the box.

        These are Sobol points if many of those are feasible. Otherwise they are points of the list
        in random order or, without a list, points of a walk through the polytope of the
        constraints.

        Args:
            num_points: The number of points, at least 1.
            seed: The same seed gives the same points.

        Returns:
            Points, ``num_points x d``; points repeat if no others are found.
        """
        scales, constraints = self._scales, self._constraints
        engine = SobolEngine(scales.ends.shape[1], scramble=True, seed=seed)

        def drawn(num: int) -> Tensor:
            return scales.spread(engine.draw(num, dtype=torch.float64).to(scales.ends))

        if constraints is None:
            return scales.settled(drawn(num_points))
        found = [_feasible(drawn(self._num_drawn), constraints)]
        if len(found[0]) < self._num_drawn * self._least_share:
            generator = torch.Generator().manual_seed(seed)
            if self.listed is not None:
                return self.listed[_rows(len(self.listed), num_points, generator)]
            return scales.settled(self._of_walk(drawn(num_points), generator))
        while sum(map(len, found)) < num_points:
            found.append(_feasible(drawn(self._num_drawn), constraints))
        return scales.settled(torch.cat(found)[:num_points])

    def _of_walk(self, X: Tensor, generator: torch.Generator) -> Tensor:
        """Points whose columns in the constraints are replaced by those of points of the walk."""
        constraints: Any = self._constraints
        walk, columns = self._walk, constraints.columns
        near = walk[_rows(len(walk), len(X), generator)]
        # Between feasible points of linear constraints all points are feasible.
        is_convex = not isinstance(constraints, FunctionConstraints)
        if is_convex and not {*columns} & {*self._scales.stepped}:
            others = walk[_rows(len(walk), len(X), generator)]
            shares = _FARTHEST * host.rand(len(X), 1, generator=generator, dtype=torch.float64)
            near = torch.lerp(near, others, shares.to(near))
        X[:, columns] = near[:, columns]
        return torch.where(constraints.hold(X)[:, None], X, near)

    @cached_property
    def found(self) -> Tensor:
        """Some points of the unit cube that satisfy constraints by functions, ``n x d``.

        Raises:
            ValueError: If none is found.
        """
        constraints: Any = self._constraints
        return found_points(constraints, self._scales, self._num_drawn)

    @cached_property
    def _walk(self) -> Tensor:
        """Feasible points: those of BoTorch's walk with numbers and codes rounded or, if none of
        those is feasible, extreme points. They are all equal in columns that no linear constraint
        uses."""
        constraints: Any = self._constraints
        if isinstance(constraints, FunctionConstraints):
            return walked(constraints, self._scales, self.found)
        scales, columns = self._scales, constraints.columns
        X = scales.ends[:1].repeat(_NUM_WALKED, 1)
        from botorch.exceptions import BotorchError  # slow to import

        try:
            X[:, columns] = _walked(constraints, scales.cells).to(X)
        except (BotorchError, ValueError):  # a polytope too thin to walk in
            X = X[:0]
        X = _feasible(constraints.nearby(X, scales), constraints)
        if len(X):
            return X
        generator = torch.Generator().manual_seed(0)
        directions = host.randn(_NUM_EXTREME, X.shape[1], generator=generator, dtype=torch.float64)
        directions[0] = 0  # a point is known to be found for this direction
        low, high = scales.cells
        directions = directions.to(low) / (high - low)
        points = [constraints.extreme_point(scales, direction) for direction in directions]
        return torch.stack([point for point in points if point is not None])


def _feasible(X: Tensor, constraints: LinearConstraints | FunctionConstraints) -> Tensor:
    return X[constraints.hold(X)]


def _rows(num_rows: int, num_drawn: int, generator: torch.Generator) -> Tensor:
    """Random rows; every row comes once before any row comes again."""
    rounds = -(-num_drawn // num_rows)
    rows = [host.randperm(num_rows, generator=generator) for _ in range(rounds)]
    return torch.cat(rows)[:num_drawn]


def _walked(constraints: LinearConstraints, bounds: Tensor) -> Tensor:
    """Points of BoTorch's walk, in the columns that constraints use."""
    from botorch.utils.sampling import HitAndRunPolytopeSampler  # slow to import

    columns = constraints.columns
    inside, equal = _split(constraints.A[:, columns], constraints.b)
    sampler = HitAndRunPolytopeSampler(
        inequality_constraints=inside,
        equality_constraints=equal,
        bounds=bounds[:, columns].double().cpu(),
        n_burnin=_BURN_IN,
        n_thinning=_THINNING,
        seed=0,
    )
    return sampler.draw(_NUM_WALKED)


def _split(
    A: Tensor, b: Tensor
) -> tuple[tuple[Tensor, Tensor] | None, tuple[Tensor, Tensor] | None]:
    """The constraints as BoTorch takes them: inequalities, and equalities in place of two opposite
    inequalities."""
    A, b = A.double().cpu(), b.double().cpu()
    rows = torch.cat([A, b[:, None]], dim=-1)
    opposite = (rows[:, None] == -rows).all(dim=-1)
    of_pairs, first = opposite.any(dim=-1), opposite.triu(1).any(dim=-1)
    inside = (A[~of_pairs], b[~of_pairs, None]) if not bool(of_pairs.all()) else None
    return inside, (A[first], b[first, None]) if bool(first.any()) else None
