"""Balls of perturbations inside a box, and the least value of a function in each of them."""

from __future__ import annotations

import math
from functools import reduce
from typing import Literal

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_ext.domains import Box
from botorch_ext.search.box import Objective

Norm = Literal["l2", "linf"]

# Screening evaluates this many points in one call.
_CHUNK = 2**15
# Neighbours among the screened offsets that a start must not be above.
_NEIGHBOURS = 8
# Share of the predicted gain that a step must reach (Armijo), and how often it is halved.
_SUFFICIENT = 1e-4
_MAX_HALVINGS = 20
# Steps without a gain above rounding, after which a descent ends.
_MAX_IDLE = 8
# A coordinate or an offset this close to its bound, relative to the radius, is on it.
_ON_BOUND = 1e-9


class BoxBalls:
    """The balls around the points of a box, cut off at its faces.

    Args:
        box: The box.
        radii: One for each coordinate, at least 0.
        norm: "l2" or "linf".
        num_screened: Offsets that are looked at first; None for 64 (d + 1).
        num_starts: How many of them are polished, those without a better neighbour first.
        max_iterations: Steps of each polish.
        seed: Seeds the offsets.
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
        num_screened = 64 * (box.dim + 1) if num_screened is None else num_screened
        self.offsets = _offsets(num_screened, self.radii, self.norm, seed)
        distances = torch.cdist(self.offsets, self.offsets, p=2 if self.norm == "l2" else math.inf)
        count = min(_NEIGHBOURS, len(self.offsets))
        self._near = distances.topk(count, largest=False).indices

    def worst_case(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor]:
        """The least value within reach of each point, found by screening offsets and by projected
        gradient descent from the best of them.

        Args:
            objective: ``k x *batch x d`` to ``k x *batch`` values, each of its own point alone.
            X: ``k x *batch x d``, points of the box.

        Returns:
            ``k x *batch`` least values and the ``k x *batch x d`` points where they are attained.
        """
        values, Z = self.local_worst_cases(objective, X)
        least, which = values.min(dim=0)
        return least, Z.gather(0, which[None, ..., None].expand(1, *X.shape)).squeeze(0)

    def local_worst_cases(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor]:
        """Where the descents around each point end, the local minima among them.

        Args:
            objective: As for `worst_case`.
            X: ``k x *batch x d``.

        Returns:
            ``s x k x *batch`` values and the ``s x k x *batch x d`` points where they are attained.
        """
        X = X.detach()
        if not bool((self.radii > 0).any()):
            return objective.value(X).unsqueeze(0), X.clone().unsqueeze(0)
        U, spread, promising = self._screened(objective, X)
        starts, *batch = promising.shape[:1] + X.shape[:-1]
        centers = X.expand(starts, *X.shape).flatten(0, 1)
        spread = spread.expand(starts, *batch).flatten(0, 1)
        U, values = self._polished(
            objective, centers, U.flatten(0, 1), spread, promising.flatten(0, 1)
        )
        return values.view(starts, *batch), self.points(X, U.view(starts, *X.shape))

    def follow(self, X: Tensor, Z: Tensor) -> Tensor:
        """The worst points as functions of the centres, to first order.

        A worst point on the sphere moves with its centre, one in the interior or on a face of the
        box stays; where the box holds some coordinates of an l2 offset, the others make up for
        their changes. So a function evaluated at the result has the gradient of its worst case,
        wherever the worst point is unique (envelope theorem).

        Args:
            X: ``... x d`` centres, which may require gradients.
            Z: ``... x d``, their worst points.

        Returns:
            ``Z``, attached to ``X``.
        """
        center = X.detach()
        Z = Z.detach()
        rigid = self.radii == 0
        U = torch.where(rigid, 0, (Z - center) / torch.where(rigid, 1, self.radii))
        face = 16 * torch.finfo(X.dtype).eps * self.box.bounds.abs().amax(dim=0)
        held = ((Z <= self.box.lower + face) | (Z >= self.box.upper - face)) & ~rigid
        step = X - center  # zero, with a gradient
        if self.norm == "linf":
            moves = (U.abs() >= 1 - _ON_BOUND * self._scale(center)) & ~held
            return Z + torch.where(moves | rigid, step, 0)
        free = torch.where(held | rigid, 0, U)
        squared = free.square().sum(dim=-1, keepdim=True)
        on_sphere = U.norm(dim=-1, keepdim=True) >= 1 - _ON_BOUND * self._scale(center).amax()
        moves = on_sphere & ~held & (squared > _ON_BOUND)
        # The sum of squares stays: what the held coordinates lose the free ones gain.
        lost = (torch.where(held, U * step / torch.where(rigid, 1, self.radii), 0)).sum(
            dim=-1, keepdim=True
        )
        gained = self.radii * free * lost / squared.clamp_min(_ON_BOUND)
        return Z + torch.where(moves | rigid, step + gained, 0)

    def _scale(self, X: Tensor) -> Tensor:
        """What rounding of the points makes of an offset, relative to _ON_BOUND."""
        eps = torch.finfo(X.dtype).eps
        largest = self.box.bounds.abs().amax(dim=0) / torch.where(self.radii > 0, self.radii, 1)
        return 1 + 8 * eps * largest / _ON_BOUND

    def points(self, X: Tensor, U: Tensor) -> Tensor:
        """The perturbed points, ``... x d``, of offsets in units of the radii."""
        Z = X + self.radii * U
        return torch.minimum(torch.maximum(Z, self.box.lower), self.box.upper)

    def _limits(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """How far each coordinate of an offset may go down and up."""
        radii = torch.where(self.radii > 0, self.radii, 1)
        low = ((self.box.lower - X) / radii).clamp(-1, 0)
        high = ((self.box.upper - X) / radii).clamp(0, 1)
        rigid = self.radii == 0
        return torch.where(rigid, 0, low), torch.where(rigid, 0, high)

    def _projected(self, U: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """The nearest offset of the ball whose point lies in the box."""
        clamped = torch.minimum(torch.maximum(U, low), high)
        if self.norm == "linf":
            return clamped
        # clamp(s U) with the largest s <= 1 that brings it into the ball; exactly, since the norm
        # is known between the s at which one more coordinate meets its limit.
        size, limit = U.abs(), torch.where(U > 0, high, -low)
        meets = torch.where(size > 0, limit / size.clamp_min(1e-300), math.inf)
        order = meets.argsort(dim=-1)
        meets, size, limit = (a.gather(-1, order) for a in (meets, size, limit))
        held = limit.square().cumsum(dim=-1) - limit.square()  # of the coordinates that met theirs
        squared = size.square()
        free = squared.flip(-1).cumsum(dim=-1).flip(-1)  # of the others
        s = ((1 - held).clamp_min(0) / free.clamp_min(1e-300)).sqrt()
        # The first piece that ends beyond its own solution; where none does the ball is not met.
        s = s.gather(-1, (s <= meets).to(torch.uint8).argmax(dim=-1, keepdim=True))
        return torch.where(
            clamped.norm(dim=-1, keepdim=True) <= 1,
            clamped,
            torch.minimum(torch.maximum(s.clamp_max(1) * U, low), high),
        )

    def _screened(self, objective: Objective, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The offsets to start from, ``s x k x *batch x d``, the spread of the values seen, ``k x
        *batch``, and which of the starts have no better neighbour, ``s x k x *batch``."""
        low, high = self._limits(X)
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
        place = torch.arange(len(U), device=X.device).view(-1, *(1,) * (X.ndim - 1))
        shadowed = reduce(
            torch.logical_or,
            (
                (values[near] < values) | ((values[near] == values) & (near.view_as(place) < place))
                for near in self._near.T
            ),
        )
        spread = values.amax(dim=0) - values.amin(dim=0)
        # First those without a better neighbour, then the others, each from the best on.
        score = values + torch.where(shadowed, 1.1 * spread, 0)
        least, best = score.topk(min(self.num_starts, len(score)), dim=0, largest=False)
        promising = least <= values.amax(dim=0)
        U = torch.minimum(torch.maximum(self.offsets[best], low), high)
        return U, spread, promising

    def _polished(
        self, objective: Objective, X: Tensor, U: Tensor, spread: Tensor, moving: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Spectral projected gradient descent (Birgin, Martinez and Raydan 2000) of many starts at
        once, each from its own offset around its own centre.

        Args:
            objective: What to minimise.
            X: ``n x *batch x d`` centres.
            U: ``n x *batch x d`` offsets.
            spread: ``n x *batch``: how much the objective varies in each ball.
            moving: ``n x *batch``: which starts are polished; the others stay.

        Returns:
            Offsets and values, none above its start.
        """
        eps = torch.finfo(X.dtype).eps

        def evaluate(X: Tensor, U: Tensor) -> tuple[Tensor, Tensor]:
            values, gradient = objective.value_and_gradient(self.points(X, U))
            return values, gradient * self.radii

        final_U, (final_f, g) = U.clone(), evaluate(X, U)
        rows, f = torch.arange(len(X), device=X.device), final_f.clone()
        low, high = self._limits(X)
        # Gradients are of the order of the spread; a flat function is at its minimum.
        scale = spread.clamp_min(1e-300).unsqueeze(-1)
        first = 1 / torch.maximum(g.norm(dim=-1, keepdim=True), scale)
        step, slack = first, 10 * eps * f.abs()
        idle = torch.zeros_like(f)
        for _ in range(self.max_iterations):
            plain = self._projected(U - g / scale, low, high) - U
            moving = moving & (plain.norm(dim=-1) > eps**0.6) & (idle < _MAX_IDLE)
            alive = moving.flatten(1).any(dim=-1) if moving.ndim > 1 else moving
            if not bool(alive.all()):
                rows, X, U, f, g, low, high, scale, first, step, slack, idle, moving = (
                    a[alive]
                    for a in (rows, X, U, f, g, low, high, scale, first, step, slack, idle, moving)
                )
            if not len(rows):
                break
            direction = self._projected(U - step * g, low, high) - U
            direction = torch.where(moving.unsqueeze(-1), direction, 0)
            slope = (g * direction).sum(dim=-1)
            length = torch.ones_like(f)
            V = U + direction
            new_f, new_g = evaluate(X, V)
            for _ in range(_MAX_HALVINGS):
                # Near the end rounding decides: what is above by no more than that is no worse.
                short = moving & ~(new_f <= f + _SUFFICIENT * length * slope + slack)
                short &= -length * slope > slack
                bad = short.flatten(1).any(dim=-1) if short.ndim > 1 else short
                (bad,) = bad.nonzero(as_tuple=True)
                if not len(bad):
                    break
                length = torch.where(short, 0.5 * length, length)
                V[bad] = U[bad] + length[bad].unsqueeze(-1) * direction[bad]
                new_f[bad], new_g[bad] = evaluate(X[bad], V[bad])
            moving = moving & (new_f <= f + slack)  # where not nothing is to be gained
            taken = moving.unsqueeze(-1)
            s, y = V - U, new_g - g
            curvature = (s * y).sum(dim=-1, keepdim=True)
            spectral = s.square().sum(dim=-1, keepdim=True) / curvature
            step = torch.where(curvature > 0, spectral, 10 * step)
            step = step.clamp(1e-6 * first, 1e6 * first)
            idle = torch.where(f - new_f <= slack, idle + 1, 0)
            U, g = torch.where(taken, V, U), torch.where(taken, new_g, g)
            f = torch.where(moving, new_f, f)
            final_U[rows], final_f[rows] = U, f
        return final_U, final_f


def _offsets(num: int, radii: Tensor, norm: Norm, seed: int) -> Tensor:
    """The centre, points on the axes, and Sobol points of the unit ball, most on its surface."""
    dim = len(radii)
    axes = torch.eye(dim, dtype=torch.float64)
    count = max(num - 2 * dim - 1, 0)
    inside = count if dim == 1 else count // 2
    cloud = 2 * SobolEngine(dim, scramble=True, seed=seed).draw(count, dtype=torch.float64) - 1
    if norm == "linf":
        # A random share of the coordinates on the faces.
        generator = torch.Generator().manual_seed(seed)
        share = torch.rand(count, 1, generator=generator, dtype=torch.float64)
        share[:inside] = 0
        pick = torch.rand(cloud.shape, generator=generator, dtype=torch.float64) < share
        cloud = torch.where(pick, cloud.sign(), cloud)
    else:
        normal = torch.special.ndtri((0.5 * (cloud + 1)).clamp(1e-9, 1 - 1e-9))
        length = torch.ones(count, 1, dtype=torch.float64)
        length[:inside, 0] = torch.arange(1, inside + 1).double().div(inside + 1) ** (1 / dim)
        cloud = length * normal / normal.norm(dim=-1, keepdim=True).clamp_min(1e-300)
    offsets = torch.cat([torch.zeros_like(axes[:1]), axes, -axes, cloud])
    return (offsets.to(radii) * (radii > 0)).unique(dim=0)
