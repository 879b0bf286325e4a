"""Upper confidence bounds of several models at once: their maximum and their average."""

from __future__ import annotations

from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.utils.transforms import is_ensemble
from torch import Tensor

from botorch_ext.acquisition.alternatives import AlternativeBounds, Widths
from botorch_ext.checks import some_of
from botorch_ext.domains import checked_tensor, host
from botorch_ext.models.downdate import log_evidence
from botorch_ext.models.kernel_gp import KernelGP


class OptimisticModelUCB(AlternativeBounds):
    """The largest upper confidence bound of several models, max over models u of mean_u + width_u
    std_u (+ offset_u), which hyperparameter elimination maximises.

    For an ensemble, such as a fully Bayesian model, the maximum is over its draws. The gradient is
    that of the model that attains the maximum. Source: Ziomek et al. 2024, algorithm 1.

    Args:
        models: A `CandidateModels`, a sequence of single-output BoTorch models, a batched
            `KernelGP` or one ensemble.
        width: A number, a tensor of m numbers, a width object, or a sequence with one of these for
            each of the m models. Width objects need `KernelGP` models without an outcome transform.
        posterior_transform: As in BoTorch, applied to every model.
        maximize: Whether f is maximised. False gives the bounds for minimisation,
            ``-mean + width * std``.
        X_pending: The ``n x d`` pending points, which are hallucinated for every model. None: no
            pending points.

    Raises:
        ValueError: If there are no models; if a model has several outputs, as a `ModelList` has,
            and there is no ``posterior_transform``; if models differ in dtype, device or input
            dimension; if ``width`` is impossible, or is a sequence whose length is not the number
            of models; or if it has a width object for a model that cannot have one.

    Example:
        >>> from botorch_ext import CandidateModels
        >>> from botorch_ext.acquisition import OptimisticModelUCB
        >>> from gpytorch.kernels import RBFKernel
        >>> models = CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> acqf = OptimisticModelUCB(models, width=[2.0, 3.0])
        >>> acqf([[[0.3]]]).tolist()
        [3.0]
    """

    def _of_moments(self, mean: Tensor, std: Tensor) -> Tensor:
        return self._bounds(mean, std).max(dim=-1).values


class ExpectedUCB(AlternativeBounds):
    """The average upper confidence bound of several models, mean_u + width_u std_u (+ offset_u)
    weighted by P(u | data).

    Source: Ziomek et al. 2024, section 7 (uniform prior over the models).

    The other arguments are those of `OptimisticModelUCB`.

    Args:
        probabilities: P(u | data): m non-negative numbers that sum to 1. None: computed from the
            marginal likelihoods of `KernelGP` models of the same data (without an outcome
            transform; pending rows do not count); uniform over the draws of one ensemble.

    Raises:
        ValueError: If `OptimisticModelUCB` raises it, if ``probabilities`` are impossible, or if
            they are None and do not follow from the models.

    Example:
        >>> from botorch_ext import CandidateModels
        >>> from botorch_ext.acquisition import ExpectedUCB
        >>> from gpytorch.kernels import RBFKernel
        >>> models = CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> acqf = ExpectedUCB(models, width=[2.0, 3.0], probabilities=[0.5, 0.5])
        >>> acqf([[[0.3]]]).tolist()
        [2.5]
    """

    probabilities: Tensor

    def __init__(
        self,
        models: Any,
        width: Widths,
        probabilities: Tensor | list[float] | None = None,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(models, width, posterior_transform, maximize)
        if probabilities is None:
            values = _posterior_probabilities(self.model)[self._columns]
        else:
            values = _checked_probabilities(probabilities, self.num_models)
        self.register_buffer("probabilities", values.to(self.width))
        self.set_X_pending(X_pending)

    def _of_moments(self, mean: Tensor, std: Tensor) -> Tensor:
        return self._bounds(mean, std) @ self.probabilities


def _checked_probabilities(values: Tensor | list[float], num_models: int) -> Tensor:
    values = checked_tensor(values, torch.float64, None, "probabilities")
    if (
        values.shape != (num_models,)
        or not bool((values >= 0).all())
        or abs(float(values.sum()) - 1) > 1e-6
    ):
        raise ValueError(
            f"probabilities must be {num_models} non-negative numbers that sum to 1, "
            f"got {some_of(values)}"
        )
    return values


def _posterior_probabilities(model: Any) -> Tensor:
    """P(u | data) with a uniform prior, in the order of the models that ``model`` holds."""
    models: list[Any] = list(model.models)
    if len(models) == 1 and (is_ensemble(models[0]) or model.counts == [1]):
        return host.full((model.counts[0],), 1 / model.counts[0], dtype=torch.float64)
    if not all(isinstance(each, KernelGP) for each in models):
        names = sorted({type(each).__name__ for each in models})
        raise ValueError(
            "probabilities must be given unless the models are KernelGP models or one ensemble, "
            f"got {', '.join(names)}"
        )
    if any(hasattr(each, "outcome_transform") for each in models):
        raise ValueError("probabilities must be given for models with an outcome transform")
    first = models[0]
    for each in models[1:]:
        if not _same_data(each, first):
            raise ValueError("probabilities must be given for models of different data")
    evidence = [log_evidence(each.factor).reshape(-1) for each in models]
    return torch.cat(evidence).softmax(dim=0)


def _same_data(one: KernelGP, other: KernelGP) -> bool:
    """Whether two models have the same data; inputs are compared if neither transforms them."""
    if one.num_observations != other.num_observations or one.factor.pending != other.factor.pending:
        return False
    known = [row for row in range(one.num_observations) if row not in one.factor.pending]
    if known:
        a, b = (m.train_targets[..., known].reshape(-1, len(known))[:1] for m in (one, other))
        if not torch.allclose(a, b, rtol=1e-4, atol=1e-4 * float(a.abs().max())):
            return False
    if one.has_transforms or other.has_transforms:
        return True
    return torch.equal(one.train_inputs[0], other.train_inputs[0])
