"""Pending points in acquisition functions: one point at a time, the others hallucinated."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.utils.transforms import is_ensemble
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
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

        Raises:
            ValueError: The model cannot be conditioned on more points.
        """
        model = self._told_model
        if X_pending is not None and len(X_pending):
            model = _hallucinated(model, X_pending)
        # AnalyticAcquisitionFunction refuses pending points; the version above it stores them.
        super(AnalyticAcquisitionFunction, self).set_X_pending(X_pending)
        self.model = model

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at ``(b1 x ... bk) x 1 x d``: ``(b1 x ... bk)``."""
        mean, std = self._mean_and_sigma(X)
        if std is None:  # never: it was asked for
            raise RuntimeError("the posterior has no standard deviation")
        return mean.squeeze(-1), std.squeeze(-1)


@torch.no_grad()
def _hallucinated(model: Any, X: Tensor) -> Model:
    """The model conditioned on its own mean at ``n x d`` points, or a ValueError."""
    if isinstance(model, ModelList):
        return type(model)(*(_hallucinated(part, X) for part in model.models))
    # One evaluation fills the caches that conditioning a GPyTorch model starts from.
    mean = model.posterior(X).mean
    if is_ensemble(model):  # which takes no fewer dimensions of X than of the mean
        X = X.expand(*mean.shape[:-2], *X.shape)
    options = {}
    if isinstance(getattr(model, "likelihood", None), FixedNoiseGaussianLikelihood):
        # Like BoTorch, which takes the mean over the data too; already outcome-transformed.
        noise = model.likelihood.noise_covar.noise.mean(dim=-1)
        noise = noise.unsqueeze(-1) if model.num_outputs == 1 else noise
        options["noise"] = noise.unsqueeze(-2).expand(mean.shape)
    try:
        return model.condition_on_observations(X, mean, **options)
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            "X_pending must be None for a model that cannot be conditioned on more points, "
            f"got a {type(model).__name__} ({error})"
        ) from error
