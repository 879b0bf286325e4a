"""Balls of perturbations inside a box, and the least value of a function in each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains import Box, host
from botorch_ext.domains.distances import distances
from botorch_ext.domains.ranks import highest_first
from botorch_ext.search.ball_descent import CutBall, Norm, descend
from botorch_ext.search.ball_newton import polish
from botorch_ext.search.objectives import Objective
from botorch_ext.state import Immutable

# Screening evaluates this many points in one call.
_CHUNK = 2**15
# Neighbours among the screened offsets that a start must not be above.
_NEIGHBOURS = 8
# A coordinate or an offset this close to its bound, relative to the radius, is on it.
_ON_BOUND = 1e-9


class _Starts(NamedTuple):
    """The starts of the searches around ``k x *batch x d`` points.

    Args:
        offsets: ``s x k x *batch x d`` offsets.
        spread: The ``k x *batch`` spreads of the values seen.
        promising: ``s x k x *batch`` booleans: which offsets have no better neighbour.
        ball: The allowed offsets of each point.
    """

    offsets: Tensor
    spread: Tensor
    promising: Tensor
    ball: CutBall

    def flat(self, X: Tensor) -> tuple[Tensor, Tensor, CutBall]:
        """Points, offsets and balls of each start, ``(s k) x *batch x d``."""
        shape = len(self.offsets), *X.shape
        center, low, high = (
            a.expand(shape).flatten(0, 1) for a in (X, self.ball.low, self.ball.high)
        )
        return center, self.offsets.flatten(0, 1), CutBall(low, high, self.ball.norm)


class BoxBalls(Immutable):
    """The balls around the points of a box, cut off at its faces.

    Args:
        box: The box.
        radii: The radius of each coordinate, at least 0.
        norm: The norm of the balls: "l2" or "linf".
        num_screened: How many offsets are evaluated first; None for 64 (d + 1).
        num_starts: How many of these offsets are improved by descent. Offsets without a better
            neighbour come first.
        max_iterations: The largest number of steps of each descent.
        seed: The seed of the offsets.
    """

    # Offsets are divided by the radii throughout: the ball is the unit ball.

    def __init__(
        self,
        box: Box,
        radii: Tensor,
        norm: Norm,
        num_screened: int | None = None,
        num_starts: int = 8,
        max_iterations: int = 100,
        seed: int = 0,
    ) -> None:
        self.box = box
        self.radii = radii
        self.norm: Norm = norm
        self.num_starts = num_starts
        self.max_iterations = max_iterations
        self._free = (radii > 0).cpu()
        #: Whether there is anything within reach of a point but itself.
        self.moves = bool(self._free.any())
        self._rigid = radii == 0
        self._unit = torch.where(self._rigid, 1, radii)
        self._seed = seed
        self._known: tuple[Tensor, Tensor] | None = None
        self._screens(64 * (box.dim + 1) if num_screened is None else num_screened)

    def _screens(self, num_screened: int) -> None:
        offsets = _offsets(num_screened, self.box.dim, self.norm, self._seed)
        self.offsets = (offsets.to(self.radii.dtype) * self._free).unique(dim=0).to(self.radii)
        apart = self._apart(self.offsets, self.offsets)
        count = min(_NEIGHBOURS, len(self.offsets))
        self._near = apart.topk(count, largest=False).indices
        place = torch.arange(len(self.offsets), device=apart.device)
        self._earlier = self._near < place.unsqueeze(-1)

    def _apart(self, U: Tensor, V: Tensor) -> Tensor:
        """Distances between ``n x d`` and ``l x d`` offsets, ``n x l``."""
        if self.norm == "l2":
            return distances(U, V)
        return (U.unsqueeze(1) - V).abs().amax(dim=-1)

    def searched(self, max_iterations: int, num_screened: int = 0) -> Self:
        """The same balls with another number of steps, and with at least so many offsets."""
        new = self._copy()
        new.max_iterations = max_iterations
        if num_screened > len(self.offsets):
            new._screens(num_screened)
        return new

    def knowing(self, Z: Tensor, values: Tensor) -> Self:
        """The same balls for one function with known values at some points.

        The search around a centre then also starts at the lowest known point within reach.

        Args:
            Z: ``l x d`` points of the box.
            values: The ``l`` values of the function at these points.

        Returns:
            New balls.
        """
        new = self._copy()
        new._known = Z, values
        return new

    def _copy(self) -> Self:
        new = object.__new__(type(self))
        vars(new).update(vars(self))
        return new

    def lowest_known(self, X: Tensor, Z: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The least known value within reach of each centre, and the point that has it.

        Args:
            X: ``... x d`` centres.
            Z: As for `knowing`.
            values: As for `knowing`.

        Returns:
            ``...`` values, infinite if no point is within reach, and the ``...`` rows of the
            points.
        """
        centers = X.reshape(-1, X.shape[-1])
        within = self._apart(centers / self._unit, Z / self._unit) <= 1
        if not self._free.all():
            within &= ((centers.unsqueeze(1) == Z) | ~self._rigid).all(dim=-1)
        least, rows = torch.where(within, values, torch.inf).min(dim=-1)
        return least.view(X.shape[:-1]), rows.view(X.shape[:-1])

    def worst_case(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor]:
        """The least value within reach of each point.

        It is found by screening offsets and by projected gradient descent from the best of them.

        Args:
            objective: The function, from ``k x *batch x d`` points to ``k x *batch`` values, each
                of its own point alone.
            X: ``k x *batch x d`` points of the box.

        Returns:
            ``k x *batch`` least values and the ``k x *batch x d`` points where they are attained.
        """
        values, Z = self.local_worst_cases(objective, X)
        least, which = values.min(dim=0)
        return least, Z.gather(0, which[None, ..., None].expand(1, *X.shape)).squeeze(0)

    def local_worst_cases(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ends of the descents around each point, among them the local minima.

        Args:
            objective: As for `worst_case`.
            X: ``k x *batch x d`` points of the box.

        Returns:
            ``s x k x *batch`` values and the ``s x k x *batch x d`` points where they are attained.
        """
        X = X.detach()
        if not self.moves:
            return objective.value(X).unsqueeze(0), X.clone().unsqueeze(0)
        starts = self._starts(objective, X)
        U, values = descend(
            self._within(objective),
            *starts.flat(X),
            starts.spread.expand(starts.promising.shape).flatten(0, 1),
            starts.promising.flatten(0, 1),
            self.max_iterations,
        )
        shape = starts.promising.shape
        return values.view(shape), self.points(X, U.view(*shape, -1))

    def quick_worst_case(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor]:
        """The least value within reach of each point, as `worst_case` finds it, by Newton steps.

        Only starts that can still be the best take steps, so there are fewer evaluations, of a few
        points each.
        """
        X = X.detach()
        if not self.moves:
            return self.worst_case(objective, X)
        starts = self._starts(objective, X)
        shape = starts.promising.shape
        U, values = polish(
            self._within(objective),
            *starts.flat(X),
            starts.promising.flatten(0, 1),
            self.max_iterations,
            num_centers=len(X),
        )
        least, which = values.view(shape).min(dim=0)
        U = U.view(*shape, -1).gather(0, which[None, ..., None].expand(1, *X.shape)).squeeze(0)
        return least, self.points(X, U)

    def _within(self, objective: Objective) -> Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """The objective as a function of centres and offsets, with its gradient by the offsets."""

        def within(X: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
            values, gradient = objective.value_and_gradient(self.points(X, U))
            return values, gradient * self.radii

        return within

    def follow(self, X: Tensor, Z: Tensor) -> Tensor:
        """The worst points as functions of the centres, to first order.

        A worst point on the sphere moves with its centre. A worst point in the interior, or on a
        face of the box, stays. If the box holds some coordinates of an l2 offset, the others make
        up for their changes. So a function evaluated at the result has the gradient of its worst
        case, wherever the worst point is unique (envelope theorem).

        Args:
            X: ``... x d`` centres, which may require gradients.
            Z: The ``... x d`` worst points of the centres.

        Returns:
            ``Z`` as a differentiable function of ``X``.
        """
        center, Z = X.detach(), Z.detach()
        goes, gain, loss = self._ties(center, Z)
        step = X - center  # zero, with a gradient
        return Z + torch.where(goes, step + gain * (loss * step).sum(dim=-1, keepdim=True), 0)

    def pulled_back(self, X: Tensor, Z: Tensor, gradients: Tensor) -> Tensor:
        """The gradients by the centres of functions with known gradients at the worst points.

        They are the gradients that autograd would compute through `follow`. All are ``... x d``.
        """
        goes, gain, loss = self._ties(X, Z)
        gradients = torch.where(goes, gradients, 0)
        return gradients + loss * (gain * gradients).sum(dim=-1, keepdim=True)

    def _ties(self, X: Tensor, Z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Which coordinates of worst points go with those of their centres, what each gains of the
        squares that others lose, and what each loses by a step of the centre; ``... x d``."""
        rigid = self._rigid
        U = torch.where(rigid, 0, (Z - X) / self._unit)
        face = 16 * torch.finfo(X.dtype).eps * self.box.bounds.abs().amax(dim=0)
        held = ((Z <= self.box.lower + face) | (Z >= self.box.upper - face)) & ~rigid
        if self.norm == "linf":
            moves = (U.abs() >= 1 - _ON_BOUND * self._scale(X)) & ~held
            none = torch.zeros_like(U)
            return moves | rigid, none, none
        free = torch.where(held | rigid, 0, U)
        squared = free.square().sum(dim=-1, keepdim=True)
        on_sphere = U.norm(dim=-1, keepdim=True) >= 1 - _ON_BOUND * self._scale(X).amax()
        moves = on_sphere & ~held & (squared > _ON_BOUND)
        # The sum of squares stays: what the held coordinates lose the free ones gain.
        gain = self.radii * free / squared.clamp_min(_ON_BOUND)
        return moves | rigid, gain, torch.where(held, U / self._unit, 0)

    def _scale(self, X: Tensor) -> Tensor:
        """What rounding of the points makes of an offset, relative to _ON_BOUND."""
        eps = torch.finfo(X.dtype).eps
        largest = self.box.bounds.abs().amax(dim=0) / self._unit
        return 1 + 8 * eps * largest / _ON_BOUND

    def points(self, X: Tensor, U: Tensor) -> Tensor:
        """The ``... x d`` perturbed points for offsets in units of the radii."""
        Z = X + self.radii * U
        return torch.minimum(torch.maximum(Z, self.box.lower), self.box.upper)

    def _ball(self, X: Tensor) -> CutBall:
        low = ((self.box.lower - X) / self._unit).clamp(-1, 0)
        high = ((self.box.upper - X) / self._unit).clamp(0, 1)
        low, high = (torch.where(self._rigid, 0, limit) for limit in (low, high))
        return CutBall(low, high, self.norm)

    def _starts(self, objective: Objective, X: Tensor) -> _Starts:
        """Where the searches around each of ``k x *batch x d`` points start."""
        U = self.offsets.view(-1, *(1,) * (X.ndim - 1), X.shape[-1])
        rows = max(1, _CHUNK * X.shape[-1] // (len(U) * X[0].numel()))
        values = torch.cat(
            [
                objective.value(self.points(x, U).flatten(0, 1)).view(-1, *x.shape[:-1])
                for x in X.split(rows)
            ],
            dim=1,
        )
        values = values.nan_to_num(nan=torch.finfo(values.dtype).max)
        # Of equal ones, such as where the box cuts many offsets down to a corner, the first.
        near, one = values[self._near], values.unsqueeze(1)
        earlier = self._earlier.view(*self._near.shape, *(1,) * (X.ndim - 1))
        shadowed = ((near < one) | ((near == one) & earlier)).any(dim=1)
        spread = values.amax(dim=0) - values.amin(dim=0)
        # First those without a better neighbour, then the others, each from the best on.
        score = values + torch.where(shadowed, 1.1 * spread, 0)
        best = highest_first(-score, self.num_starts, dim=0)
        least = score.gather(0, best)
        promising = least <= values.amax(dim=0)
        ball, offsets = self._ball(X), self.offsets[best]
        if self._known is not None:
            least, rows = self.lowest_known(X, *self._known)
            lowest = ball.nearest((self._known[0][rows] - X) / self._unit)
            offsets = torch.cat([offsets, lowest.unsqueeze(0)])
            promising = torch.cat([promising, least.isfinite().unsqueeze(0)])
        return _Starts(ball.clamp(offsets), spread, promising, ball)


def _offsets(num: int, dim: int, norm: Norm, seed: int) -> Tensor:
    """The centre, points on the axes, and Sobol points of the unit ball, most on its surface."""
    axes = host.eye(dim, dtype=torch.float64)
    count = max(num - 2 * dim - 1, 0)
    inside = count if dim == 1 else count // 2
    cloud = 2 * SobolEngine(dim, scramble=True, seed=seed).draw(count, dtype=torch.float64) - 1
    if norm == "linf":
        # A random share of the coordinates on the faces.
        generator = torch.Generator().manual_seed(seed)
        share = host.rand(count, 1, generator=generator, dtype=torch.float64)
        share[:inside] = 0
        pick = host.rand(cloud.shape, generator=generator, dtype=torch.float64) < share
        cloud = torch.where(pick, cloud.sign(), cloud)
    else:
        normal = torch.special.ndtri((0.5 * (cloud + 1)).clamp(1e-9, 1 - 1e-9))
        length = host.ones(count, 1, dtype=torch.float64)
        length[:inside, 0] = host.arange(1, inside + 1).double().div(inside + 1) ** (1 / dim)
        cloud = length * normal / normal.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    return torch.cat([torch.zeros_like(axes[:1]), axes, -axes, cloud])
