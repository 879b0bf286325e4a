"""Findings: what a strategy says of what it was told."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.contexts import ContextLike, with_context
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.strategies.first_points import FirstPoints
from botorch_ext.strategies.fold import EventFold

# Evaluated points that join the screening of a box.
_NUM_INCUMBENTS = 8


class Findings(EventFold):
    """The points that were evaluated, the best of them, and the report."""

    #: ``(X, Y)`` from before the first event.
    initial: tuple[Tensor, Tensor] | None
    _first_points: FirstPoints

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The told, attached or initial point with the highest posterior mean, and that mean.

        Args:
            context: ``d_z``: the mean of every evaluated action at this context counts. None: at
                the context it was evaluated in.

        Returns:
            The ``d``-dim point and its mean.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: A context that `ask` would refuse.
        """
        X, _ = self.evaluated()
        if context is not None:
            X = with_context(X[:, : self.domain.dim], self.checked_context(context))
        if not len(X):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        mean = self.evaluated_means() if context is None else self.means_at(X)
        top = int(mean.argmax())
        return X[top, : self.domain.dim].clone(), float(mean[top])

    def report(self) -> dict[str, Any]:
        """What the strategy did and knows, as plain numbers, strings and lists."""
        X, Y = self.evaluated()
        summary: dict[str, Any] = {
            "strategy": type(self).__name__,
            "num_asked": self.history.num_asked,
            "num_told": len(self.history.values) - len(self.history.attached),
            "num_initial": self._first_points.num,
            "num_initial_data": 0 if self.initial is None else len(self.initial[0]),
            "pending": self.pending,
            "abandoned": sorted(self.history.abandoned),
            "failed": sorted(self.history.failed),
            "attached": list(self.history.attached),
            "corrected": sorted(self.history.corrected),
            "best": None,
            "best_observation": None,
            "warnings": list(self.warnings),
        }
        if len(X):
            x, mean = self.best()
            summary["best"] = {"x": x.tolist(), "mean": mean}
            summary["best_observation"] = float(Y.max())
        return summary

    def evaluated(self) -> tuple[Tensor, Tensor]:
        """The initial, the told and the attached points, ``n x d`` or with contexts
        ``n x (d + d_z)``, and their ``n`` values."""
        like = self.domain.like
        X, Y = self.history.told_points(like)
        if self.initial is None:
            return X, Y
        if not len(X):
            return self.initial
        return torch.cat([self.initial[0], X]), torch.cat([self.initial[1], Y])

    @abstractmethod
    def evaluated_means(self) -> Tensor:
        """The posterior mean at the points of `evaluated`, in its order."""

    def means_at(self, X: Tensor) -> Tensor:
        """The posterior mean at ``n x (d + d_z)`` joint rows; for strategies with contexts."""
        raise NotImplementedError

    def _incumbents(self) -> Tensor:
        """The evaluated actions with the largest observations."""
        X, Y = self.evaluated()
        return X[Y.topk(min(_NUM_INCUMBENTS, len(Y))).indices, : self.domain.dim]

    @abstractmethod
    def checked_context(self, context: ContextLike | None, name: str = "context") -> Tensor | None:
        """A context as a ``d_z``-dim tensor, None where there are none; or a ValueError that names
        the argument."""
