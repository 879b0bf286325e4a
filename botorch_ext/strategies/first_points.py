"""The points that are asked before any model chooses."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short
from botorch_ext.domains import Box, Domain, FiniteSet, host
from botorch_ext.search.trust_region import MANY_DIMENSIONS, region_around
from botorch_ext.state import Immutable
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.events import History

# The largest number of first points, which are made together with the strategy.
_MOST = 2**20
# The number of results without which failed trials do not end the first points.
_FEWEST = 3
# The share of each side in which points near the middle of a box lie.
_SHARE = 0.5


class FirstPoints(Immutable):
    """The first points: Sobol points of a box, or random members of a finite set; for an ask with
    actions, a random one of these.

    Args:
        domain: The domain of the points.
        seed: The seed of the points; an ask with actions has a seed of its own.
        num: The number of points. None: as many as it takes until ``least`` results are initial,
            told, attached or pending, failed trials included, of which at least three are results.
        least: The number of results before a model chooses.
        num_given: The number of initial results.
        near_middle: Whether the points of a box that has many dimensions, all continuous and
            without constraints, lie in the middle half of each side, if no number is given. They
            are then on average a fifth nearer to a random point of the box.
    """

    def __init__(
        self,
        domain: Domain,
        seed: int,
        num: int | None,
        least: int = 0,
        num_given: int = 0,
        near_middle: bool = False,
    ) -> None:
        self._arguments = seed, num, least, num_given, near_middle
        self._seed = seed
        self._domain = self._whole = domain
        if (
            near_middle
            and num is None
            and isinstance(domain, Box)
            and domain.is_filled
            and domain.dim > MANY_DIMENSIONS
        ):
            middle = domain.from_unit(torch.full_like(domain.lower, 0.5))
            self._domain = region_around(middle, _SHARE, domain)
        self._num_known = num_given if num is None else None
        #: The number of first points if no result is attached and no trial abandoned.
        self.num = max(least - num_given, 0) if num is None else num
        if self.num > _MOST:
            raise ValueError(f"num_initial must be at most {_MOST}, got {short(self.num)}")
        # Initial results may be the first points of the same seed, so the points after them follow.
        known = num_given if num is None and self.num else 0
        self._points, self._rows = self._sampled(known + self.num)

    def on(self, domain: Domain) -> FirstPoints:
        """The first points of another domain."""
        return FirstPoints(domain, *self._arguments)

    def include(self, history: History, id: int, info: dict[str, Any] | None = None) -> bool:
        """Whether a trial is one of the first points.

        Args:
            history: The history so far.
            id: The id of the trial, which may be the next one.
            info: What is recorded of the next trial, in a replay.
        """
        if self._num_known is None:
            return history.asked_before(id) < self.num
        if id < len(history.trials):
            info = history.trials[id].info
        if info is not None:  # another version may have asked more of them, or fewer
            return "initial" in info
        results = id - len(history.abandoned) - len(history.withdrawn)
        is_short = results + len(history.failed) < self.num
        return is_short or results + self._num_known < _FEWEST

    def at(
        self, history: History, id: int, choices: Choices, seed: int
    ) -> tuple[Tensor, dict[str, Any]]:
        """The ``d``-dim first point of the next trial, and its ``info``.

        Args:
            history: The history so far.
            id: The id of the next trial.
            choices: The actions of this step.
            seed: The seed of the step, for a choice among its actions.
        """
        info: dict[str, Any] = {"initial": True}
        if choices.actions is not None:
            generator = torch.Generator().manual_seed(seed)
            row = int(host.randint(len(choices.actions), (), generator=generator))
            return choices.actions[row].clone(), info | choices.places(row)
        known = self._num_known
        number = history.asked_before(id) if known is None else known + id
        points, rows = self._points, self._rows
        if number >= len(points):
            points, rows = self._sampled(number + 1)
        if rows is not None:
            info["index"] = rows[number]
        return points[number].clone(), info

    def _sampled(self, num_points: int) -> tuple[Tensor, list[int] | None]:
        """The first ``num_points`` points, and their rows in a finite set."""
        if isinstance(self._domain, FiniteSet):
            rows = self._domain.sample_indices(num_points, self._seed).tolist()
            return self._domain.points[rows], rows
        whole: Any = self._whole  # a Box, as its part is
        return whole.settable(self._domain.sample(num_points, self._seed)), None
