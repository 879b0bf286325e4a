"""Box: a box in R^d, with scales and constraints of its own."""

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

# All 2^d corners of a box of so many dimensions are looked at.
_MOST_CORNERS_DIM = 8


@dataclass(frozen=True, eq=False, init=False)
class Box(Immutable):
    """A box in R^d, all of it or the points of it that columns and constraints allow.

    A kernel sees points as they are, in their units and with their codes. `from_unit` and `to_unit`
    map to the unit cube, where a logarithmic column is its logarithm.

    Args:
        bounds: A list of tuples is the pair (lower, upper) of each column, as in
            ``[(0, 20), (1, 80)]``. A tensor is ``2 x d``: the lower corner, then the upper. So are
            two lists or an array, where they could not be two pairs.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device everything that uses this domain runs on.
        lower: ``d``, the lower corner, together with ``upper`` in place of ``bounds``.
        upper: ``d``, the upper corner.
        integer: Columns that take whole numbers alone, all those within the bounds.
        steps: From a column to a step, as in ``{2: 0.5}``: the column takes its lower bound and
            what lies whole steps above it alone, within the bounds. A number that misses a step by
            rounding is taken for it.
        log: Columns that are sampled and searched by their logarithm; their lower bound is above 0.
        categories: From a column to its codes, numbers within the bounds that have no order.
        constraints: ``(A, b)``, ``m x d`` and ``m``: the points x with A x <= b, in the units of
            the points. They have no column of ``conditions``.
        conditions: Columns that count only where another column has one of some values, as in
            ``{3: (0, [1, 2])}``: column 3 counts only where column 0, one of ``integer``, ``steps``
            or ``categories``, is 1 or 2. The other column may have a condition itself. Where a
            column does not count it is inactive, and all points of the box have one value there:
            the middle of its range, or its first code. Points that are given may have anything
            there, NaN too; it is replaced.

    Raises:
        ValueError: Other bounds, not finite, or a lower bound that is not below its upper bound;
            bounds that could be rows as well as pairs, such as ``[[0, 1], [20, 80]]``; an
            impossible column, step, code, constraint or condition; constraints that no point
            satisfies.
    """

    bounds: Tensor
    integer: tuple[int, ...]
    steps: Mapping[int, float]
    log: tuple[int, ...]
    categories: Mapping[int, tuple[float, ...]]
    constraints: tuple[Tensor, Tensor] | None
    conditions: Mapping[int, tuple[int, tuple[float, ...]]]
    _scales: Scales | None
    _linear: LinearConstraints | None
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
        scales = linear = None
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
        if scales is not None and constraints is not None:
            linear = LinearConstraints(constraints, bounds)
            if both := {*linear.columns} & {*scales.conditions}:
                raise ValueError(
                    f"constraints must have no column of conditions, got column {min(both)}"
                )
            if linear.extreme_point(scales, torch.zeros_like(bounds[0])) is None:
                raise ValueError("constraints must leave a feasible point in the box, got none")
        self._set("bounds", bounds)
        self._set("integer", () if scales is None else scales.integer)
        self._set("steps", {} if scales is None else scales.steps)
        self._set("log", () if scales is None else scales.log)
        self._set("categories", {} if scales is None else scales.categories)
        self._set("constraints", None if linear is None else (linear.A, linear.b))
        self._set("conditions", {} if scales is None else scales.conditions)
        self._set("_scales", scales)
        self._set("_linear", linear)
        self._set("_points", None if scales is None else FeasiblePoints(scales, linear))

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
        """Whether it has nothing but bounds."""
        return self._scales is None

    @property
    def is_filled(self) -> bool:
        """Whether every point within the bounds is one of the box."""
        return self._scales is None or not (self._scales.stepped or self._linear)

    @cached_property
    def corners(self) -> Tensor:
        """Corners that are points of the box, ``n x d``: of up to 8 columns all of them, else those
        of all ends."""
        ends = self.ends
        if self.dim <= _MOST_CORNERS_DIM:
            ends = torch.cartesian_prod(*ends.T).view(-1, self.dim)
        if self._scales is not None and self.conditions:
            ends = self._scales.settled(ends).unique(dim=0)
        return ends if self._linear is None else ends[self._linear.hold(ends)]

    @property
    def stepped(self) -> tuple[int, ...]:
        """The columns that take some numbers only: whole numbers, other steps or codes."""
        return () if self._scales is None else self._scales.stepped

    @property
    def located_codes(self) -> Mapping[int, Tensor]:
        """From each column of codes that have descriptors to where those put them, ``k x p``; a
        `Space` has them."""
        return {}

    @property
    def distances(self) -> Mapping[int, float]:
        """From each column of whole numbers or other steps to the distance of its values."""
        return {} if self._scales is None else self._scales.distances

    @property
    def ends(self) -> Tensor:
        """``2 x d``: the least and the largest value that each column can take."""
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
        """The same box in another dtype or on another device."""
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
        """Raises a ValueError that names the argument unless the box has nothing but bounds."""
        if not self.is_plain:
            raise ValueError(
                f"{name} must be a Box with nothing but bounds for {who}, got {self!r}: choose "
                "among points of it, as FiniteSet(box.sample(1000, seed=0)) has, or use a method "
                "that searches such boxes, as gp_bucb does"
            )

    def contains(self, X: PointsLike) -> Tensor:
        """Which points lie in the box, its faces included: whole numbers and codes exactly,
        constraints with a small tolerance. Inactive columns may have any value.

        Args:
            X: A ``n x d``-dim tensor, or one point; or one dict of values by name, as `params`
                gives them, or a list of such.

        Returns:
            A boolean tensor of ``n`` entries.
        """
        if (rows := _as_params(X)) is not None:
            return torch.tensor([self._has(row) for row in rows], device=self.device)
        return self._hold(self._read(X))

    def require_contains(self, X: PointsLike, name: str = "X") -> Tensor:
        """``X`` as ``n x d`` points, inactive columns at rest, or an `OutsideDomainError` naming
        the first one outside. As for `contains`, ``X`` may have names."""
        X = self._read(X, name)
        outside = (~self._hold(X)).nonzero()
        if len(outside):
            raise OutsideDomainError(self._what_is_wrong(X[outside[0, 0]], name))
        return X

    @property
    def names(self) -> tuple[str, ...]:
        """``d``: what the columns are called: ``x0``, ``x1``, ..., in a `Space` as its parameters
        are."""
        return tuple(f"x{j}" for j in range(self.dim))

    def params(self, x: PointsLike) -> dict[str, Any]:
        """The values of a point by name, plain Python ones, of all columns that count; the inverse
        of `point`. A box has its numbers, ``{"x0": 0.3, "x1": 2.0}``, a `Space` the values of its
        parameters.

        Args:
            x: ``d``, a point of the box.

        Raises:
            OutsideDomainError: Another one.
        """
        return self.params_of(self.require_contains(x, "x")[0])

    def params_of(self, x: Tensor) -> dict[str, Any]:
        """As `params`, of a tensor that is known to be a point of the box."""
        if not self.conditions:
            return numbered(x)
        counts = zip(numbered(x).items(), self.active(x).tolist(), strict=True)
        return dict(item for item, is_active in counts if is_active)

    def point(self, params: Params, name: str = "params") -> Tensor:
        """The point that has these values, ``d``; the inverse of `params`.

        Args:
            params: Values by name, of all columns that count; what others have is not looked at.
            name: Of the argument, for messages.

        Raises:
            ValueError: A name that is missing or unknown.
            OutsideDomainError: A value that a column cannot take, or a constraint that does not
                hold.
        """
        require_known(params, self.names, name)
        x = []
        for j, column in enumerate(self.names):
            if column not in params and j not in self.conditions:
                raise ValueError(f"{name} must have {column}, got values of {list(params)}")
            x.append(one_number(params[column], column) if column in params else math.nan)
        return self.require_contains(self.bounds.new_tensor(x), name)[0]

    def _has(self, params: Params) -> bool:
        try:
            self.point(params, "X")
        except OutsideDomainError:
            return False
        return True

    def active(self, X: PointsLike) -> Tensor:
        """Which columns count at points, ``... x d``: all of them, unless ``conditions`` say
        otherwise.

        Returns:
            Booleans, ``... x d``.
        """
        X = checked_rows(X, self.dim, self.bounds)
        if self._scales is None:
            return torch.ones_like(X, dtype=torch.bool)
        return self._scales.active(X)

    def _read(self, X: PointsLike, name: str = "X") -> Tensor:
        """``n x d`` points, inactive columns at rest."""
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
        if self._linear is not None:
            inside &= self._linear.hold(X)
        return inside

    def _what_is_wrong(self, x: Tensor, name: str) -> str:
        """The message for a point outside, ``d``, of an argument."""
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
            if self._linear is not None:
                row = int(self._linear.excess(x[None])[0].argmax())
                a, b = (values[row].tolist() for values in (self._linear.A, self._linear.b))
                return f"satisfy constraint {row}, {a} x <= {b}"
        return f"lie in the box {self.bounds.tolist()}"

    @property
    def listed(self) -> Tensor | None:
        """All points, ``n x d``, where no column is continuous and they are few; else None."""
        return None if self._points is None else self._points.listed

    def sample(self, num_points: int, seed: int) -> Tensor:
        """Scrambled Sobol points, those that are feasible; where few are, points of a random walk,
        which is uniform in the columns that constraints look at, logarithmic ones too.

        Args:
            num_points: How many.
            seed: The same seed gives the same points.

        Returns:
            A ``num_points x d``-dim tensor.
        """
        num_points = whole_number(num_points, "num_points", least=0)
        seed = whole_number(seed, "seed")
        if num_points == 0:  # which a SobolEngine refuses
            return self.bounds.new_empty(0, self.dim)
        if self._points is not None:
            return self._points.sample(num_points, seed)
        engine = SobolEngine(self.dim, scramble=True, seed=seed)
        return self.from_unit(engine.draw(num_points, dtype=torch.float64).to(self.bounds))

    def from_unit(self, U: PointsLike) -> Tensor:
        """Points of the unit cube, ``... x d``, as points of the box, but for its constraints:
        whole numbers and codes have equal parts of the unit interval."""
        U = checked_rows(U, self.dim, self.bounds, "U")
        if self._scales is not None:
            return self._scales.from_unit(U)
        # Rounding can carry the sum past the upper corner.
        return torch.minimum(self.lower + (self.upper - self.lower) * U, self.upper)

    def to_unit(self, X: PointsLike) -> Tensor:
        """Points of the box, ``... x d``, as points of the unit cube: whole numbers and codes as
        the middles of their parts."""
        X = checked_rows(X, self.dim, self.bounds)
        if self._scales is not None:
            return self._scales.to_unit(X)
        return (X - self.lower) / (self.upper - self.lower)

    def to_distances(self, X: PointsLike) -> Tensor:
        """As `to_unit`, but any two codes are 1 apart or more."""
        U = self.to_unit(X)
        for j, codes in self.categories.items():
            U[..., j] *= len(codes)
        return U

    def stretch(self, X: Tensor) -> Tensor:
        """How fast points of the box, ``... x d``, move with those of the unit cube: 0 in columns
        of whole numbers or codes. It may have fewer dimensions than ``X``."""
        return self.upper - self.lower if self._scales is None else self._scales.stretch(X)

    def nearby(self, targets: Tensor, otherwise: Tensor) -> Tensor:
        """Points of the box near any points: rounded where columns take some numbers only, and
        moved until constraints hold.

        Args:
            targets: ``n x d``, within the bounds.
            otherwise: ``n x d`` points of the box, for those for which no point is found.

        Returns:
            ``n x d``.
        """
        if self._scales is None:
            return targets
        if self._linear is None:
            return self._scales.snapped(targets)
        X = self._linear.nearby(targets, self._scales)
        holds = self._linear.hold(X)[:, None]
        if not self.stepped or bool(holds.all()):
            return torch.where(holds, X, otherwise)
        # With other numbers and codes they may hold.
        kept = targets.clone()
        kept[:, list(self.stepped)] = otherwise[:, list(self.stepped)]
        kept = self._linear.nearby(kept, self._scales)
        kept = torch.where(self._linear.hold(kept)[:, None], kept, otherwise)
        return torch.where(holds, X, kept)

    def without_steps(self) -> Box:
        """The box in which columns of whole numbers or other steps are continuous, half a step
        beyond either end, but for those that others depend on."""
        if self._scales is None or not self.distances:
            return self
        parents = {parent for parent, _ in self.conditions.values()}
        bounds = self._scales.cells.clone()
        for j in parents.intersection(self.steps):
            bounds[:, j] = self.ends[:, j]
        return Box(
            bounds,
            integer=parents.intersection(self.integer),
            steps={j: self.steps[j] for j in parents.intersection(self.steps)},
            log=self.log,
            categories=self.categories,
            constraints=self.constraints,
            conditions=self.conditions,
        )

    def __repr__(self) -> str:
        options: dict[str, Any] = {"integer": list(self.integer), "steps": dict(self.steps)}
        options["log"] = list(self.log)
        options["categories"] = {j: list(codes) for j, codes in self.categories.items()}
        if self.constraints is not None:
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
    """Points that have names, one or a list of them; None where they are numbers alone."""
    if isinstance(X, Mapping):
        return [X]
    return X if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping) else None


def require_known(params: Params, names: Collection[str], name: str) -> None:
    """A ValueError that names the argument unless it is a dict of values of these names."""
    if not isinstance(params, Mapping):
        raise ValueError(f"{name} must be a dict of values by name, got {short(params)}")
    for each in params:
        if each not in names:
            hint = did_you_mean(each, names)
            raise ValueError(f"{name} must be of {list(names)}, got {each!r}{hint}")


def _is_given(columns: Any) -> bool:
    return not (columns is None or (isinstance(columns, tuple | list | Mapping) and not columns))
