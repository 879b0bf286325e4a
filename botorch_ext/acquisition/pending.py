"""What our acquisition functions share: one point at a time, pending points hallucinated."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor


class HallucinatingAcquisitionFunction(AnalyticAcquisitionFunction):
    """An analytic acquisition function whose model counts pending points in the standard deviation
    and not in the mean (GP-BUCB: Desautels et al. 2014).

    Args:
        model: A fitted single-output model.
        posterior_transform: As in BoTorch.
        X_pending: ``n x d`` points that are asked and not yet told.
    """

    def __init__(
        self,
        model: Model,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model=model, posterior_transform=posterior_transform)
        self._told_model = model
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Hallucinates pending points: the standard deviation counts them, the mean does not.

        Args:
            X_pending: ``n x d`` points that are asked and not yet told, or None for no such points.
        """
        # AnalyticAcquisitionFunction refuses pending points; the version above it stores them.
        super(AnalyticAcquisitionFunction, self).set_X_pending(X_pending)
        self.model = self._told_model
        if self.X_pending is None or not len(self.X_pending):
            return
        with torch.no_grad():
            # One evaluation fills the caches that conditioning a GPyTorch model starts from.
            posterior: Any = self.model.posterior(self.X_pending)
            mean = posterior.mean
            self.model = self.model.condition_on_observations(self.X_pending, mean)

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at ``(b1 x ... bk) x 1 x d``: ``(b1 x ... bk)``."""
        mean, std = self._mean_and_sigma(X)
        if std is None:  # never: it was asked for
            raise RuntimeError("the posterior has no standard deviation")
        return mean.squeeze(-1), std.squeeze(-1)
