"""Region: the part of a box that is left after elimination, as a list of constraints."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, as_points
from botorch_ext.domains.points import PointsLike
from botorch_ext.domains.reading import as_box
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.ascent import batched_lbfgsb, feasible_ascent
from botorch_ext.search.objectives import Objective, evaluate, on_unit_cube
from botorch_ext.search.population import Population, drawn_population
from botorch_ext.search.region_constraints import Constraint
from botorch_ext.search.screening import spread_best

# A point counts as inside when its margin is above minus this, in units of the numbers compared,
# and minus `Constraint.rounding`: the last digits of a posterior depend on how many points are
# evaluated together.
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}

# Steps of feasible ascent from starts that L-BFGS-B carries out of the region.
_NUM_STEPS = 20


@dataclass(frozen=True, eq=False)
class Region:
    """The points of a box that meet all constraints.

    Args:
        box: The box, or its bounds.
        constraints: The constraints of the rounds so far, oldest first.
        members: ``m x d`` points known to lie in the region. At least one is needed if the region
            may be too small to be found by search.

    Raises:
        ValueError: If a model has another dtype, device or dimension than the box.
        OutsideDomainError: If a member lies outside the region.
    """

    box: Box
    constraints: tuple[Constraint, ...] = ()
    members: Tensor = None  # pyright: ignore[reportAssignmentType]

    def __post_init__(self) -> None:
        object.__setattr__(self, "box", as_box(self.box))
        self.box.require_plain("a Region or a plan", "box")
        given = self.constraints if isinstance(self.constraints, list | tuple) else [None]
        if not all(isinstance(constraint, Constraint) for constraint in given):
            raise ValueError(
                f"constraints must be a sequence of Constraint, got {short(self.constraints)}"
            )
        object.__setattr__(self, "constraints", tuple(given))
        for constraint in self.constraints:
            constraint.model.require_takes(self.box.like)
        if self.members is None:
            object.__setattr__(self, "members", self.box.like.new_empty(0, self.box.dim))
        else:
            members = self.require_contains(self.members, "members").detach().clone()
            object.__setattr__(self, "members", members)

    @property
    def dim(self) -> int:
        """The dimension d of the box."""
        return self.box.dim

    @property
    def like(self) -> Tensor:
        """A tensor with the dtype and the device of this region."""
        return self.box.like

    @property
    def tolerance(self) -> float:
        """How negative the margin of a point in the region may be.

        1e-9 (1e-4 in float32) times the largest of 1, the thresholds and the widths; and what
        rounding may do to a slack, w k^(1/2) min(eps c, (eps c^(1/2))^(1/2)) +
        |z| k^(1/2) eps c^(1/2). There w is the width, k the prior variance, eps that of the dtype,
        c the condition (k over the least pivot of the factorisation, about the noise variance) and
        |z|^2 = y' (K + lambda I)^-1 y. In float64 the second part matters at noise variances below
        about 1e-6, in float32 at all.
        """
        sizes = [max(abs(c.threshold), c.width) for c in self.constraints]
        rounding = max((c.rounding for c in self.constraints), default=0.0)
        return _TOLERANCE[self.box.dtype] * max([1.0, *sizes]) + rounding

    def margin(
        self,
        X: PointsLike,
        level: Tensor | float = -math.inf,
    ) -> Tensor:
        """The smallest slack of the constraints. The bounds of the box do not enter.

        Args:
            X: ``m x d`` points, or one point.
            level: If the margin of a point is below this number, any number below it may be
                returned. With the level 0 a test of ``>= 0`` costs less: each constraint is
                evaluated only where the earlier constraints are met.

        Returns:
            ``m`` numbers, differentiable in ``X``. They are infinite without constraints.
        """
        return self._margin(as_points(X, self.dim, self.like), level)

    def unit_margin(self, U: Tensor, level: Tensor | float) -> Tensor:
        """The margin at points of the unit cube, without any checks, for use in loops.

        Args:
            U: ``m x d`` points of the unit cube.
            level: As for `margin`.

        Returns:
            ``m`` numbers, as from `margin`.
        """
        return self._margin(self.box.from_unit(U), level)

    def contains(self, X: PointsLike) -> Tensor:
        """Which points lie in the box and have a margin of at least minus `tolerance`.

        Args:
            X: ``m x d`` points, or one point.

        Returns:
            ``m`` booleans.
        """
        X = as_points(X, self.dim, self.like)
        inside = self.box.contains(X)
        level = -self.tolerance
        inside[inside.clone()] = self._margin(X[inside], level) >= level
        return inside

    def require_contains(self, X: PointsLike, name: str = "X") -> Tensor:
        """Read points and check that all of them lie in the region.

        Args:
            X: ``m x d`` points, or one point.
            name: The name of the argument in the error message.

        Returns:
            ``X`` as ``m x d`` points.

        Raises:
            OutsideDomainError: If a point lies outside; the message names the first such point.
        """
        X = self.box.require_contains(X, name)
        outside = (~self.contains(X)).nonzero()
        if len(outside):
            x = X[outside[0, 0]]
            raise OutsideDomainError(
                f"{name} must lie in the region, got {x.tolist()} with a margin of "
                f"{float(self.margin(x)):.3g}"
            )
        return X

    def restricted(
        self,
        model: KernelGP,
        width: float,
        offset: float,
        threshold: float,
        points: PointsLike,
    ) -> Region:
        """Make a region with one constraint more. This region stays as it is.

        Args:
            model: The model of the constraint. The new region keeps it, so it must not grow.
            width: The multiplier of the standard deviation in the upper bound.
            offset: The number that the upper bound adds besides.
            threshold: The largest lower bound over this region.
            points: ``m x d`` points, or one point: first the one with the largest lower bound, then
                any others worth keeping. The members of the new region are the first point, for
                which the tolerance applies, and every other point and every member of this region
                whose margin is at least 0.

        Returns:
            A new region.

        Raises:
            ValueError: If `Constraint` refuses an argument, or all points lie outside the new
                region.
            OutsideDomainError: If a point lies outside the box.
        """
        constraint = Constraint(model, width, offset, threshold)
        points = self.box.require_contains(points, "points")
        new = Region(self.box, (*self.constraints, constraint))
        inside = new.meets(points)
        inside[:1] |= new.contains(points[:1])
        if not bool(inside.any()):
            raise ValueError(
                f"points must contain a point of the new region, got {points[0].tolist()} with a "
                f"margin of {float(new.margin(points[0])):.3g} and {len(points) - 1} others outside"
            )
        survivors = self.members[new.meets(self.members)]
        # Tested above, all together; tested again the last digits could differ.
        object.__setattr__(new, "members", torch.cat([points[inside], survivors]).detach())
        return new

    def meets(self, X: Tensor) -> Tensor:
        """Which points have a margin of at least 0, without any checks, for use in loops.

        Args:
            X: ``m x d`` points of the box.

        Returns:
            ``m`` booleans. On a GPU the call does not wait for them.
        """
        met = torch.ones(len(X), dtype=torch.bool, device=X.device)
        for constraint in self.constraints:
            if X.is_cuda:
                met &= constraint.is_met(X)
                continue
            (rows,) = met.nonzero(as_tuple=True)
            if not len(rows):
                break
            met[rows] = constraint.is_met(X[rows])
        return met

    def population(self, num_points: int, seed: int) -> Population:
        """Draw points that represent the region.

        A quarter of the points is uniform in the region. Up to half are the first member, other
        members at random, and points on faces of the box. The rest, at least a quarter, moves from
        these points towards faces of the box, as far as the region goes: the largest posterior
        standard deviations are on the boundary.

        Args:
            num_points: How many points to draw, at least 4.
            seed: The seed. The same seed gives the same points.

        Returns:
            The points, all in the region, and the volume of the region.

        Raises:
            ValueError: If ``num_points`` is below 4, or the region has no members and no other
                point of it was found.
        """
        return drawn_population(self, num_points, seed)

    def extent(self, population: Tensor) -> Tensor:
        """The extent of a population in each coordinate.

        Args:
            population: ``m x d`` points.

        Returns:
            ``d`` lengths, each at least a thousandth of the side of the box.
        """
        extent = population.amax(dim=0) - population.amin(dim=0)
        return extent.maximum(1e-3 * (self.box.upper - self.box.lower))

    def maximize(
        self, objective: Objective, points: Tensor, num_starts: int = 6, tolerance: float = 1e-9
    ) -> tuple[Tensor, Tensor]:
        """Maximise an objective over the region.

        The best of the screened points are improved by L-BFGS-B in the box, or by feasible ascent
        if L-BFGS-B leaves the region.

        Args:
            objective: The objective to maximise.
            points: ``m x d`` points of the region to screen, such as a population. The members are
                screened too.
            num_starts: How many of the best points are improved.
            tolerance: How far below its maximum a climb may end, relative to the spread of the
                screened values.

        Returns:
            The ``d``-dim maximiser found, which lies in the region, and its value.

        Raises:
            ValueError: If there are no points and no members.
        """
        X = torch.cat([self.members, as_points(points.detach(), self.dim, self.like, "points")])
        if not len(X):
            raise ValueError("points must not be empty if the region has no members")
        values = evaluate(objective, X)
        first = values.argmax(dim=0, keepdim=True)
        best, best_value = X[first], values[first]
        scaled = on_unit_cube(objective.value_and_gradient, self.box, values)
        starts = self.box.to_unit(X[spread_best(values, X, self.box, num_starts)])
        free, _ = batched_lbfgsb(scaled, starts, tolerance)
        inside = self._unit_meets(free)
        ends = free[inside]
        if len(ends) < len(starts):
            held, _ = feasible_ascent(scaled, starts[~inside], self._unit_meets, _NUM_STEPS)
            ends = torch.cat([ends, held])
        X = self.box.from_unit(ends)
        # A start that never moved can be outside, by the rounding of its coordinates.
        values = torch.where(self.meets(X), objective.value(X), -torch.inf)
        top = values.argmax(dim=0, keepdim=True)
        improved = values[top] > best_value
        best = torch.where(improved, X[top], best)
        return best[0], torch.where(improved, values[top], best_value)[0]

    def _margin(self, X: Tensor, level: Tensor | float = -math.inf) -> Tensor:
        margin = X.new_full((len(X),), math.inf)
        # Oldest first: a round knows little outside its own region, which the earlier ones bound.
        for constraint in self.constraints:
            if X.is_cuda:
                margin = torch.minimum(margin, constraint.slack(X, level))
                continue
            (rows,) = (margin >= level).nonzero(as_tuple=True)
            if not len(rows):
                break
            slack = constraint.slack(X[rows], level)
            margin = margin.index_put((rows,), torch.minimum(margin[rows], slack))
        return margin

    def _unit_meets(self, U: Tensor) -> Tensor:
        return self.meets(self.box.from_unit(U))
