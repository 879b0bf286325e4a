"""Confidence bounds from told data alone, at every level of misspecification."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains.ranks import first_highest
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.bounds import Models
from botorch_ext.strategies.adaptive.pending import PendingPolicy, TrialRows
from botorch_ext.strategies.adaptive.running_bounds import RunningBounds, WatchedPoints
from botorch_ext.strategies.events import Event, History
from botorch_ext.widths import Width
from botorch_ext.widths.base import RKHSWidth


@dataclass(eq=False)
class Look:
    """The bounds and the level of misspecification before a step chooses, from told data.

    Args:
        told: The models given the told data.
        bounds: The running bounds at the watched points, tightened by these models.
        level: The lowest level that is not refuted.
        playing: A mask ``m x M`` of the models whose bounds count at each level.
        refuted: For each level that was given up just now, a dict that ``info`` records.
    """

    told: Models
    bounds: RunningBounds
    level: int
    playing: Tensor
    refuted: list[dict[str, Any]]


class ToldBounds(State):
    """Bounds from told data alone, at watched points, for each level of misspecification.

    Args:
        models: The models without data.
        points: All points of the domain, ``N x d``; None if only some can be watched.
        width: The width of the bounds of each model.
        levels: The levels of misspecification, 0 = eps_0 < eps_1 < ... .
    """

    def __init__(
        self,
        models: Models,
        points: Tensor | None,
        width: RKHSWidth,
        levels: Sequence[float],
    ) -> None:
        self.width, self.levels, self.is_listed = width, list(levels), points is not None
        X = models.noise_variance.new_zeros(0, 0) if points is None else points
        self.watched = WatchedPoints(X, self._prior(models, X))
        # The rows of told data alone, while a trial is pending.
        self._own: TrialRows[Models] | None = None
        # Maps an observed joint row to its number, in the order of first observations.
        self._numbers: dict[tuple[float, ...], int] = {}

    def look(
        self, rows: TrialRows[Models], history: History, level: int, credible: Tensor | None
    ) -> Look:
        """The bounds and the level after the latest events. The watched bounds stay as they are.

        Args:
            rows: The rows of the models, pending ones included; all events must have entered.
            history: All events.
            level: The level that was not refuted before.
            credible: A mask of the ``m`` models that may play; None for all.
        """
        told = self.told(rows, history)
        bounds = self.watched.bounds.tightened(*moments(told, self.watched.X), self.widths(told))
        return self.judged(told, bounds, level, credible)

    def judged(
        self, told: Models, bounds: RunningBounds, level: int, credible: Tensor | None
    ) -> Look:
        """Which levels and models the bounds refute; the other arguments are as for `look`."""
        refuted = bounds.refuted()  # (m, M)
        may = torch.ones_like(refuted[:, 0]) if credible is None else credible
        read = torch.cat([refuted, may.unsqueeze(-1)], dim=-1).tolist()  # the host waits
        players = [model for model, own in enumerate(read) if own[-1]]
        given_up = []
        while level < len(self.levels) - 1 and all(read[u][level] for u in players):
            given_up.append(self._refutation(bounds, level, players[0]))
            level += 1
        playing = may.unsqueeze(-1) & ~refuted
        playing = torch.where(playing.any(dim=0), playing, may.unsqueeze(-1))
        return Look(told, bounds, level, playing, given_up)

    def at(self, joint: Tensor, look: Look) -> RunningBounds:
        """The bounds at ``n`` joint rows, which are running bounds at watched rows."""
        fresh = self._prior(look.told, joint)
        fresh = fresh.tightened(*moments(look.told, joint), self.widths(look.told))
        watched = self.watched.positions(joint)
        if all(position is None for position in watched):
            return fresh
        n = len(self.watched.X)
        rows = [n + row if position is None else position for row, position in enumerate(watched)]
        return look.bounds.joined(fresh).rows(torch.tensor(rows, device=joint.device))

    def widths(self, told: Models, width: Width | None = None) -> Tensor:
        """The widths of each model at each level, ``m x M``, enlarged by eps_j sqrt(n / lambda)."""
        own = told.width(self.width if width is None else width, 1)
        root = (told.num_observations / told.noise_variance).sqrt()
        return torch.addcmul(own[:, None], root[:, None], own.new_tensor(self.levels))

    def watch(self, X: Tensor, told: Models) -> None:
        """Watches joint rows from now on, unless they are watched already, with bounds of
        ``told``."""
        if self.is_listed:
            return
        positions = self.watched.positions(X)
        new = [row for row, position in enumerate(positions) if position is None]
        if new:
            bounds = self._prior(told, X[new])
            bounds = bounds.tightened(*moments(told, X[new]), self.widths(told))
            self.watched.extend(X[new], bounds)

    def keep(self, X: Tensor) -> None:
        """Watches joint rows for ever."""
        if not self.is_listed:
            self.watched.keep(X)

    def observe(self, x: tuple[float, ...], row: int | None, value: float) -> None:
        """Learns an observation at a joint row, which is watched; ``row`` is its row in the finite
        set, if all points are listed."""
        width, position, union = self.width, row, float(len(self.watched.X))
        if not self.is_listed:
            position = self.watched.position(x)
            number = self._numbers.setdefault(x, len(self._numbers) + 1)
            union = (math.pi * number) ** 2 / 6
        bounds = self.watched.bounds
        bounds.observe(cast(int, position), value, width.noise_std, union, width.delta)

    def told(self, rows: TrialRows[Models], history: History) -> Models:
        """The models given told data alone: those of ``rows`` while no trial is pending."""
        untold = rows.untold(history)
        if not untold:
            self._own = None
            return rows.posterior
        if self._own is None:
            self._own = TrialRows(rows.without(untold), PendingPolicy("ignore"))
        return self._own.posterior

    def absorb(self, event: Event, history: History) -> None:
        """Updates the rows of told data alone for the last event."""
        if self._own is not None:
            self._own.absorb(event, history)

    def _prior(self, models: Models, X: Tensor) -> RunningBounds:
        empty = models.noise_variance.new_zeros(len(models), 0)
        prior = models.prior(X) if len(X) else (empty, empty)
        return RunningBounds(prior, self.width.rkhs_bound, empty.new_tensor(self.levels))

    def _refutation(self, bounds: RunningBounds, level: int, model: int) -> dict[str, Any]:
        """The dict about a refuted level: the point where the bounds contradict each other most."""
        lower = torch.maximum(bounds.lower[model, level], bounds.average_lower)
        upper = torch.minimum(bounds.upper[model, level], bounds.average_upper)
        row = int(first_highest(lower - upper))
        return {
            "level": level,
            "point": self.watched.X[row].tolist(),
            "lower": float(lower[row]),
            "upper": float(upper[row]),
        }


@torch.no_grad()
def moments(models: Models, joint: Tensor) -> tuple[Tensor, Tensor]:
    """The means and standard deviations of models at joint rows, ``m x n`` each; those of models of
    a finite set at all its points."""
    if isinstance(models, FiniteCandidates):
        return models.mean, models.std
    if not len(joint):
        empty = joint.new_zeros(len(models), 0)
        return empty, empty
    return models.mean_and_std(joint)
