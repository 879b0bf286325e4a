"""Arrivals: rounds that close on what has arrived of their plans."""

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

# Of a plan, what is added at once to a round that waits: of max-variance points any number may be
# planned ahead.
_ADDED = 4


@dataclass(frozen=True, eq=False)
class More:
    """Points that are added to a round that waits for its observations.

    Args:
        choice: Their plan.
        points: ``m x d``.
    """

    choice: Choice
    points: Tensor

    @property
    def record(self) -> dict[str, Any]:
        """What the event must hold so that replaying it chooses nothing."""
        return vars(self.choice).copy()

    def added_to(self, round: Round) -> Round:
        """A copy of the round that goes on with them."""
        longer, choice = copy(round), round.choice
        plan, std = choice.plan + self.choice.plan, choice.std + self.choice.std
        longer.choice = replace(choice, plan=plan, std=std)
        longer.points = torch.cat([round.points, self.points])
        return longer


@dataclass(frozen=True)
class ToldData(Immutable):
    """A posterior of told data that nothing is added to: its prior mean may be impossible to
    copy."""

    posterior: Any


class Arrivals(Immutable):
    """When a round closes by arrival, and what it asks until then.

    Args:
        domain: Where to maximise.
        model: Kernel and noise variance, without data.
        kappa: At least 1: a round closes when the largest standard deviation among survivors, given
            what has arrived, is at most kappa times what it would be given all of the plan.
    """

    def __init__(self, domain: Domain, model: KernelGP, kappa: float) -> None:
        self.domain, self.model, self.kappa = domain, model, kappa
        self.space = certified_survivors_of(domain)

    def promise(self, survivors: Tensor | Region, points: Tensor, seed: int) -> float:
        """The largest standard deviation among survivors given ``m x d`` points."""
        belief = self.space.belief(self._given(points))
        return self.space.largest_std(survivors, belief, seed)

    def suffice(self, round: Round, arrived: list[int], asked: int, seed: int) -> bool:
        """Whether what has arrived of the points that a round has asked is enough.

        Args:
            round: With a promise.
            arrived: The places of what has arrived among its points.
            asked: How many points it has asked.
            seed: Of the points that a region is searched by.
        """
        if arrived == list(range(asked)):
            return True  # whatever rounding says
        most, model = self.kappa * (round.promise or 0.0), self._given(round.points[arrived])
        like = self.domain.like
        missing = sorted(set(range(asked)) - set(arrived))
        # Survivors, and the least known of them: mostly they decide.
        if not is_reached(float(model.mean_and_std(round.points[missing])[1].max()), most, like):
            return False
        largest = self.space.largest_std(round.survivors, self.space.belief(model), seed)
        return is_reached(largest, most, like)

    def more(self, round: Round, left: int, seed: int) -> More:
        """The next max-variance points of a round that waits, with so many trials left."""
        given, count = self._given(round.points), _num_more(round, left)
        choice = self.space.choose(round.survivors, given, count, seed)
        return More(choice, self.space.points(choice))

    def told(self, X: Tensor, Y: Tensor, known: ToldData | None) -> ToldData:
        """All told data, in the order of telling.

        Args:
            X: ``n x d``.
            Y: ``n``.
            known: The first of them; None where nothing is known yet.
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
        """The survivor with the highest posterior mean, and what a trial records of its place.

        Args:
            survivors: Who.
            posterior: Of all told data.
            incumbents: Gives points that are looked at too.
            seeds: Of the step, and of the points that a region is searched by.
        """
        return self.space.highest(survivors, posterior, 0.0, incumbents, seeds)

    def _given(self, points: Tensor) -> KernelGP:
        model = self.model.fork()
        if len(points):
            model.add(points, None)
        return model


def _num_more(round: Round, left: int) -> int:
    return min(-(-round.length // _ADDED), left)
