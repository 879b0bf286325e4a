"""The posterior standard deviation as a BoTorch acquisition function."""

from __future__ import annotations

from botorch.utils.transforms import average_over_ensemble_models
from torch import Tensor

from botorch_ext.acquisition.pending import HallucinatingAcquisitionFunction


class MaxVariance(HallucinatingAcquisitionFunction):
    """The posterior standard deviation, given the data and the pending points.

    It is BoTorch's `PosteriorStandardDeviation` with pending points, so that
    ``optimize_acqf(..., q=4)`` gives a batch. For whole rounds `plan` is far
    faster. Source: max-variance selection, Vakili et al. 2023, eq. 6.

    Args:
        model: A fitted single-output model.
        posterior_transform: As in BoTorch.
        X_pending: The ``n x d`` pending points, which are hallucinated. None: no pending points.

    Example:
        >>> import torch
        >>> from botorch_ext import KernelGP
        >>> from botorch_ext.acquisition import MaxVariance
        >>> from gpytorch.kernels import RBFKernel
        >>> model = KernelGP(RBFKernel(), noise_variance=0.01, dtype=torch.float64)
        >>> acqf = MaxVariance(model, X_pending=[[0.3]])
        >>> [round(value, 2) for value in acqf([[[0.3]], [[1.0]]]).tolist()]
        [0.1, 0.8]
    """

    @average_over_ensemble_models  # pyright: ignore[reportArgumentType]
    def _values(self, X: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._of_moments(*self._moments(X))

    def _of_moments(self, mean: Tensor, std: Tensor) -> Tensor:
        return std
