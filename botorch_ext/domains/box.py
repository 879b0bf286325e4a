"""Box: a box in R^d whose columns may be integer, stepped, logarithmic, categorical or conditional,
and which may have constraints."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.checks import did_you_mean, one_number, short, whole_number
from botorch_ext.domains.bounds import BoundsLike, as_bounds, as_corners
from botorch_ext.domains.feasible_points import FeasiblePoints
from botorch_ext.domains.function_constraints import FunctionConstraints
from botorch_ext.domains.linear_constraints import LinearConstraints
from botorch_ext.domains.points import (
    Params,
    PointsLike,
    as_points,
    checked_rows,
    numbered,
    require_finite,
)
from botorch_ext.domains.scales import Scales
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.state import Immutable

# The largest number of dimensions for which `Box.corners` lists all 2^d corners.
_MOST_CORNERS_DIM = 8


@dataclass(frozen=True, eq=False, init=False)
class Box(Immutable):
    """A box in R^d: all points within the bounds or, with integer, stepped or categorical columns
    and linear constraints, those points that they allow.

    A kernel sees points as they are, in their units and with their codes. `from_unit` and `to_unit`
    map from and to the unit cube, where a logarithmic column is scaled by its logarithm.

    Example:
        >>> import botorch_ext as bx
        >>> box = bx.Box([(20, 80), (0, 10)], integer=[1])
        >>> box.contains([[25.5, 3], [25.5, 3.5]])
        tensor([ True, False])
        >>> box.to_unit([50, 5])
        tensor([0.5000, 0.5000], dtype=torch.float64)

    Args:
        bounds: The bounds of the columns. A list of tuples holds the pair (lower, upper) of each
            column, as in ``[(0, 20), (1, 80)]``. A ``2 x d`` tensor holds the lower corner, then
            the upper corner; so do two lists or an array, unless they could be two pairs as well.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device that everything on this domain runs on.
        lower: The lower corner, ``d``; given together with ``upper`` in place of ``bounds``.
        upper: The upper corner, ``d``.
        integer: The columns that take only whole numbers: all those within the bounds.
        steps: A dict from a column to its step, as in ``{2: 0.5}``: the column takes only its lower
            bound and the numbers within the bounds that are whole steps above it. A number that
            misses a step by rounding is taken for that step.
        log: The columns that are sampled and searched by their logarithm; their lower bounds must
            be above 0.
        categories: A dict from a column to its codes: numbers within the bounds without an order.
        constraints: A pair ``(A, b)``, ``m x d`` and ``m``: the box holds only points x with
            A x <= b, in the units of the points. No column of ``conditions`` may be in them.
        conditions: Columns that count only where a parent column has certain values. For example
            ``{3: (0, [1, 2])}``: column 3 counts only where column 0 is 1 or 2. The parent must be
            one of ``integer``, ``steps`` or ``categories`` and may have a condition itself. A
            column that does not count is inactive, and all points of the box have the same value
            there: the middle of its range, or its first code. Points that are given may have any
            value there, also NaN; the value is replaced.

    Raises:
        ValueError: If the bounds have another form, are not finite, or have a lower bound that is
            not below its upper bound; if they could be rows as well as pairs, such as
            ``[[0, 1], [20, 80]]``; if a column, step, code, constraint or condition is impossible;
            or if no point satisfies the constraints.
    """

    bounds: Tensor
    integer: tuple[int, ...]
    steps: Mapping[int, float]
    log: tuple[int, ...]
    categories: Mapping[int, tuple[float, ...]]
    constraints: tuple[Tensor, Tensor] | FunctionConstraints | None
    conditions: Mapping[int, tuple[int, tuple[float, ...]]]
    _scales: Scales | None
    _limits: LinearConstraints | FunctionConstraints | None
    _points: FeasiblePoints | None

    def __init__(
        self,
        bounds: BoundsLike | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        *,
        lower: Sequence[float] | Tensor | None = None,
        upper: Sequence[float] | Tensor | None = None,
        integer: Iterable[int] = (),
        log: Iterable[int] = (),
        categories: Mapping[int, Sequence[float]] | None = None,
        constraints: tuple[Tensor | Sequence[Sequence[float]], Tensor | Sequence[float]]
        | FunctionConstraints
        | None = None,
        # As the attribute then is: studies of earlier versions, which have none, have the default.
        conditions: Mapping[int, tuple[int, Sequence[float]]] | None = MappingProxyType({}),
        steps: Mapping[int, float] | None = MappingProxyType({}),
    ) -> None:
        if lower is None and upper is None:
            bounds = as_bounds(bounds, dtype, device)
        elif bounds is None and lower is not None and upper is not None:
            bounds = as_corners(lower, upper, dtype, device)
        else:
            raise ValueError(
                "lower and upper must be given together and without bounds, got "
                f"{short(lower)} and {short(upper)}"
            )
        scales = limits = None
        kinds = (integer, log, categories, conditions, steps)
        if constraints is not None or any(_is_given(kind) for kind in kinds):
            scales = Scales(
                bounds,
                integer,
                {} if steps is None else steps,
                log,
                {} if categories is None else categories,
                {} if conditions is None else conditions,
            )
        if scales is not None and isinstance(constraints, FunctionConstraints):
            limits = constraints.within(scales)
        elif scales is not None and constraints is not None:
            limits = linear = LinearConstraints(constraints, bounds)
            if both := {*linear.columns} & {*scales.conditions}:
                raise ValueError(
                    f"constraints must not use a column that has a condition, got column "
                    f"{min(both)}"
                )
            if linear.extreme_point(scales, torch.zeros_like(bounds[0])) is None:
                raise ValueError(
                    "constraints must leave a feasible point in the box, got none that satisfies "
                    "all of them"
                )
        self._set("bounds", bounds)
        self._set("integer", () if scales is None else scales.integer)
        self._set("steps", {} if scales is None else scales.steps)
        self._set("log", () if scales is None else scales.log)
        self._set("categories", {} if scales is None else scales.categories)
        is_linear = isinstance(limits, LinearConstraints)
        self._set("constraints", (limits.A, limits.b) if is_linear else limits)
        self._set("conditions", {} if scales is None else scales.conditions)
        self._set("_scales", scales)
        self._set("_limits", limits)
        self._set("_points", None if scales is None else FeasiblePoints(scales, limits))

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
    def is_plain(self) -> bool:
        """Whether the box has nothing but bounds."""
        return self._scales is None

    @property
    def is_filled(self) -> bool:
        """Whether every point within the bounds belongs to the box."""
        return self._scales is None or not (self._scales.stepped or self._limits)

    @cached_property
    def corners(self) -> Tensor:
        """The corners that belong to the box, ``n x d``: all of them with up to 8 columns, only the
        lower and the upper one with more columns."""
        ends = self.ends
        if self.dim <= _MOST_CORNERS_DIM:
            ends = torch.cartesian_prod(*ends.T).view(-1, self.dim)
        if self._scales is not None and self.conditions:
            ends = self._scales.settled(ends).unique(dim=0)
        return ends if self._limits is None else ends[self._limits.hold(ends)]

    @property
    def constrained(self) -> list[int]:
        """The columns that a constraint may use."""
        return [] if self._limits is None else self._limits.columns

    @property
    def stepped(self) -> tuple[int, ...]:
        """The columns that take only certain numbers: whole numbers, other steps or codes."""
        return () if self._scales is None else self._scales.stepped

    @property
    def codes(self) -> Mapping[int, Tensor]:
        """The `categories` as tensors on the device of the box."""
        return {} if self._scales is None else self._scales.codes

    @property
    def located_codes(self) -> Mapping[int, Tensor]:
        """From each column whose codes have descriptors to the positions of the codes in descriptor
        space, ``k x p``; only a `Space` can have such columns."""
        return {}

    @property
    def distances(self) -> Mapping[int, float]:
        """From each column of whole numbers or other steps to the distance between neighbouring
        values."""
        return {} if self._scales is None else self._scales.distances

    @property
    def ends(self) -> Tensor:
        """The least and the largest value that each column can take, ``2 x d``."""
        return self.bounds if self._scales is None else self._scales.ends

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
        """The same box in another dtype or on another device.

        Args:
            dtype: The dtype of the result; None keeps it.
            device: The device of the result; None keeps it.

        Returns:
            A new `Box`, without names.
        """
        return Box(
            self.bounds,
            dtype=dtype,
            device=device,
            integer=self.integer,
            steps=self.steps,
            log=self.log,
            categories=self.categories,
            constraints=self.constraints,
            conditions=self.conditions,
        )

    def require_plain(self, who: str, name: str = "domain") -> None:
        """Check that the box has nothing but bounds.

        Args:
            who: The method that needs this, for the message.
            name: The name of the argument, for the message.

        Raises:
            ValueError: If the box has integer, stepped, logarithmic, categorical or conditional
                columns, or constraints.
        """
        if not self.is_plain:
            raise ValueError(
                f"{name} must be a Box with nothing but bounds for {who}, got {self!r}: use a "
                "method that searches such boxes, as gp_bucb does, or, if this one takes a "
                "FiniteSet, choose among points of the box: FiniteSet(box.sample(1000, seed=0))"
            )

    def contains(self, X: PointsLike) -> Tensor:
        """Which points lie in the box, its faces included.

        Whole numbers and codes are compared exactly, constraints with a small tolerance. Inactive
        columns may have any value.

        Args:
            X: Points, ``n x d``, or one point, ``d``; or one dict of values by name, as `params`
                returns it, or a list of such dicts.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        if (rows := _as_params(X)) is not None:
            return torch.tensor([self._has(row) for row in rows], device=self.device)
        return self._hold(self._read(X))

    def require_contains(self, X: PointsLike, name: str = "X") -> Tensor:
        """Check that all points lie in the box.

        Args:
            X: Points, as for `contains`.
            name: The name of the argument, for the message.

        Returns:
            The points as an ``n x d`` tensor, with inactive columns at their resting value.

        Raises:
            OutsideDomainError: If a point lies outside; the message names the first one.
            ValueError: If ``X`` has the wrong shape, dtype or device, or an entry is not finite.
        """
        X = self._read(X, name)
        outside = (~self._hold(X)).nonzero()
        if len(outside):
            raise OutsideDomainError(self._what_is_wrong(X[outside[0, 0]], name))
        return X

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the ``d`` columns: ``x0``, ``x1``, ...; in a `Space` those of its
        parameters."""
        return tuple(f"x{j}" for j in range(self.dim))

    def params(self, x: PointsLike) -> dict[str, Any]:
        """The values of a point by name; the inverse of `point`.

        Args:
            x: A point of the box, ``d``.

        Returns:
            A dict with a plain Python value for each column that counts: the numbers of a `Box`, as
            in ``{"x0": 0.3, "x1": 2.0}``, or the values of the parameters of a `Space`.

        Raises:
            OutsideDomainError: If the point lies outside the box.
        """
        return self.params_of(self.require_contains(x, "x")[0])

    def params_of(self, x: Tensor) -> dict[str, Any]:
        """The values by name of a tensor that is known to be a point of the box.

        Args:
            x: A point, ``d``; it is not checked.

        Returns:
            The dict that `params` returns.
        """
        if not self.conditions:
            return numbered(x)
        counts = zip(numbered(x).items(), self.active(x).tolist(), strict=True)
        return dict(item for item, is_active in counts if is_active)

    def point(self, params: Params, name: str = "params") -> Tensor:
        """The point that has these values; the inverse of `params`.

        Args:
            params: Values by name, for all columns that count; values of other columns are ignored.
            name: The name of the argument, for messages.

        Returns:
            The point, ``d``.

        Raises:
            ValueError: If a name is missing or unknown.
            OutsideDomainError: If a column cannot take its value, or a constraint does not hold.
        """
        require_known(params, self.names, name)
        x = []
        for j, column in enumerate(self.names):
            if column not in params and j not in self.conditions:
                raise ValueError(f"{name} must have {column}, got values for {list(params)} only")
            x.append(one_number(params[column], column) if column in params else math.nan)
        return self.require_contains(self.bounds.new_tensor(x), name)[0]

    def _has(self, params: Params) -> bool:
        try:
            self.point(params, "X")
        except OutsideDomainError:
            return False
        return True

    def active(self, X: PointsLike) -> Tensor:
        """Which columns count at each point: all of them, unless ``conditions`` say otherwise.

        Args:
            X: Points, ``... x d``.

        Returns:
            Booleans, ``... x d``.
        """
        X = checked_rows(X, self.dim, self.bounds)
        if self._scales is None:
            return torch.ones_like(X, dtype=torch.bool)
        return self._scales.active(X)

    def _read(self, X: PointsLike, name: str = "X") -> Tensor:
        """Points as an ``n x d`` tensor, with inactive columns at their resting value."""
        if (rows := _as_params(X)) is not None:
            return torch.stack([self.point(row, name) for row in rows])
        if self._scales is None:
            return as_points(X, self.dim, self.bounds, name)
        X = as_points(X, self.dim, self.bounds, name, look=not self.conditions)
        if self.conditions:
            X = self._scales.settled(X)
            require_finite({name: X})
        return self._scales.cleaned(X)

    def _hold(self, X: Tensor) -> Tensor:
        inside = ((X >= self.lower) & (X <= self.upper)).all(dim=-1)
        if self._scales is not None:
            inside &= self._scales.admits(X).all(dim=-1)
        if self._limits is not None:
            inside &= self._limits.hold(X)
        return inside

    def _what_is_wrong(self, x: Tensor, name: str) -> str:
        """The error message for a point outside the box, ``d``."""
        return f"{name} must {self._rule_broken_by(x)}, got {x.tolist()}"

    def _rule_broken_by(self, x: Tensor) -> str:
        if self._scales is not None and bool(((x >= self.lower) & (x <= self.upper)).all()):
            for j in (~self._scales.admits(x[None])[0]).nonzero().flatten().tolist():
                kind = "a whole number"
                if j in self.categories:
                    kind = f"one of the codes {list(self.categories[j])}"
                elif j in self.steps:
                    kind = f"{float(self.lower[j])} and steps of {self.steps[j]}"
                return f"have {kind} in column {j}"
            if isinstance(self._limits, FunctionConstraints):
                return f"satisfy {self._limits.broken_by(x)}"
            if self._limits is not None:
                row = int(self._limits.excess(x[None])[0].argmax())
                a, b = (values[row].tolist() for values in (self._limits.A, self._limits.b))
                return f"satisfy constraint {row}, {a} x <= {b}"
        return f"lie in the box {self.bounds.tolist()}"

    @property
    def listed(self) -> Tensor | None:
        """All points of the box, ``n x d``, if no column is continuous and there are at most 4096
        points; otherwise None."""
        return None if self._points is None else self._points.listed

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Random points of the box: scrambled Sobol points that satisfy the constraints.

        If few Sobol points satisfy the constraints, the points come from a random walk, which is
        uniform in the columns that the constraints use, logarithmic ones included.

        Args:
            num_points: The number of points.
            seed: The same seed gives the same points.

        Returns:
            Points, ``num_points x d``.
        """
        num_points = whole_number(num_points, "num_points", least=0)
        seed = whole_number(seed, "seed")
        if num_points == 0:  # a SobolEngine refuses 0
            return self.bounds.new_empty(0, self.dim)
        if self._points is not None:
            return self._points.sample(num_points, seed)
        engine = SobolEngine(self.dim, scramble=True, seed=seed)
        return self.from_unit(engine.draw(num_points, dtype=torch.float64).to(self.bounds))

    def from_unit(self, U: PointsLike) -> Tensor:
        """Map points of the unit cube into the box, ignoring its constraints.

        Every whole number or code of a column has an equal part of the unit interval.

        Args:
            U: Points of the unit cube, ``... x d``.

        Returns:
            Points within the bounds, ``... x d``.
        """
        U = checked_rows(U, self.dim, self.bounds, "U")
        if self._scales is not None:
            return self._scales.from_unit(U)
        # Rounding can carry the sum past the upper corner.
        return torch.minimum(self.lower + (self.upper - self.lower) * U, self.upper)

    def to_unit(self, X: PointsLike) -> Tensor:
        """Map points of the box to the unit cube.

        Whole numbers and codes become the middles of their parts of the unit interval.

        Args:
            X: Points of the box, ``... x d``.

        Returns:
            Points of the unit cube, ``... x d``.
        """
        X = checked_rows(X, self.dim, self.bounds)
        if self._scales is not None:
            return self._scales.to_unit(self._scales.settled(X))
        return (X - self.lower) / (self.upper - self.lower)

    def to_distances(self, X: PointsLike) -> Tensor:
        """Map points as `to_unit` does, but keep any two codes of a column at least 1 apart.

        Args:
            X: Points of the box, ``... x d``.

        Returns:
            Points, ``... x d``, by which the distances of points of the box are measured.
        """
        U = self.to_unit(X)
        for j, codes in self.categories.items():
            U[..., j] *= len(codes)
        return U

    def stretch(self, X: Tensor) -> Tensor:
        """The derivative of `from_unit` in each column.

        Args:
            X: Points of the box, ``... x d``.

        Returns:
            ``... x d``, or ``d`` where it is the same for all points: how far a column moves per
            unit of the cube; 0 in columns of whole numbers, steps or codes.
        """
        return self.upper - self.lower if self._scales is None else self._scales.stretch(X)

    def nearby(self, targets: Tensor, otherwise: Tensor) -> Tensor:
        """Move points to nearby points of the box.

        Columns that take only certain numbers are rounded, and the points are moved until the
        constraints hold.

        Args:
            targets: Points within the bounds, ``n x d``.
            otherwise: Points of the box, ``n x d``, that replace targets near which no point of the
                box is found.

        Returns:
            Points of the box, ``n x d``.
        """
        if self._scales is None:
            return targets
        if self._limits is None:
            return self._scales.snapped(targets)
        if isinstance(self._limits, FunctionConstraints):
            return self._limits.nearby(targets, otherwise)
        X = self._limits.nearby(targets, self._scales)
        holds = self._limits.hold(X)[:, None]
        if not self.stepped or bool(holds.all()):
            return torch.where(holds, X, otherwise)
        # Constraints that fail with rounded numbers may hold with those of `otherwise`.
        kept = targets.clone()
        kept[:, list(self.stepped)] = otherwise[:, list(self.stepped)]
        kept = self._limits.nearby(kept, self._scales)
        kept = torch.where(self._limits.hold(kept)[:, None], kept, otherwise)
        return torch.where(holds, X, kept)

    def settable(self, X: Tensor) -> Tensor:
        """Round points to the digits that are asked; only a `Space` can have such columns.

        Args:
            X: Points of the box, ``... x d``.

        Returns:
            Points of the box, ``... x d``: here the same ones.
        """
        return X

    def without_steps(self) -> Box:
        """The same box with continuous columns in place of whole numbers and other steps.

        Such a column reaches half a step beyond either end. Columns that are parents of conditions
        keep their steps. Python functions are no constraints any more, since they may need the
        values that the parameters can have.

        Returns:
            A `Box`: this one where it has no steps.
        """
        return self._without_steps

    @cached_property
    def _without_steps(self) -> Box:
        if self._scales is None or not self.distances:
            return self
        parents = {parent for parent, _ in self.conditions.values()}
        bounds = self._scales.cells.clone()
        for j in parents.intersection(self.steps):
            bounds[:, j] = self.ends[:, j]
        limits: Any = self.constraints
        if isinstance(limits, FunctionConstraints):
            limits = limits.without_called()
        return Box(
            bounds,
            integer=parents.intersection(self.integer),
            steps={j: self.steps[j] for j in parents.intersection(self.steps)},
            log=self.log,
            categories=self.categories,
            constraints=limits,
            conditions=self.conditions,
        )

    def __repr__(self) -> str:
        options: dict[str, Any] = {"integer": list(self.integer), "steps": dict(self.steps)}
        options["log"] = list(self.log)
        options["categories"] = {j: list(codes) for j, codes in self.categories.items()}
        if isinstance(self.constraints, FunctionConstraints):
            options["constraints"] = self.constraints.names
        elif self.constraints is not None:
            options["constraints"] = tuple(tensor.tolist() for tensor in self.constraints)
        options["conditions"] = {
            j: (parent, list(codes)) for j, (parent, codes) in self.conditions.items()
        }
        given = "".join(f", {name}={value}" for name, value in options.items() if value)
        pairs = list(zip(*self.bounds.tolist(), strict=True))
        return f"Box({pairs}{given}, dtype={self.dtype}, device='{self.device}')"

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


def _as_params(X: Any) -> Sequence[Params] | None:
    """Points that are given as dicts of values by name; None if they are given as numbers."""
    if isinstance(X, Mapping):
        return [X]
    return X if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping) else None


def require_known(params: Params, names: Collection[str], name: str) -> None:
    """Check that values by name have only known names.

    Args:
        params: The values by name.
        names: The known names.
        name: The name of the argument, for the message.

    Raises:
        ValueError: If it is not a dict, or has another name.
    """
    if not isinstance(params, Mapping):
        raise ValueError(f"{name} must be a dict of values by name, got {short(params)}")
    for each in params:
        if each not in names:
            hint = did_you_mean(each, names)
            raise ValueError(f"{name} must only have names of {list(names)}, got {each!r}{hint}")


def _is_given(columns: Any) -> bool:
    return not (columns is None or (isinstance(columns, tuple | list | Mapping) and not columns))
