"""Rounds that close once enough observations of their plans have arrived."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions.region import Region
from botorch_ext.state import Immutable
from botorch_ext.strategies.fixed_design.certified_survivors import certified_survivors_of
from botorch_ext.strategies.fixed_design.progress import is_reached
from botorch_ext.strategies.fixed_design.round import Round
from botorch_ext.strategies.fixed_design.survivors import Choice

# A quarter of the length of a plan is added at once to a round that waits; any number of points of
# largest variance may be planned ahead.
_ADDED = 4


@dataclass(frozen=True, eq=False)
class More:
    """Points that are added to a round that waits for its observations.

    Args:
        choice: The plan of the points.
        points: The points, ``m x d``.
    """

    choice: Choice
    points: Tensor

    @property
    def record(self) -> dict[str, Any]:
        """The entry ``more`` of ``info``, from which a replay takes the points."""
        return vars(self.choice).copy()

    def added_to(self, round: Round) -> Round:
        """A copy of the round with these points added."""
        longer, choice = copy(round), round.choice
        plan, std = choice.plan + self.choice.plan, choice.std + self.choice.std
        longer.choice = replace(choice, plan=plan, std=std)
        longer.points = torch.cat([round.points, self.points])
        return longer


@dataclass(frozen=True)
class ToldData(Immutable):
    """A posterior of told data that is never changed, since its prior mean may be impossible to
    copy."""

    posterior: Any


class Arrivals(Immutable):
    """Decides when a round closes by arrival, and what it asks until then.

    Args:
        domain: The domain.
        model: The prior, without data.
        kappa: At least 1: a round closes when the largest standard deviation among survivors, given
            the points that have arrived, is at most kappa times that given the whole plan.
    """

    def __init__(self, domain: Domain, model: KernelGP, kappa: float) -> None:
        self.domain, self.model, self.kappa = domain, model, kappa
        self.space = certified_survivors_of(domain)

    def promise(self, survivors: Tensor | Region, points: Tensor, seed: int) -> float:
        """The largest standard deviation among survivors given ``m x d`` points."""
        belief = self.space.belief(self._given(points))
        return self.space.largest_std(survivors, belief, seed)

    def suffice(self, round: Round, arrived: list[int], asked: int, seed: int) -> bool:
        """Whether enough of the asked points of a round have arrived.

        Args:
            round: The round, with a promise.
            arrived: The positions among its points of those that have arrived.
            asked: The number of points that it has asked.
            seed: The seed of the points from which a region is searched.
        """
        if arrived == list(range(asked)):
            return True  # despite rounding
        most, model = self.kappa * (round.promise or 0.0), self._given(round.points[arrived])
        like = self.domain.like
        missing = sorted(set(range(asked)) - set(arrived))
        # The missing points first: they are survivors, and mostly those with the largest
        # deviations.
        if not is_reached(float(model.mean_and_std(round.points[missing])[1].max()), most, like):
            return False
        largest = self.space.largest_std(round.survivors, self.space.belief(model), seed)
        return is_reached(largest, most, like)

    def more(self, round: Round, left: int, seed: int) -> More:
        """The next points of largest variance of a round that waits, at most ``left`` of them."""
        given, count = self._given(round.points), min(-(-round.length // _ADDED), left)
        choice = self.space.choose(round.survivors, given, count, seed)
        return More(choice, self.space.points(choice))

    def told(self, X: Tensor, Y: Tensor, known: ToldData | None) -> ToldData:
        """The posterior of all told data, in the order of telling.

        Args:
            X: The ``n x d`` points.
            Y: The ``n`` values.
            known: The posterior of the first of them, to which the others are added; None for none.
        """
        posterior = self.space.posterior(self.model) if known is None else known.posterior.fork()
        n = posterior.num_observations
        if len(X) > n:
            posterior.add(X[n:], Y[n:])
        return ToldData(posterior)

    def highest_mean(
        self,
        survivors: Tensor | Region,
        posterior: Any,
        incumbents: Callable[[], Tensor],
        seeds: tuple[int, int],
    ) -> tuple[Tensor, dict[str, int]]:
        """The survivor with the highest posterior mean, and the ``info`` that says where it is.

        Args:
            survivors: The surviving rows, or the region.
            posterior: The posterior of all told data.
            incumbents: A function that gives evaluated points, at which the search starts too.
            seeds: The seed of the step, and that of the points from which a region is searched.
        """
        return self.space.highest(survivors, posterior, 0.0, incumbents, seeds)

    def _given(self, points: Tensor) -> KernelGP:
        model = self.model.fork()
        if len(points):
            model.add(points, None)
        return model
