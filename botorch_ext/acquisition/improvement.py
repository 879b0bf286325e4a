"""The logarithm of expected improvement, averaged over several models."""

from __future__ import annotations

import math
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from torch import Tensor

from botorch_ext.acquisition.alternatives import AlternativesAcquisitionFunction
from botorch_ext.acquisition.input_checks import as_rows
from botorch_ext.domains.points import checked_tensor, require_finite
from botorch_ext.search.improvement import log_improvement


class IntegratedLogEI(AlternativesAcquisitionFunction):
    """The logarithm of the expected improvement, averaged over models.

    The models are the draws of a fully Bayesian model, particles (`Ensemble.to_botorch`), or any
    models of the same quantity. Each model improves on the largest of its own means. If
    observations are noisy, BoTorch's ``qLogNoisyExpectedImprovement`` of the same ensemble is the
    better choice, and is what `integrated_ei` uses.

    Source: Snoek et al. 2012 (integrated expected improvement); Ament et al. 2023 (its logarithm).

    Args:
        models: A `CandidateModels`, a sequence of single-output BoTorch models, a batched
            `KernelGP` or one ensemble.
        X_baseline: The ``n x d`` evaluated points: each model improves on its own largest mean
            there and at pending points. None: ``best_f`` is given.
        best_f: The value to improve on, in place of ``X_baseline``: a number, or one for each of m
            models. The means at pending points count too. None: ``X_baseline`` is given.
        posterior_transform: As in BoTorch, applied to every model.
        maximize: Whether f is maximised; False for minimisation.
        X_pending: The ``n x d`` pending points, which are hallucinated for every model. None: no
            pending points.

    Raises:
        ValueError: If there are no models; if models differ in dtype, device or input dimension; or
            if both or none of ``X_baseline`` and ``best_f`` are given.

    Example:
        >>> import torch
        >>> from botorch_ext import CandidateModels
        >>> from botorch_ext.acquisition import IntegratedLogEI
        >>> from gpytorch.kernels import RBFKernel
        >>> models = CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> X = torch.tensor([[0.2], [0.5]], dtype=torch.float64)
        >>> models.add(X, torch.tensor([0.1, 0.4], dtype=torch.float64))
        >>> acqf = IntegratedLogEI(models, X_baseline=X)
        >>> [round(value, 2) for value in acqf([[[0.0]], [[1.0]]]).tolist()]
        [-2.57, -1.31]
    """

    _log = True
    incumbents: Tensor
    _X_baseline: Tensor | None

    def __init__(
        self,
        models: Any,
        X_baseline: Tensor | None = None,
        best_f: float | Tensor | None = None,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(models, posterior_transform, maximize)
        X_baseline = as_rows(X_baseline, self.model, "X_baseline")
        if (X_baseline is None or not len(X_baseline)) == (best_f is None):
            raise ValueError(
                "X_baseline or best_f must be given, and not both, got "
                f"{'none' if best_f is None else 'both'}"
            )
        self.register_buffer("_X_baseline", X_baseline, persistent=False)
        best = None  # of the baseline: found where pending points are set
        if X_baseline is None:
            if isinstance(best_f, bool):
                raise ValueError(f"best_f must be numbers, got {best_f!r}")
            best = checked_tensor(best_f, torch.float64, self._columns.device, "best_f")
            require_finite({"best_f": best})
            if best.shape not in ((), (self.num_models,)):
                raise ValueError(
                    f"best_f must be a number or {self.num_models}, got shape {tuple(best.shape)}"
                )
            best = best.expand(self.num_models) * (1 if maximize else -1)
        self.register_buffer("_best", best)
        self.register_buffer("incumbents", best)
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        baseline = self._buffers.get("_X_baseline")
        if baseline is not None:
            self._best = self._told_means(baseline).amax(dim=-2)
        super().set_X_pending(X_pending)

    def _hallucinate(self, X_pending: Tensor | None) -> None:
        super()._hallucinate(X_pending)
        if "_best" in self._buffers:  # not in the constructor of the base class
            best: Any = self._best
            if self.X_pending is not None and len(self.X_pending):
                best = torch.maximum(best, self._told_means(self.X_pending).amax(dim=-2))
            self.incumbents = best

    def _values(self, X: Tensor) -> Tensor:
        self.to(X)  # as BoTorch's analytic acquisition functions do
        return self._improvement(*self._moments_of(self.model, X), self.incumbents)

    def _of_moments(self, mean: Tensor, std: Tensor) -> Tensor:
        before = mean.cummax(dim=-2).values[..., :-1, :]
        first = self.incumbents.expand_as(mean[..., :1, :])
        return self._improvement(
            mean, std, torch.cat([first, torch.maximum(first, before)], dim=-2)
        )

    def _improvement(self, mean: Tensor, std: Tensor, incumbents: Tensor) -> Tensor:
        values = std.log() + _LogImprovement.apply((mean - incumbents) / std)
        return values.logsumexp(dim=-1) - math.log(self.num_models)

    @torch.no_grad()
    def _told_means(self, X: Tensor) -> Tensor:
        """The means of the models without pending points at ``n x d`` points, ``n x m``."""
        return self._moments_of(self._told_model, X.unsqueeze(-2))[0]


class _LogImprovement(torch.autograd.Function):
    """`log_improvement` with a derivative of its own, as autograd would lose digits by
    cancellation."""

    @staticmethod
    def forward(ctx: Any, z: Tensor) -> Tensor:  # pyright: ignore
        value, slope, _ = log_improvement(z)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # pyright: ignore
        (slope,) = ctx.saved_tensors
        return gradient * slope
