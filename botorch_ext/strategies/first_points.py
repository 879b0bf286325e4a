"""First points: what is asked before any model chooses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.state import Immutable
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.events import History

# They are made together with the strategy.
_MOST = 2**20


class FirstPoints(Immutable):
    """Sobol points of a box, or random members of a finite set; where a step has actions of its
    own, a random one of those.

    Args:
        domain: Where they lie.
        seed: Of the points; those of an ask with actions have a seed of their own.
        num: How many; None where results stand for them: what is given, told, attached or pending
            lacks of ``least``.
        least: How many results there should be before a model chooses.
        num_given: Results from before the first event.
    """

    def __init__(
        self, domain: Domain, seed: int, num: int | None, least: int = 0, num_given: int = 0
    ) -> None:
        self._domain, self._seed = domain, seed
        self._num_known = num_given if num is None else None
        #: How many there are if nothing is attached and nothing given up.
        self.num = max(least - num_given, 0) if num is None else num
        if self.num > _MOST:
            raise ValueError(f"num_initial must be at most {_MOST}, got {short(self.num)}")
        # What is known may be first points of the same seed: those after them come next.
        known = num_given if num is None and self.num else 0
        self._points, self._rows = self._sampled(known + self.num)

    def include(self, history: History, id: int) -> bool:
        """Whether a trial that was asked, or the next one, is one of them."""
        if self._num_known is None:
            return history.asked_before(id) < self.num
        if id < len(history.trials):
            return "initial" in history.trials[id].info
        return id - len(history.abandoned) < self.num

    def at(
        self, history: History, id: int, choices: Choices, seed: int
    ) -> tuple[Tensor, dict[str, Any]]:
        """The ``d``-dim one of the next trial and what is recorded of it.

        Args:
            history: What happened so far.
            id: The next.
            choices: Of this step.
            seed: Of the step, for a choice among its actions.
        """
        info: dict[str, Any] = {"initial": True}
        if choices.actions is not None:
            generator = torch.Generator().manual_seed(seed)
            row = int(torch.randint(len(choices.actions), (), generator=generator))
            return choices.actions[row].clone(), info | choices.places(row)
        known = self._num_known
        place = history.asked_before(id) if known is None else known + id
        points, rows = self._points, self._rows
        if place >= len(points):
            points, rows = self._sampled(place + 1)
        if rows is not None:
            info["index"] = rows[place]
        return points[place].clone(), info

    def _sampled(self, num_points: int) -> tuple[Tensor, list[int] | None]:
        """Points, and their rows in a finite set."""
        if isinstance(self._domain, FiniteSet):
            rows = self._domain.sample_indices(num_points, self._seed).tolist()
            return self._domain.points[rows], rows
        return self._domain.sample(num_points, self._seed), None
