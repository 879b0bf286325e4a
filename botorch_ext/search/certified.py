"""The bounds of measured quantities at any point, the points that they certify, and the search of
these points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

import torch
from torch import Tensor

from botorch_ext.domains import Box, host
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.ranks import first_highest
from botorch_ext.limits import Limit
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.search.ascent import VIOLATION, ascent_of_least
from botorch_ext.search.intersected import HalfWidths
from botorch_ext.search.level_sets import hit_and_run
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.screening import spread_best
from botorch_ext.search.sliding import sliding_ascent
from botorch_ext.state import Immutable, shallow
from botorch_ext.widths.limits import Quantity
from botorch_ext.widths.told_data import ToldData

# Optimisers may violate a constraint, so the constraints keep this distance from the edge of the
# certified set, relative to the scale of the outcome. A set of points that may be safe is larger by
# what they may violate.
_CLEARANCE = 1e-5
# Moves of every start away from the point that it begins at.
_NUM_SWEEPS = 8
# The steps of ascents from all starts; then the number of the best ends that ascend further, their
# steps, and the gain, relative to the spread of the starts, at which they end.
_NUM_STEPS = 8
_NUM_LAST, _LAST_STEPS, _LEAST_GAIN = 2, 20, 1e-7
# Points that are evaluated together.
_CHUNK = 1024
#: A differentiable function from ``m x d`` points to ``m`` values, or to the ``s x m`` values of
#: smooth functions, the least of which is the value.
Function = Callable[[Tensor], Tensor]


class CertifiedBounds(Immutable):
    """The confidence bounds of a quantity at any point, from told data alone, and its limit.

    Args:
        model: The model of the quantity with its data; pending points do not count.
        quantity: What is assumed of it. If it has a limit, its bounds are infinite until there are
            data, so that B alone certifies nothing before; else they are kept within the prior mean
            +- B times the prior standard deviation.
    """

    def __init__(self, model: KernelGP, quantity: Quantity) -> None:
        self.quantity = quantity
        self._model, noise = model, model.noise_variance
        self._prior, self._ridged = (
            KernelGP(model.kernel, ridge, model.mean, dtype=noise.dtype, device=noise.device)
            for ridge in (noise, noise * noise.new_tensor(quantity.width.ridges))
        )
        pending = set(model.factor.pending)
        told = [row for row in range(model.num_observations) if row not in pending]
        #: The evaluated points, ``n x d``.
        self.X = Z = model.train_inputs[0][told]
        if told:
            noise = model.relative_noise
            self._ridged.add(Z, model.train_targets[told], None if noise is None else noise[told])
            if hasattr(model, "input_transform"):
                self.X = model.input_transform.untransform(Z)
        self._half = half_widths(quantity, self._ridged)
        #: Points, ``W x d``, with lower and upper bounds that count there; None if there are none.
        self.watched: tuple[Tensor, Tensor, Tensor] | None = None

    def bounds(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and the upper bounds at ``m x d`` points, ``m`` each."""
        lower, upper = self.at_each_ridge(X)
        return lower.amax(dim=0), upper.amin(dim=0)

    def at_each_ridge(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The lower and the upper bounds at each ridge, and of the prior if there is no limit,
        ``s x m`` each."""
        Z, quantity = self._model.transform_inputs(X), self.quantity
        mean, std = self._ridged.mean_and_std(Z)
        half = self._half.of(
            std, self._ridged.weight_norms(Z) if quantity.misspecification else None
        )
        if quantity.limit is None:
            mean, half = map(torch.cat, zip((mean, half), self._prior_interval(Z), strict=True))
        elif not len(self.X):
            half = half + torch.inf
        # A constant has a gradient, too, which optimisers need.
        mean = mean + 0.0 * Z.sum(dim=-1)
        lower, upper = mean - half, mean + half
        if self.watched is None:
            return lower, upper
        points, least, most = self.watched
        same = (X.unsqueeze(-2) == points).all(dim=-1)
        is_watched, row = same.any(dim=-1), same.to(torch.uint8).argmax(dim=-1)
        return (
            torch.where(is_watched, torch.maximum(lower, least[row]), lower),
            torch.where(is_watched, torch.minimum(upper, most[row]), upper),
        )

    @torch.no_grad()
    def watching(
        self, X: Tensor, least: Tensor | float = -torch.inf, most: Tensor | float = torch.inf
    ) -> Self:
        """These bounds, which are intersected at ``n x d`` more points with lower and upper
        ones."""
        lower, upper = self.bounds(X)
        more = X, lower.clamp_min(least), upper.clamp_max(most)
        new = shallow(self)
        known = (part[:0] for part in more) if self.watched is None else self.watched
        new.watched = cast(Any, tuple(map(torch.cat, zip(known, more, strict=True))))
        return new

    def length(self, X: Tensor) -> Tensor:
        """The lengths of the intervals at ``m x d`` points, ``m``."""
        lower, upper = self.bounds(X)
        return upper - lower

    def shares(self, X: Tensor) -> Tensor:
        """The lengths of the intervals at ``m x d`` points, in lengths of those of the prior,
        ``m``."""
        _, reach = self._prior_interval(self._model.transform_inputs(X))
        return shares_of(self.length(X), 2 * reach[0])

    def slack(self, X: Tensor) -> Tensor:
        """By how much the worst value that the bounds allow is within the limit, ``m``."""
        return cast(Limit, self.quantity.limit).slack(*self.bounds(X))

    def possible_slack(self, X: Tensor) -> Tensor:
        """By how much the best value that the bounds allow is within the limit, ``m``."""
        return cast(Limit, self.quantity.limit).slack(*reversed(self.bounds(X)))

    @torch.no_grad()
    def is_refuted_at(self, X: Tensor) -> bool:
        """Whether the bounds contradict each other at points or evaluated points, or the lower
        bound of the RKHS norm exceeds B."""
        lower, upper = self.bounds(torch.cat([X, self.X]) if len(self.X) else X)
        return self.quantity.is_refuted(lower, upper, ToldData.of(self._model))

    def _prior_interval(self, Z: Tensor) -> tuple[Tensor, Tensor]:
        """The middles and the half-lengths of the prior intervals, ``1 x m`` each."""
        mean, std = (each[None] for each in self._prior.mean_and_std(Z))
        return mean, self.quantity.reach(std)


def half_widths(quantity: Quantity, posterior: GrowingPosterior) -> HalfWidths:
    """The half-widths of the bounds of a quantity, from a batch of models at all its ridges."""
    widths = cast(Tensor, quantity.width(1, posterior))
    offsets = torch.full_like(widths, quantity.misspecification)
    return HalfWidths(widths, offsets, offsets if quantity.misspecification else None)


def shares_of(lengths: Tensor, of_prior: Tensor) -> Tensor:
    """The lengths of intervals in lengths of those of the prior; 0 where the prior is certain."""
    return lengths / of_prior.clamp_min(torch.finfo(lengths.dtype).tiny)


@dataclass(frozen=True, eq=False)
class CertifiedSet:
    """The points at which the bounds of all outcomes are within their limits, and the seeds.

    Args:
        outcomes: The bounds of the outcomes.
        seeds: The points that are certified whatever the bounds say, ``n x d``.
        only_seeds: Whether only the seeds are certified.
        context: The ``d_z`` numbers of the context, which bounds see after the action. None: no
            contexts.
        is_possible: Whether the set is that of points that may be safe instead: the best values
            that the bounds allow are within the limits.
    """

    outcomes: list[CertifiedBounds]
    seeds: Tensor
    only_seeds: bool = False
    context: Tensor | None = None
    is_possible: bool = False

    def slack(self, X: Tensor) -> Tensor:
        """The least slack of all outcomes at ``n x d`` points, ``n``; inf at seeds, and -inf
        elsewhere if only they are certified."""
        return self._least([self._slack(each, X) for each in self.outcomes], X)

    @torch.no_grad()
    def contains(self, X: Tensor) -> Tensor:
        """A mask of ``n x d`` points."""
        beyond = [self._slack(each, X) + self._room(each.quantity) for each in self.outcomes]
        return self._least(beyond, X) >= 0

    def constraints(self) -> list[tuple[Callable[[Tensor], Tensor], bool]]:
        """For each outcome a function of one point, ``d``, which is non-negative only at points of
        the set, and True: constraints for BoTorch's optimisers."""
        return [(partial(self._clearance_at, each), True) for each in self.outcomes]

    @torch.no_grad()
    def spread(self, box: Box, known: Tensor, num: int, seed: int) -> Tensor:
        """Points of the set that move by hit-and-run away from random known ones, ``num x d``."""
        generator = torch.Generator().manual_seed(seed)
        rows = host.randint(len(known), (num,), generator=generator).to(known.device)

        def margin(U: Tensor, level: Tensor | float) -> Tensor:
            return self._margins(box.from_unit(U))

        pool = box.to_unit(known)
        # The starts count as certified, although rounding moves seeds.
        ones = pool.new_ones(num)
        U, _ = hit_and_run(margin, pool[rows], ones, 0.0, _NUM_SWEEPS, pool, generator)
        X = box.from_unit(U)
        return X.where(self.contains(X)[:, None], known[rows])

    def maximize(
        self, function: Function, box: Box, starts: Tensor, num_restarts: int
    ) -> tuple[Tensor, Tensor]:
        """The best point found by ascents within the set.

        Ascents that leave the set are dropped, so that the result is at least as good as the best
        start.

        Args:
            function: The function to maximise.
            box: The box.
            starts: Points of the box, ``n x d``, at least one of them in the set.
            num_restarts: The number of ascents, from the best starts that are apart.

        Returns:
            The point of the set, ``1 x d``, and its value, ``1``.
        """
        if self.only_seeds:
            return self.best_of(function, starts)
        with torch.no_grad():
            inside = starts[self._margins(starts) >= 0]
        values = _values(function, inside) if len(inside) else inside.new_empty(0)
        known = values.isfinite()
        if not bool(known.any()):
            return self.best_of(function, starts)
        ends = self._ends(function, box, inside[known], values[known], num_restarts)
        return self.best_of(function, torch.cat([starts, ends]))

    def _ends(
        self, function: Function, box: Box, inside: Tensor, values: Tensor, num_restarts: int
    ) -> Tensor:
        """The ends of ascents from some of ``n x d`` points of the set, which have ``values``."""
        firsts = inside[spread_best(values, inside, box, num_restarts)]
        low, spread = values.min(), float(values.max() - values.min()) or 1.0
        sides = box.upper - box.lower
        # An outcome without data limits nothing that may be safe.
        slacks = [partial(self._clearance, each) for each in self.outcomes if len(each.X)]

        def scaled(X: Tensor) -> Tensor:
            return 1 + (torch.atleast_2d(function(X)) - low) / spread

        ends, heights = sliding_ascent(
            FunctionObjective(lambda X: scaled(X).amin(dim=0)),
            [FunctionObjective(slack).value_and_gradient for slack in slacks],
            lambda X: self._margins(X) >= 0,
            box,
            firsts,
            (inside.amax(dim=0) - inside.amin(dim=0)).maximum(1e-3 * sides),
            _NUM_STEPS,
        )
        # Each function at a point of its own, so that one backward pass has all gradients.
        joint = FunctionObjective(
            lambda X: torch.cat([scaled(X), *(slack(X)[None] for slack in slacks)]).diagonal()
        )
        num = len(scaled(firsts[:1])) + len(slacks)

        def cuts(U: Tensor) -> tuple[Tensor, Tensor]:
            at, gradients = joint.value_and_gradient(box.from_unit(U).repeat(num, 1))
            return at[:, None], (gradients * sides)[:, None]

        tops = box.to_unit(ends[spread_best(heights, ends, box, _NUM_LAST)])
        last = [ascent_of_least(cuts, top, len(slacks), _LEAST_GAIN, _LAST_STEPS) for top in tops]
        return torch.cat([ends, box.from_unit(torch.stack(last))])

    def best_of(self, function: Function, X: Tensor) -> tuple[Tensor, Tensor]:
        """The best of ``n x d`` points that lie in the set, ``1 x d``, and its value, ``1``; none
        of either if no point does."""
        X = X[self.contains(X)]
        if not len(X):
            return X, X.new_empty(0)
        values = _values(function, X)
        best = first_highest(values)
        return X[best], values[best]

    def _least(self, slacks: list[Tensor], X: Tensor) -> Tensor:
        fall = torch.inf if self.only_seeds else 0.0
        return (torch.stack(slacks).amin(dim=0) - fall).masked_fill(self._are_seeds(X), torch.inf)

    def _are_seeds(self, X: Tensor) -> Tensor:
        return (X.unsqueeze(-2) == self.seeds).all(dim=-1).any(dim=-1)

    def _slack(self, each: CertifiedBounds, X: Tensor) -> Tensor:
        joint = with_context(X, self.context)
        return each.possible_slack(joint) if self.is_possible else each.slack(joint)

    def _room(self, quantity: Quantity) -> float:
        """How far the slack of a point of the set may be below 0."""
        return VIOLATION * quantity.scale if self.is_possible else -quantity.tolerance

    def _clearance(self, each: CertifiedBounds, X: Tensor) -> Tensor:
        """The slack of an outcome relative to its scale, beyond what optimisers may violate, at
        ``n x d`` points, of which none counts as a seed."""
        fall = 0.0 if self.is_possible else _CLEARANCE
        fall = torch.inf if self.only_seeds else fall
        return self._slack(each, X) / each.quantity.scale - fall

    def _clearance_at(self, each: CertifiedBounds, x: Tensor) -> Tensor:
        """The clearance at a point, ``d``; 1 at seeds."""
        X = x.unsqueeze(0)
        return self._clearance(each, X).masked_fill(self._are_seeds(X), 1.0).squeeze(0)

    def _margins(self, X: Tensor) -> Tensor:
        """The least clearance of all outcomes at ``n x d`` points."""
        return torch.stack([self._clearance(each, X) for each in self.outcomes]).amin(dim=0)


@torch.no_grad()
def _values(function: Function, X: Tensor) -> Tensor:
    return torch.cat([torch.atleast_2d(function(some)).amin(dim=0) for some in X.split(_CHUNK)])
