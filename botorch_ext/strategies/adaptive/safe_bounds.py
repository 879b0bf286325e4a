"""The confidence bounds of a measured quantity at the points of a finite set, and its limit."""

from __future__ import annotations

from math import inf
from typing import cast

import torch
from torch import Tensor

from botorch_ext.domains.ranks import first_highest
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.intersected import HalfWidths
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.pending import PendingPolicy, TrialRows
from botorch_ext.strategies.events import Event, History
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.widths.limits import Limit, assumptions_at, rounding
from botorch_ext.widths.tight import Ladder
from botorch_ext.widths.told_data import ToldData


class SafeBounds(State):
    """The confidence bounds of a quantity at all points of a finite set, the tightest so far, from
    told data alone.

    Args:
        model: The model of the quantity, without data.
        points: The points, ``N x d``.
        width: The width, whose ridges are multiples of the noise variance of the model.
        misspecification: eps, the largest distance of the quantity to what the model can express.
        limit: The limit of the quantity; None if it has none.
        policy: How pending trials count in standard deviations and covariances.
    """

    def __init__(
        self,
        model: KernelGP,
        points: Tensor,
        width: Ladder,
        misspecification: float,
        limit: Limit | None,
        policy: PendingPolicy,
    ) -> None:
        self.model, self.width, self.eps, self.limit = model.fork(), width, misspecification, limit
        ridges = width.ridges or ()
        self._first = ridges.index(1.0)
        noise = model.noise_variance * points.new_tensor(ridges)
        posterior = FinitePosterior(model.kernel, points, noise, model.mean)
        mean, std = (each[self._first] for each in posterior.prior(points))
        reach = width.rkhs_bound * std + self.eps
        if self.eps:
            posterior.keep_weights()
        self.rows = TrialRows(posterior, policy)
        self._alarm = Alarm(assumptions_at(width, misspecification))
        #: Whether the told data refute the model: the bounds contradict each other at some point,
        #: or the lower bound of the RKHS norm exceeds B.
        self.is_refuted = False
        #: The tightest lower and upper bounds so far, ``N`` each; infinite for a quantity with a
        #: limit until there are results, since a wrong B alone could certify all points.
        self.lower, self.upper = mean - reach, mean + reach
        if limit is not None:
            self.lower, self.upper = (torch.full_like(reach, end) for end in (-inf, inf))
        #: The length of the prior interval at each point, ``N``.
        self.prior_length = 2 * reach

    @property
    def slack(self) -> Tensor:
        """By how much the worst possible value at each point is within the limit, ``N``."""
        return self._within(self.lower, self.upper)

    @property
    def possible_slack(self) -> Tensor:
        """By how much the best possible value at each point is within the limit, ``N``."""
        return self._within(self.upper, self.lower)

    @property
    def tolerance(self) -> float:
        """By how much rounding may change a bound."""
        return rounding(self.width.rkhs_bound, self.limit)

    def told_mean(self, history: History) -> Tensor:
        """The posterior mean of the told data at all points, ``N``."""
        return self.rows.told(history).mean[self._first]

    def absorb(self, event: Event, history: History) -> None:
        """Updates this state, a successor that is not yet in use, for the last event."""
        if not self.rows.absorb(event, history):
            return
        self.rows.catch_up()
        told = self.rows.told(history)
        widths = cast(Tensor, self.width(1, told))
        eps = torch.full_like(widths, self.eps)
        norms = told.weight_norms_of_candidates() if self.eps else None
        half = HalfWidths(widths, eps, eps if self.eps else None).of(told.std, norms)
        self.lower = torch.maximum(self.lower, (told.mean - half).amax(dim=0))
        self.upper = torch.minimum(self.upper, (told.mean + half).amin(dim=0))
        self.is_refuted = bool((self.lower > self.upper + self.tolerance).any())
        if self._alarm.begin(told.num_observations):
            own = ToldData.of(told.select(self._first))
            self.is_refuted |= self._alarm.look(own) is not None

    def most_telling(self, among: Tensor, target: int) -> int | None:
        """The point whose result reduces the variance at a target most, pending trials included.

        Args:
            among: A mask of the ``N`` points that may be chosen. Points whose variance is at most
                a twentieth of the noise variance are left out.
            target: The row of the target.

        Returns:
            The row of the point; None if all points are left out.
        """
        posterior, row = self.rows.current().posterior, self._first
        variance, noise = posterior.variance[row], posterior.noise_variance[row]
        among = among & (variance > noise / 20)
        if not bool(among.any()):
            return None
        covariance = posterior.covariance_of_candidate(target)[row]
        gain = covariance.square() / (variance + noise)
        return int(first_highest(gain.masked_fill(~among, -inf)))

    def _within(self, of_least: Tensor, of_most: Tensor) -> Tensor:
        if self.limit is None:
            return torch.full_like(self.lower, inf)
        return self.limit.slack(of_least, of_most)
