"""Variance: the posterior standard deviation as a BoTorch acquisition function."""

from __future__ import annotations

from botorch.utils.transforms import average_over_ensemble_models
from torch import Tensor

from botorch_ext.acquisition.pending import HallucinatingAcquisitionFunction


class MaxVariance(HallucinatingAcquisitionFunction):
    """The posterior standard deviation, given also the points that are pending.

    BoTorch's `PosteriorStandardDeviation` with pending points, so that
    ``optimize_acqf(..., q=4, sequential=True)`` gives a batch. For whole rounds `plan` is far
    faster. Source: max-variance selection, Vakili et al. 2023, eq. 6.

    Args:
        model: A fitted single-output model.
        posterior_transform: As in BoTorch.
        X_pending: ``n x d`` points that are asked and not yet told; they are hallucinated.
    """

    @average_over_ensemble_models  # pyright: ignore[reportArgumentType]
    def _values(self, X: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._moments(X)[1]
