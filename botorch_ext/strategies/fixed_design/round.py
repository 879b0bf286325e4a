"""A round of a phased method, and its record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from botorch_ext.search.region import Region
from botorch_ext.state import parts_of
from botorch_ext.strategies.events import History
from botorch_ext.strategies.fixed_design.round_records import RoundPlan


@dataclass(frozen=True, eq=False)
class Closing:
    """The end of a round, and the bounds that eliminated points.

    Args:
        arrived: The ids of the trials whose observations had arrived.
        width: The multiplier of the standard deviation, a tuple of those at each ridge if there are
            several. None, as the others, if no observation had arrived, so that nothing was
            eliminated.
        offset: The part of the half-width that is added to ``width`` times the standard deviation.
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
    """

    arrived: list[int]
    width: float | tuple[float, ...] | None = None
    offset: float | None = None
    threshold: float | None = None
    argmax: list[float] | None = None


@dataclass(eq=False)
class Round:
    """A round that is open or closed.

    Args:
        number: The number of the round, from 1.
        first: The id of its first trial; the others follow.
        survivors: The points to choose from: ascending rows of the finite set, or the region.
        choice: The plan of the round.
        points: The planned points, ``t_r x d``.
        closing: The end of the round; None while it is open.
    """

    number: int
    first: int
    survivors: Tensor | Region
    choice: RoundPlan
    points: Tensor
    closing: Closing | None = None

    @property
    def ids(self) -> range:
        """The ids of its trials, with those that are not asked yet."""
        return range(self.first, self.first + len(self.points))

    def num_asked(self, history: History) -> int:
        """The number of its points that were asked."""
        return min(len(history.trials) - self.first, len(self.points))

    def ended(self, closing: Closing | None) -> Round:
        """The round after it is closed."""
        return replace(self, closing=closing)

    def told_too_late(self, history: History) -> list[int]:
        """The ids of the trials that were told after the round had closed."""
        if self.closing is None:
            return []
        arrived = set(self.closing.arrived)
        return [id for id in self.ids if id in history.values and id not in arrived]

    def describe(self, history: History, noise_variance: Tensor) -> dict[str, Any]:
        """The dict of the round in the report."""
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
                "current_width": parts_of(self.closing.width),
                "offset": self.closing.offset,
                "threshold": self.closing.threshold,
            }
        return summary
