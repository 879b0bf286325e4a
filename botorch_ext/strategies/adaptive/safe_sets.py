"""What is certified at a step, on a list of points or in a box, and the best points of it.

`SafeList` and `SafeBox` have the same methods. A place is the row of a point in a list, and the
``d``-dim point itself in a box.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.ranks import first_highest
from botorch_ext.search.certified import CertifiedSet
from botorch_ext.search.perturbations import FiniteBalls
from botorch_ext.search.screening import screening_points
from botorch_ext.strategies.adaptive.safe_bounds import JointBounds, ListedBounds

# The numbers of points of a box that are screened, certified ones and others, and of ascents.
_NUM_CERTIFIED, _NUM_OTHERS, _NUM_ASCENTS = 256, 1024, 24


class SafeList:
    """What is certified on a list of points.

    Args:
        points: The points, ``N x d``.
        bounds: The bounds of the value, then of each outcome.
        seeds: The rows that are certified whatever the bounds say.
        only_seeds: Whether only the seeds are certified.
        balls: The balls around the points in which all points must be within the limits; None if
            they hold one point each.
    """

    def __init__(
        self,
        points: Tensor,
        bounds: Sequence[ListedBounds],
        seeds: list[int],
        only_seeds: bool,
        balls: FiniteBalls | None,
    ) -> None:
        self.points, self.seeds, self._balls = points, seeds, balls
        self._bounds, (self._value, *self._outcomes) = bounds, bounds
        #: A mask of the certified points, ``N``.
        self.certified = torch.zeros(len(points), dtype=torch.bool, device=points.device)
        if not only_seeds:
            beyond = [each.slack - each.quantity.tolerance for each in self._outcomes]
            self.certified = self._least(beyond) >= 0
        self.certified[seeds] = True
        self._fall = torch.inf if only_seeds else 0.0

    @cached_property
    def size(self) -> int:
        """The number of certified points."""
        return int(self.certified.sum())

    @property
    def is_empty(self) -> bool:
        """Whether no certified point is known."""
        return not self.size

    @cached_property
    def slack(self) -> Tensor:
        """The least slack of all outcomes at every point, and within the radius of it, ``N``; inf
        at seeds, and -inf elsewhere where only seeds are certified."""
        slack = self._least([each.slack for each in self._outcomes]) - self._fall
        slack[self.seeds] = torch.inf
        return slack

    def slack_at(self, place: int) -> float:
        return float(self.slack[place])

    def point(self, place: int) -> Tensor:
        """The ``d``-dim point of a place."""
        return self.points[place].clone()

    def is_certified(self, place: int) -> bool:
        return bool(self.certified[place])

    def interval(self, place: int) -> tuple[float, float]:
        """The bounds of the value at a place."""
        return float(self._value.lower[place]), float(self._value.upper[place])

    def ruled(self, rule: Callable[..., Any], *given: Any) -> int:
        """The certified place that a function of the user chooses."""
        rows = self.certified.nonzero().squeeze(-1)
        row = whole_number(rule(rows, *given), "rule", least=0)
        if row not in rows.tolist():
            raise ValueError(f"rule must return the row of a certified point, got {row}")
        return row

    @property
    def safest(self) -> int:
        """The certified place with the highest lower bound of the value."""
        return _highest(self._value.lower, self.certified)

    def highest(self) -> int:
        """The certified place with the highest upper bound of the value."""
        return _highest(self._value.upper, self.certified)

    def highest_possible(self, struck: list[int]) -> int:
        """The place with the highest upper bound among those that may be safe, without some."""
        left = self.certified | (_least([each.possible_slack for each in self._outcomes]) >= 0)
        left[struck] = False
        return _highest(self._value.upper, left)

    def widest(self) -> int:
        """The certified place with the widest bounds in units of the prior."""
        shares = torch.stack([each.shares for each in self._bounds])
        return _highest(shares.amax(dim=0), self.certified)

    def most_telling(self, target: int) -> int | None:
        """The certified place whose result tells most about the outcome that keeps a target out:
        its slack is least, in lengths of its interval. None if no result tells anything."""
        shares = [each.slack[target] / (each.upper - each.lower)[target] for each in self._outcomes]
        nearest = self._outcomes[int(first_highest(-torch.stack(shares)))]
        return nearest.most_telling(self.certified, target)

    def _least(self, slacks: list[Tensor]) -> Tensor:
        slack = _least(slacks)
        return slack if self._balls is None else self._balls.worst_case(slack)[0]


def _least(slacks: list[Tensor]) -> Tensor:
    """The least of the slacks of all outcomes, ``N``."""
    first, *others = slacks
    for other in others:
        first = torch.minimum(first, other)
    return first


class SafeBox:
    """What is certified in a box, found by searches.

    Args:
        box: The box.
        bounds: The bounds of the value, then of each outcome.
        seeds: The points that are certified whatever the bounds say, ``n x d``.
        only_seeds: Whether only the seeds are certified.
        context: The ``d_z`` numbers of the context; None without contexts.
        seed: The seed of the searches.
    """

    #: The number of certified points is not known.
    size = None

    @torch.no_grad()
    def __init__(
        self,
        box: Box,
        bounds: Sequence[JointBounds],
        seeds: Tensor,
        only_seeds: bool,
        context: Tensor | None,
        seed: int,
    ) -> None:
        self._box, self._context, self._seed = box, context, seed
        self._bounds, (self._value, *self._outcomes) = bounds, bounds
        self.seeds = list(seeds)
        self._set = CertifiedSet([each.now for each in self._outcomes], seeds, only_seeds, context)
        known = torch.cat([seeds, self._value.points[:, : box.dim]])
        self._known = known[self._set.contains(known)]

    @property
    def is_empty(self) -> bool:
        return not len(self._known)

    def point(self, place: Tensor) -> Tensor:
        return place.clone()

    def is_certified(self, place: Tensor) -> bool:
        return bool(self._set.contains(place[None]))

    @torch.no_grad()
    def slacks(self, X: Tensor) -> Tensor:
        """The least slack of all outcomes at ``n x d`` points, as for `SafeList`."""
        return self._set.slack(X)

    def slack_at(self, place: Tensor) -> float:
        return float(self.slacks(place[None]))

    @torch.no_grad()
    def interval(self, place: Tensor) -> tuple[float, float]:
        lower, upper = self._value.now.bounds(self._joint(place[None]))
        return float(lower), float(upper)

    def ruled(self, rule: Callable[..., Any], *given: Any) -> Tensor:
        X = self._box.require_contains(rule(self._starts, *given), "rule")
        if len(X) != 1 or not self.is_certified(X[0]):
            raise ValueError(f"rule must return a certified point, got {X.tolist()}")
        return X[0].detach()

    @cached_property
    def safest(self) -> Tensor:
        return self._best(lambda X: self._value.now.bounds(X)[0])

    def highest(self) -> Tensor:
        return self._best(self._uppers)

    def highest_possible(self, struck: list[int]) -> Tensor:
        """As for `SafeList`; in a box no place is struck."""
        possible = replace(self._set, is_possible=True, only_seeds=False)
        others = screening_points(self._box, _NUM_OTHERS, self._seed)
        others = others[possible.contains(others)]
        return self._best(self._uppers, possible, others)

    def widest(self) -> Tensor:
        def widest(X: Tensor) -> Tensor:
            return torch.stack([each.now.shares(X) for each in self._bounds]).amax(dim=0)

        return self._best(widest)

    def most_telling(self, target: Tensor) -> Tensor | None:
        place = self._joint(target[None])
        with torch.no_grad():
            shares = [each.now.slack(place) / each.now.length(place) for each in self._outcomes]
        nearest = self._outcomes[int(first_highest(-torch.cat(shares)))]
        # Points whose results tell too little count as if they told nothing.
        best = self._best(lambda X: nearest.gains(X, place).clamp_min(0))
        with torch.no_grad():
            gain = nearest.gains(self._joint(best[None]), place)
        return best if bool(gain > 0) else None

    def _best(
        self,
        function: Callable[[Tensor], Tensor],
        among: CertifiedSet | None = None,
        others: Tensor | None = None,
    ) -> Tensor:
        """The point of a set, or a certified point, where a function of joint rows is largest."""
        among = self._set if among is None else among
        starts = self._starts if others is None else torch.cat([self._starts, others])

        def values(X: Tensor) -> Tensor:
            return function(self._joint(X))

        return among.maximize(values, self._box, starts, _NUM_ASCENTS)[0][0]

    @cached_property
    def _starts(self) -> Tensor:
        """Certified points: the known ones, and others that spread from them."""
        spread = self._set.spread(self._box, self._known, _NUM_CERTIFIED, self._seed)
        return torch.cat([self._known, spread])

    def _uppers(self, X: Tensor) -> Tensor:
        return self._value.now.at_each_ridge(X)[1]

    def _joint(self, X: Tensor) -> Tensor:
        return with_context(X, self._context)


def _highest(values: Tensor, among: Tensor) -> int:
    """The first row with the largest value, among those of a mask."""
    return int(first_highest(values.masked_fill(~among, -torch.inf)))
