"""Round of a phased method, the record of it."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.regions.region import Region
from botorch_ext.strategies.events import History
from botorch_ext.strategies.fixed_design.survivors import Choice


@dataclass(frozen=True, eq=False)
class Closing:
    """What a round ended with.

    Args:
        arrived: The trials whose observations were in.
        width: The multiplier of the standard deviation; None, like the others, where nothing had
            arrived, so that nothing was eliminated.
        offset: What the bounds add besides.
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
    """

    arrived: list[int]
    width: float | None = None
    offset: float | None = None
    threshold: float | None = None
    argmax: list[float] | None = None


@dataclass(eq=False)
class Round:
    """One round, as far as it has come.

    Args:
        number: 1, 2, ...
        first: The id of its first trial; the others follow.
        survivors: Where its points were chosen: ascending rows of the finite set, or the region.
        choice: Its plan.
        points: ``t_r x d``, the planned points.
        closing: What it ended with; None while it is open.
        promise: The largest standard deviation that the plan leaves, where the round closes once
            what has arrived leaves no more; None elsewhere.
        length: The points of the plan without those that were added while waiting for it.
    """

    number: int
    first: int
    survivors: Tensor | Region
    choice: Choice
    points: Tensor
    closing: Closing | None = None
    promise: float | None = None
    length: int = field(init=False)

    def __post_init__(self) -> None:
        self.length = len(self.points)

    @property
    def ids(self) -> range:
        """The ids of its trials, those still to be asked included."""
        return range(self.first, self.first + len(self.points))

    @property
    def plays_mean(self) -> bool:
        """Whether it is the last one of a strategy whose rounds close by arrival: it plans nothing,
        and its points are those it has asked."""
        return not self.length

    def num_asked(self, history: History) -> int:
        """How many of its points were asked."""
        return min(len(history.trials) - self.first, len(self.points))

    def with_point(self, x: Tensor) -> Round:
        """The round with one more point, ``d``, that was asked without a plan."""
        new = copy(self)
        new.points = torch.cat([self.points, x.unsqueeze(0)])
        return new

    def ended(self, closing: Closing | None, stop: int) -> Round:
        """The round once it is closed; what was planned from the trial ``stop`` on and never asked
        is forgotten."""
        new, asked = copy(self), stop - self.first
        plan, std = self.choice.plan[:asked], self.choice.std[:asked]
        new.choice = replace(self.choice, plan=plan, std=std)
        new.points, new.closing = self.points[:asked], closing
        return new

    def told_too_late(self, history: History) -> list[int]:
        """The trials that were told after the round had closed."""
        if self.closing is None:
            return []
        arrived = set(self.closing.arrived)
        return [id for id in self.ids if id in history.values and id not in arrived]

    def describe(self, history: History, noise_variance: Tensor) -> dict[str, Any]:
        """What a report says of it, in plain numbers."""
        std = noise_variance.new_tensor(self.choice.std)
        summary: dict[str, Any] = {
            "round": self.number,
            "length": len(self.points),
            "asked": self.num_asked(history),
            "information_gain": float((std.square() / noise_variance).log1p().sum() / 2),
            "volume": self.choice.volume,
            "volume_standard_error": self.choice.volume_error,
            "closed": self.closing is not None,
        }
        if isinstance(self.survivors, Tensor):
            summary["num_candidates"] = len(self.survivors)
        if self.closing is not None:
            summary |= {
                "arrived": len(self.closing.arrived),
                "told_too_late": self.told_too_late(history),
                "current_width": self.closing.width,
                "offset": self.closing.offset,
                "threshold": self.closing.threshold,
            }
        return summary
