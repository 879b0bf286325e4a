"""The confidence bounds of a measured quantity, at the points of a finite set or anywhere, and its
limit."""

from __future__ import annotations

from abc import abstractmethod
from math import inf
from typing import cast

import torch
from torch import Tensor

from botorch_ext.domains.ranks import first_highest
from botorch_ext.limits import Limit
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.norm_bounds import gram_and_residuals
from botorch_ext.search.certified import CertifiedBounds, half_widths, shares_of
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.pending import PendingPolicy, TrialRows
from botorch_ext.strategies.events import Asked, Attached, Event, History
from botorch_ext.widths.limits import Quantity
from botorch_ext.widths.told_data import ToldData


class ListedBounds:
    """The confidence bounds of a quantity at listed points, and its limit; the base class of
    `SafeBounds` and `BoundsInContext`."""

    quantity: Quantity
    #: The lower and upper bounds at the points, ``N`` each.
    lower: Tensor
    upper: Tensor

    @property
    def slack(self) -> Tensor:
        """By how much the worst possible value at each point is within the limit, ``N``."""
        return cast(Limit, self.quantity.limit).slack(self.lower, self.upper)

    @property
    def possible_slack(self) -> Tensor:
        """By how much the best possible value at each point is within the limit, ``N``."""
        return cast(Limit, self.quantity.limit).slack(self.upper, self.lower)

    @property
    @abstractmethod
    def shares(self) -> Tensor:
        """The lengths of the intervals at the points, in lengths of those of the prior, ``N``."""

    @abstractmethod
    def gains(self, target: int) -> Tensor:
        """By how much a result at each point reduces the variance at a target, as `gains_of`."""

    def most_telling(self, among: Tensor, target: int) -> int | None:
        """The point whose result reduces the variance at a target most, pending trials included.

        Args:
            among: A mask of the ``N`` points that may be chosen.
            target: The row of the target.

        Returns:
            The row of the point; None if `gains_of` leaves out all points.
        """
        gains = self.gains(target).masked_fill(~among, -inf)
        row = int(first_highest(gains))
        return row if bool(gains[row] > -inf) else None


def gains_of(variance: Tensor, noise: Tensor, covariance: Tensor) -> Tensor:
    """By how much results at points reduce the variance at a target; -inf at points whose variance
    is at most a twentieth of the noise variance, which are left out.

    Args:
        variance: The variances at the points, ``n``.
        noise: The noise variance.
        covariance: The covariances of the points and the target, ``n``.

    Returns:
        ``n`` numbers.
    """
    gains = covariance.square() / (variance + noise)
    return gains.where(variance > noise / 20, -inf)


class SafeBounds(State, ListedBounds):
    """The confidence bounds of a quantity at all points of a finite set, the tightest so far, from
    told data alone.

    Args:
        model: The model of the quantity, without data.
        points: The points, ``N x d``.
        quantity: What is assumed of it.
        policy: How pending trials count in standard deviations and covariances.
    """

    def __init__(
        self, model: KernelGP, points: Tensor, quantity: Quantity, policy: PendingPolicy
    ) -> None:
        self.model, self.quantity = model.fork(), quantity
        ridges = quantity.width.ridges or ()
        self._first = ridges.index(1.0)
        noise = model.noise_variance * points.new_tensor(ridges)
        self._noise = float(model.noise_variance)
        posterior = FinitePosterior(model.kernel, points, noise, model.mean)
        mean, std = (each[self._first] for each in posterior.prior(points))
        reach = quantity.reach(std)
        if quantity.misspecification:
            posterior.keep_weights()
        self.rows = TrialRows(posterior, policy)
        #: Whether the told data refute the model: the bounds contradict each other at some point,
        #: or the lower bound of the RKHS norm exceeds B.
        self.is_refuted = False
        #: The tightest lower and upper bounds so far, ``N`` each; infinite for a quantity with a
        #: limit until there are results, since a wrong B alone could certify all points.
        self.lower, self.upper = mean - reach, mean + reach
        if quantity.limit is not None:
            self.lower, self.upper = (torch.full_like(reach, end) for end in (-inf, inf))
        self._prior_length = 2 * reach

    @property
    def shares(self) -> Tensor:
        return shares_of(self.upper - self.lower, self._prior_length)

    def told_mean(self, history: History) -> Tensor:
        """The posterior mean of the told data at all points, ``N``."""
        return self.rows.told(history).mean[self._first]

    def absorb(self, event: Event, history: History) -> None:
        """Updates this state, a successor that is not yet in use, for the last event."""
        if not self.rows.absorb(event, history):
            return
        self.rows.catch_up()
        told = self.rows.told(history)
        norms = told.weight_norms_of_candidates() if self.quantity.misspecification else None
        half = half_widths(self.quantity, told).of(told.std, norms)
        self.lower = torch.maximum(self.lower, (told.mean - half).amax(dim=0))
        self.upper = torch.minimum(self.upper, (told.mean + half).amin(dim=0))
        # The norm is tested after every result, since a point may be unsafe until it is refuted.
        K, y = gram_and_residuals(told)
        own = ToldData(K[self._first], y[self._first], self._noise)
        self.is_refuted = self.quantity.is_refuted(self.lower, self.upper, own)

    def gains(self, target: int) -> Tensor:
        posterior, row = self.rows.current().posterior, self._first
        covariance = posterior.covariance_of_candidate(target)[row]
        return gains_of(posterior.variance[row], posterior.noise_variance[row], covariance)


class JointBounds(State):
    """The confidence bounds of a quantity at any point, or with contexts at any joint row, from
    told data alone; at asked and attached points the tightest so far.

    Args:
        model: The model of the quantity, without data.
        points: Points that count as asked, ``n x d``.
        quantity: As for `SafeBounds`.
        policy: As for `SafeBounds`.
    """

    def __init__(
        self, model: KernelGP, points: Tensor, quantity: Quantity, policy: PendingPolicy
    ) -> None:
        self._none = points[:0]
        self.model = model.fork()
        self._quantity = quantity
        self.rows = TrialRows(model.fork(), policy)
        #: The bounds now.
        self.now = CertifiedBounds(self.model, quantity)
        if len(points):
            self.now = self.now.watching(points)
        #: As for `SafeBounds`, at asked and attached points.
        self.is_refuted = False

    @property
    def points(self) -> Tensor:
        """The points so far, ``W x d``."""
        return self._none if self.now.watched is None else self.now.watched[0]

    def absorb(self, event: Event, history: History) -> None:
        """Updates this state, a successor that is not yet in use, for the last event."""
        is_told, before = self.rows.absorb(event, history), self.now.watched
        if is_told:
            self.rows.catch_up()
            self.now = CertifiedBounds(self.rows.posterior, self._quantity)
            if before is not None:
                self.now = self.now.watching(*before)
        if isinstance(event, Asked | Attached):
            x = event.trial.point
            if before is None or not bool((before[0] == x).all(dim=-1).any()):
                self.now = self.now.watching(x[None])
        if is_told:
            self.is_refuted = self.now.is_refuted_at(self.points)

    def means_at(self, X: Tensor) -> Tensor:
        """The posterior mean of the told data at ``n`` points or joint rows, ``n``."""
        return self.rows.for_means().posterior.mean_at(X)

    def gains(self, X: Tensor, target: Tensor) -> Tensor:
        """By how much a result at each of ``n`` points or joint rows reduces the variance at a
        target, ``1 x d``, pending trials included, as `gains_of`."""
        model = self.rows.current().posterior
        _, variance, V = model.moments(X)
        prior = model.kernel_function(X, target).squeeze(-1)
        covariance = prior - (V * model.moments(target)[2]).sum(dim=-2)
        return gains_of(variance, model.noise_variance, covariance)


class BoundsInContext(ListedBounds):
    """The confidence bounds of a quantity at listed actions in a context.

    Args:
        bounds: The bounds at any joint row.
        joint: The joint rows of the actions, ``N x (d + d_z)``.
    """

    @torch.no_grad()
    def __init__(self, bounds: JointBounds, joint: Tensor) -> None:
        self._bounds, self._joint = bounds, joint
        self.quantity = bounds.now.quantity
        self.lower, self.upper = bounds.now.bounds(joint)

    @property
    @torch.no_grad()
    def shares(self) -> Tensor:
        return self._bounds.now.shares(self._joint)

    @torch.no_grad()
    def gains(self, target: int) -> Tensor:
        return self._bounds.gains(self._joint, self._joint[target : target + 1])
