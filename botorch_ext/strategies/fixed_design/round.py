"""Round of a phased method, the record of it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from botorch_ext.regions.region import Region
from botorch_ext.strategies.events import History
from botorch_ext.strategies.fixed_design.arenas import Choice


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
    """

    number: int
    first: int
    survivors: Tensor | Region
    choice: Choice
    points: Tensor
    closing: Closing | None = None

    @property
    def ids(self) -> range:
        """The ids of its trials, those still to be asked included."""
        return range(self.first, self.first + len(self.points))

    def told_too_late(self, history: History) -> list[int]:
        """The trials that were told after the round had closed."""
        if self.closing is None:
            return []
        arrived = set(self.closing.arrived)
        return [id for id in self.ids if id in history.values and id not in arrived]
