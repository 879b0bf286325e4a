"""Stable: the worst case of an upper confidence bound over a ball of perturbations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botorch.acquisition.objective import PosteriorTransform
from torch import Tensor

from botorch_ext.acquisition.alternatives import AlternativeBounds, Widths
from botorch_ext.domains import Box
from botorch_ext.robust.box_balls import BoxBalls, Norm
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.search.objectives import FunctionObjective


class StableUCB(AlternativeBounds):
    """min over delta of the upper bound at x + delta, delta in a ball cut off at the bounds; of
    several models the largest such minimum.

    Its maximiser is where the function may still be high whatever small perturbation comes.
    Gradients are those of the worst point (envelope theorem); where two points are equally bad,
    which is common at the maximiser, there is a kink. Source: Bogunovic et al. 2018, algorithm 1
    (StableOpt); Ziomek et al. 2024, algorithm 2.

    Args:
        model: A single-output BoTorch model, or models as for `OptimisticModelUCB`.
        width: As for `OptimisticModelUCB`.
        radius: The radius of the ball, in the units of the coordinates; or one radius for each
            coordinate.
        norm: "l2" or "linf".
        bounds: ``2 x d``: perturbed points stay inside.
        posterior_transform: As in BoTorch, applied to every model.
        maximize: False for a function to be minimised: the worst case over the ball of
            ``-mean + width * std``.
        X_pending: ``n x d`` points that are asked and not yet told; they are hallucinated for every
            model.

    Raises:
        ValueError: As for `OptimisticModelUCB`; a radius, a norm or bounds that are none.
    """

    def __init__(
        self,
        model: Any,
        width: Widths,
        radius: float | Sequence[float] | Tensor,
        norm: Norm = "l2",
        *,
        bounds: Tensor | Sequence[Sequence[float]],
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        self.perturbations = Perturbations(radius, norm)
        box = Box(bounds)
        balls = self.perturbations.on(box)
        super().__init__(model, width, posterior_transform, maximize, X_pending)
        self.box = box
        self._balls = balls

    def _values(self, X: Tensor) -> Tensor:
        batch, d = X.shape[:-2], X.shape[-1]
        balls = self._balls_like(X)
        # Every model has its own worst point: n x m x d.
        centers = X.reshape(-1, 1, d).expand(-1, self.num_models, d)
        _, worst = balls.worst_case(FunctionObjective(self._upper_bounds), centers)
        bounds = self._upper_bounds(balls.follow(centers, worst))
        return bounds.max(dim=-1).values.view(batch)

    def _balls_like(self, X: Tensor) -> BoxBalls:
        if X.dtype != self.box.dtype or X.device != self.box.device:
            self.box = self.box.to(X.dtype, X.device)
            self._balls = self.perturbations.on(self.box)
        return self._balls
