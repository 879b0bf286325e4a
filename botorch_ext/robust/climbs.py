"""Climbs of centres whose worst case is best, under several models, with some columns fixed."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.robust.box_balls import BoxBalls
from botorch_ext.robust.ridges import along_ridges
from botorch_ext.search.objectives import Objective

# Steps of the descents on the way, and what a step of a climb must gain relative to the values.
_HASTY, _TOLERANCE = 8, 1e-6


class Climbs:
    """Climbs along the ridges of the largest worst case of several models.

    Args:
        bounds: Of m models, each at points of its own: an `Objective` on ``n x m x d``.
        balls: What is within reach.
        num_models: m.
    """

    def __init__(self, bounds: Objective, balls: BoxBalls, num_models: int) -> None:
        self._bounds, self._balls, self._num_models = bounds, balls, num_models

    def ends(self, X: Tensor, low: Tensor, high: Tensor, free: Tensor, num_steps: int) -> Tensor:
        """Where climbs end, each under the model that counts at its start.

        Args:
            X: ``n x d``, where they start.
            low: ``d``: limits of the centres.
            high: ``d``: limits of the centres.
            free: ``d``: which columns move.
            num_steps: Of each climb.

        Returns:
            ``n x d``; the ends are not compared with the starts.
        """
        if not bool(free.any()):
            return X
        centers = X.unsqueeze(1).expand(-1, self._num_models, -1)
        values, which = self._balls.worst_case(self._bounds, centers)[0].max(dim=-1)
        tolerance = _TOLERANCE * float(values.abs().max())
        box, hasty = Box(torch.stack([low, high])[:, free]), self._balls.searched(_HASTY)
        ends = X.clone()
        # Starts of one model and with the same fixed columns climb together.
        kinds = torch.cat([which.unsqueeze(-1).to(X), X[:, ~free]], dim=-1)
        for kind in kinds.unique(dim=0):
            rows = (kinds == kind).all(dim=-1).nonzero().flatten()
            cuts = _Cuts(self._bounds, hasty, int(kind[0]), self._num_models, X[rows[0]], free)
            _, found = along_ridges(cuts, box, X[rows][:, free].cpu().numpy(), tolerance, num_steps)
            moved = X[rows]
            moved[:, free] = torch.from_numpy(found).to(X)
            ends[rows] = moved
        return ends


class _Cuts:
    """Bounds of one model at several perturbed points, and how they change as free columns of the
    centre move; the least of them is the worst case.

    Args:
        bounds: Of m models, each at points of its own.
        balls: What is within reach.
        model: Which of the models.
        num_models: m.
        x: ``d``: the columns that are not free.
        free: ``d``.
    """

    def __init__(
        self,
        bounds: Objective,
        balls: BoxBalls,
        model: int,
        num_models: int,
        x: Tensor,
        free: Tensor,
    ) -> None:
        self._bounds, self._balls = bounds, balls
        self._model, self._num_models = model, num_models
        self._x, self._free = x, free

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``r x f`` free columns to ``s x r`` values and ``s x r x f`` gradients."""
        centers = self._x.repeat(len(X), 1)
        centers[:, self._free] = X
        num_models = self._num_models
        values, Z = self._balls.local_worst_cases(
            self._bounds, centers.unsqueeze(1).expand(-1, num_models, -1)
        )
        _, gradients = self._bounds.value_and_gradient(Z.flatten(0, 1))
        Z, gradients = Z[..., self._model, :], gradients.view(Z.shape)[..., self._model, :]
        slopes = self._balls.pulled_back(centers.expand_as(Z), Z, gradients)
        return values[..., self._model], slopes[..., self._free]
