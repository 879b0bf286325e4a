"""Watched points: where running bounds are kept, all of a finite set or those that mattered."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from botorch_ext.state import State
from botorch_ext.strategies.adaptive.running_bounds import RunningBounds

# Those that nobody asked for: the newest are kept.
_MOST_UNASKED = 256


class WatchedPoints(State):
    """Joint rows with their running bounds, and where each is.

    Args:
        X: ``K x (d + d_z)``.
        bounds: Of these rows.
    """

    def __init__(self, X: Tensor, bounds: RunningBounds) -> None:
        self.X, self.bounds = X, bounds
        self._asked = [True] * len(X)
        self._index()

    def place(self, row: tuple[float, ...]) -> int:
        """The place of a joint row, which must be watched."""
        return self._places[row]

    def places(self, X: Tensor) -> list[int | None]:
        """The places of ``n`` joint rows; None for those that are not watched."""
        return [self._places.get(tuple(row)) for row in X.tolist()]

    def extend(self, X: Tensor, bounds: RunningBounds) -> None:
        """Watches more rows, which must be new.

        Args:
            X: ``n x (d + d_z)``; of how many columns is not known while nothing is watched.
            bounds: Of these rows.
        """
        if len(self.X):
            X, bounds = torch.cat([self.X, X]), self.bounds.joined(bounds)
        self.X, self.bounds = X, bounds
        self._asked += [False] * (len(X) - len(self._asked))
        self._index()

    def keep(self, X: Tensor) -> None:
        """Keeps joint rows that are watched for ever, and of the others the newest."""
        for place in self.places(X):
            self._asked[cast(int, place)] = True
        unasked = [place for place, is_asked in enumerate(self._asked) if not is_asked]
        dropped = set(unasked[:-_MOST_UNASKED])
        if dropped:
            kept = [place for place in range(len(self.X)) if place not in dropped]
            rows = torch.tensor(kept, device=self.X.device)
            self.X, self.bounds = self.X[rows], self.bounds.rows(rows)
            self._asked = [self._asked[place] for place in kept]
            self._index()

    def _index(self) -> None:
        self._places = {tuple(row): place for place, row in enumerate(self.X.tolist())}
