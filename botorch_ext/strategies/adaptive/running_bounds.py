"""The tightest confidence bounds so far at points, from models and from averages."""

from __future__ import annotations

import math
from copy import copy
from typing import Self, cast

import torch
from torch import Tensor

from botorch_ext.search.intersected import narrowest
from botorch_ext.state import State

# The number of watched points that were never asked, of which the newest are kept.
_MOST_UNASKED = 256


class RunningBounds(State):
    """The tightest bounds so far on f at n points.

    They are the bounds of each of m models at each of M levels of misspecification, and the bounds
    from the average of a point's own observations.

    Args:
        prior: The ``m x n`` prior means and the ``m x n`` prior standard deviations of the models.
        rkhs_bound: B.
        levels: The ``M`` misspecifications, ascending.
    """

    def __init__(self, prior: tuple[Tensor, Tensor], rkhs_bound: float, levels: Tensor) -> None:
        mean, std = prior
        self.levels = levels
        #: The largest contradiction of bounds that rounding alone may cause.
        self._rounding = 1e-12 if std.dtype is torch.float64 else 1e-3 * rkhs_bound
        reach = rkhs_bound * std.unsqueeze(1) + levels[:, None]
        #: The bounds of the models, ``m x M x n``.
        self.upper, self.lower = mean.unsqueeze(1) + reach, mean.unsqueeze(1) - reach
        unknown = torch.full_like(std[0], math.inf)
        #: The bounds of the averages, ``n``.
        self.average_upper, self.average_lower = unknown, -unknown
        #: The number of observations at each point and their sums, ``n`` each.
        self.counts, self.sums = torch.zeros_like(unknown), torch.zeros_like(unknown)

    def __len__(self) -> int:
        return len(self.counts)

    def tightened(self, mean: Tensor, std: Tensor, widths: Tensor, num_ridges: int = 1) -> Self:
        """The bounds, tightened by those of the current posteriors.

        Args:
            mean: The ``m x n`` posterior means.
            std: The ``m x n`` posterior standard deviations.
            widths: The ``m x M`` widths. The half-width of a bound is the width times the standard
                deviation, plus the level.
            num_ridges: R, if the posteriors are ``m R``, those of a model at R ridges one after the
                other. Each bound is then that of the ridge with the least half-width.
        """
        new, mean = copy(self), mean.unsqueeze(1)
        reach = torch.addcmul(self.levels[:, None], widths.unsqueeze(-1), std.unsqueeze(1))
        if num_ridges > 1:
            mean, reach = (
                values.unflatten(0, (-1, num_ridges)) for values in (mean.expand_as(reach), reach)
            )
            mean, reach = narrowest(mean, reach, dim=1)
        new.upper = torch.minimum(self.upper, mean + reach)
        new.lower = torch.maximum(self.lower, mean - reach)
        return new

    def observe(self, row: int, value: float, noise_std: float, union: float, delta: float) -> None:
        """Learns an observation at a point.

        Args:
            row: The row of the point.
            value: The observation.
            noise_std: sigma, the sub-Gaussian constant of its noise.
            union: One over the share of delta that is spent on this point.
            delta: The failure probability of all averages together.
        """
        for name in _OF_POINTS[2:]:
            setattr(self, name, getattr(self, name).clone())
        self.counts[row] += 1
        self.sums[row] += value
        n = self.counts[row]
        average = self.sums[row] / n
        reach = noise_std * (2 / n * (union * (math.pi * n).square() / (3 * delta)).log()).sqrt()
        self.average_upper[row] = torch.minimum(self.average_upper[row], average + reach)
        self.average_lower[row] = torch.maximum(self.average_lower[row], average - reach)

    def refuted(self) -> Tensor:
        """Whether the bounds of a model contradict each other at some point, ``m x M``."""
        gap = self._lower(self.lower) - self._upper(self.upper)
        return (gap > self._rounding).any(dim=-1)

    def of(self, playing: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The bounds that hold if those of one of the playing models do.

        Args:
            playing: A mask ``m x M`` with at least one model for each level.

        Returns:
            Upper bounds, lower bounds, and the upper bounds of the models alone, ``M x n`` each.
        """
        upper, lower = self.upper[0], self.lower[0]
        if len(self.upper) > 1:
            out = ~playing.unsqueeze(-1)
            upper = self.upper.masked_fill(out, -math.inf).amax(dim=0)
            lower = self.lower.masked_fill(out, math.inf).amin(dim=0)
        return self._upper(upper), self._lower(lower), upper

    def rows(self, rows: Tensor) -> Self:
        """The bounds of some of the points."""
        new = copy(self)
        for name in _OF_POINTS:
            setattr(new, name, getattr(self, name)[..., rows])
        return new

    def joined(self, other: RunningBounds) -> Self:
        """These bounds, followed by those of other points."""
        new = copy(self)
        for name in _OF_POINTS:
            setattr(new, name, torch.cat([getattr(self, name), getattr(other, name)], dim=-1))
        return new

    def _upper(self, of_models: Tensor) -> Tensor:
        return torch.minimum(of_models, self.average_upper)

    def _lower(self, of_models: Tensor) -> Tensor:
        return torch.maximum(of_models, self.average_lower)


_OF_POINTS = ("upper", "lower", "average_upper", "average_lower", "counts", "sums")


class WatchedPoints(State):
    """Joint rows with their running bounds, and an index from a row to its position.

    Args:
        X: The rows, ``K x (d + d_z)``.
        bounds: The bounds at these rows.
    """

    def __init__(self, X: Tensor, bounds: RunningBounds) -> None:
        self.X, self.bounds = X, bounds
        self._asked = [True] * len(X)
        self._index()

    def position(self, row: tuple[float, ...]) -> int:
        """The position of a joint row, which must be watched."""
        return self._positions[row]

    def positions(self, X: Tensor) -> list[int | None]:
        """The positions of ``n`` joint rows; None for rows that are not watched."""
        return [self._positions.get(tuple(row)) for row in X.tolist()]

    def extend(self, X: Tensor, bounds: RunningBounds) -> None:
        """Watches more rows, which must be new.

        Args:
            X: The rows, ``n x (d + d_z)``; the first ones set the number of columns.
            bounds: The bounds at these rows.
        """
        if len(self.X):
            X, bounds = torch.cat([self.X, X]), self.bounds.joined(bounds)
        self.X, self.bounds = X, bounds
        self._asked += [False] * (len(X) - len(self._asked))
        self._index()

    def keep(self, X: Tensor) -> None:
        """Keeps watched joint rows for ever, and drops the oldest of many that are not kept."""
        for position in self.positions(X):
            self._asked[cast(int, position)] = True
        unasked = [position for position, is_asked in enumerate(self._asked) if not is_asked]
        dropped = set(unasked[:-_MOST_UNASKED])
        if dropped:
            kept = [position for position in range(len(self.X)) if position not in dropped]
            rows = torch.tensor(kept, device=self.X.device)
            self.X, self.bounds = self.X[rows], self.bounds.rows(rows)
            self._asked = [self._asked[position] for position in kept]
            self._index()

    def _index(self) -> None:
        self._positions = {tuple(row): position for position, row in enumerate(self.X.tolist())}
