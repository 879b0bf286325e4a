"""Acquisition functions of single points that hallucinate pending points."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable
from inspect import signature
from typing import Any, Self

import torch
from botorch.acquisition import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.models.utils import fantasize
from botorch.optim.initializers import gen_batch_initial_conditions
from botorch.posteriors import GPyTorchPosterior, TransformedPosterior
from botorch.utils.transforms import is_ensemble, t_batch_mode_transform
from gpytorch.likelihoods import FixedNoiseGaussianLikelihood
from gpytorch.models import ExactGP
from linear_operator.utils.cholesky import psd_safe_cholesky
from torch import Tensor

from botorch_ext.acquisition.input_checks import appends_columns, as_batch, as_rows, batch_shape_of
from botorch_ext.acquisition.tasks import mean_noise, with_task
from botorch_ext.checks import short
from botorch_ext.domains.points import require_finite
from botorch_ext.models.kernel_gp import KernelGP

# The least posterior variance, as in BoTorch's analytic acquisition functions.
LEAST_VARIANCE = 1e-12


class HallucinatingAcquisitionFunction(AnalyticAcquisitionFunction):
    """An analytic acquisition function in which pending points count in the standard deviation and
    not in the mean (GP-BUCB: Desautels et al. 2014).

    With an outcome transform that is not linear, this holds before the transform is undone; the
    untransformed mean depends on both.

    The value at a batch of q points is that of a batch chosen one by one: the sum of the values of
    its points, in their order, each with the points before it pending too. So a greedy choice adds
    the most at every step. If values are logarithms, the value is the logarithm of the sum.

    If the model gets more data or other hyperparameters later, set the pending points again, as in
    BoTorch.

    Args:
        model: A fitted single-output model.
        posterior_transform: As in BoTorch.
        X_pending: The ``n x d`` pending points. None: no pending points.
    """

    #: The values by the means and standard deviations at points, where nothing else counts.
    _of_moments: Callable[[Tensor, Tensor], Tensor]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "beta" in kwargs and "width" in signature(cls.__init__).parameters:
            raise TypeError(
                f"{cls.__name__}() takes no beta: its square root is the width, width=beta**0.5"
            )
        return super().__new__(cls)

    def __init__(
        self,
        model: Model,
        posterior_transform: PosteriorTransform | None = None,
        X_pending: Tensor | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ValueError(f"model must be a BoTorch model, got {short(model)}")
        super().__init__(model=model, posterior_transform=posterior_transform)
        self._told_model = model
        self.set_X_pending(X_pending)

    @property
    def _dim(self) -> int | None:
        """d if it is known without the model, else None."""
        return None

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Sets the pending points, which are hallucinated: they count in the standard deviation and
        not in the mean.

        Args:
            X_pending: The ``n x d`` pending points, as a tensor, an array or nested numbers; None
                for no pending points.

        Raises:
            ValueError: If points have another shape, dtype or device than the model's, if an entry
                is not finite, or if the model cannot be conditioned on more points.
        """
        self._hallucinate(as_rows(X_pending, self._told_model, "X_pending", self._dim))

    def _hallucinate(self, X_pending: Tensor | None) -> None:
        """Hallucinates pending points that were checked, with the model as it was when a user set
        them."""
        model = self._told_model
        if X_pending is not None and len(X_pending):
            model = _hallucinated(model, X_pending)
        # AnalyticAcquisitionFunction refuses pending points; its base class stores them.
        super(AnalyticAcquisitionFunction, self).set_X_pending(X_pending)
        self.model = model

    def forward(self, X: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The values at batches of points.

        Args:
            X: The points ``(b1 x ... bk) x q x d``, as a tensor, an array or nested numbers.
                Gradients with q > 1 are there for Gaussian processes of one output whose outcomes
                are transformed linearly, if at all; not for `StableUCB`, nor for confidence bounds
                of an ensemble. There several points are chosen one by one (``sequential=True``).

        Returns:
            The ``(b1 x ... bk)`` values; for q = 1 and batched models, the batch shape of the
            models.

        Raises:
            ValueError: If there are no points; if several points have NaN; if points have another
                dtype, device or dimension than the model's; or if gradients for q > 1 are needed
                and cannot be had, at once where ``optimize_acqf`` draws the starts of an ascent.
        """
        X = as_batch(X, self._told_model, dim=self._dim)
        return self._of_batches(X)

    @t_batch_mode_transform()  # pyright: ignore[reportArgumentType]
    def _of_batches(self, X: Tensor) -> Tensor:
        batch, q = X.shape[:-2], X.shape[-2]
        if q == 0:
            raise ValueError(f"X must have at least one point in each batch, got {tuple(X.shape)}")
        if not batch.numel():
            return X.new_zeros(batch)
        if q == 1:
            return self._values(X)
        require_finite({"X": X.detach()})
        values = self._values_in_turn(X)
        if values is not None:
            return values.logsumexp(dim=-1) if self._log else values.sum(dim=-1)
        if (X.requires_grad and torch.is_grad_enabled()) or _starts_are_drawn():
            raise ValueError(
                f"X must have q = 1 for gradients, got q = {q}: "
                "choose points one by one, as with sequential=True"
            )
        return torch.stack([self._joint_value(points) for points in X.flatten(0, -3)]).view(batch)

    def _joint_value(self, points: Tensor) -> Tensor:
        """The value of ``q x d`` points, each with the points before it pending too."""
        pending, values = self.X_pending, []
        try:
            for i, x in enumerate(points):
                if i:
                    before = [points[:i]] if pending is None else [pending, points[:i]]
                    self._hallucinate(torch.cat(before))
                values.append(self._values(x.view(1, 1, -1)))
        finally:
            self._hallucinate(pending)
        each = torch.stack(values)
        if each[0].numel() != 1:
            raise ValueError(
                f"X must have q = 1 for models of batch shape {tuple(each.shape[1:])}, "
                f"got q = {len(points)}"
            )
        return (each.logsumexp(dim=0) if self._log else each.sum(dim=0)).squeeze()

    @abstractmethod
    def _values(self, X: Tensor) -> Tensor:
        """The values at single points, ``(b1 x ... bk) x 1 x d`` to ``(b1 x ... bk)``."""

    def _values_in_turn(self, X: Tensor) -> Tensor | None:
        """The values at the points of batches, each with the points before it pending too, from one
        joint posterior, which is much faster than one posterior for each point.

        Args:
            X: The batches, ``... x q x d``.

        Returns:
            The values, ``... x q``; None if they are known one by one alone.
        """
        moments = self._moments_in_turn(X)
        if moments is None:
            return None
        self.to(X)  # as BoTorch's analytic acquisition functions do
        return self._of_moments(*moments)

    def _moments_in_turn(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        """The moments of `moments_in_turn`; None if values do not follow from them."""
        if batch_shape_of(self.model):
            return None
        return moments_in_turn(self.model, X, self.posterior_transform)

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and standard deviation at ``(b1 x ... bk) x 1 x d``, ``(b1 x ... bk)`` each."""
        moments: Any = self._mean_and_sigma(X)
        mean, std = moments
        return mean.squeeze(-1), std.squeeze(-1)


def moments_in_turn(
    model: Any, X: Tensor, transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor] | None:
    """The mean and the standard deviation of f at the points of batches, each with the points
    before it hallucinated.

    They follow from the joint posterior of each batch: with its covariance C and the noise
    variances D, the variance at point i is C_ii minus the squares of row i of the Cholesky factor
    of C + D, left of the diagonal.

    Args:
        model: A model.
        X: The batches, as the model takes them, ``... x q x d``.
        transform: The posterior transform, as in BoTorch.

    Returns:
        Two ``... x q``-dim tensors; None for a model other than a Gaussian process of one output
        whose outcomes are transformed linearly, if at all.
    """
    if not isinstance(model, ExactGP | KernelGP) or model.num_outputs != 1:
        return None
    posterior = model.posterior(X, posterior_transform=transform)
    q = X.shape[-2]
    if not isinstance(posterior, GPyTorchPosterior) or posterior.mean.shape[-2:] != (q, 1):
        return None
    covariance = posterior.distribution.covariance_matrix
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    if isinstance(model, KernelGP) and not model.has_transforms and transform is None:
        noise = model.noise_variance.unsqueeze(-1).expand_as(variance)
    else:
        noisy: Any = model.posterior(X, observation_noise=True, posterior_transform=transform)
        noise = noisy.variance.squeeze(-1) - variance
    factor = psd_safe_cholesky(covariance + torch.diag_embed(noise))
    variance = variance - factor.tril(diagonal=-1).square().sum(dim=-1)
    return posterior.mean.squeeze(-1), variance.clamp_min(LEAST_VARIANCE).sqrt()


def _starts_are_drawn() -> bool:
    """Whether BoTorch draws the starts of an ascent, which needs gradients: it evaluates hundreds
    of batches without them first."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code is not gen_batch_initial_conditions.__code__:
        frame = frame.f_back
    return frame is not None


def _told(posterior: Any) -> Tensor:
    """The outcomes that do not change the mean of a posterior when a model is conditioned on them:
    the mean itself, or the transform of the mean before the transform."""
    if isinstance(posterior, TransformedPosterior):
        return posterior._sample_transform(_told(posterior._posterior))
    return posterior.mean


@torch.no_grad()
def _hallucinated(model: Any, X: Tensor) -> Model:
    """The model conditioned on its own mean at ``n x d`` points; raises a ValueError if it cannot
    be."""
    if isinstance(model, ModelList):
        return type(model)(*(_hallucinated(part, X) for part in model.models))
    if not appends_columns(model):
        with fantasize():  # so that BoTorch perturbs no inputs
            return _conditioned(model, X)
    if not isinstance(model, KernelGP):
        raise ValueError(
            "X_pending must be None for a model that appends features to its points, "
            f"got a {type(model).__name__} (KernelGP.from_botorch makes one that takes them)"
        )
    return _conditioned(model, X)


def _conditioned(model: Any, X: Tensor) -> Model:
    X = with_task(model, X)
    # One evaluation fills the caches that conditioning a GPyTorch model starts from.
    mean = _told(model.posterior(X))
    if mean.shape[-2] != X.shape[-2]:
        raise ValueError(
            "X_pending must be None for a model that makes several points of one, "
            f"got a {type(model).__name__}"
        )
    if is_ensemble(model):  # X must have as many dimensions as the mean
        X = X.expand(*mean.shape[:-2], *X.shape)
    options = {}
    if isinstance(getattr(model, "likelihood", None), FixedNoiseGaussianLikelihood):
        # Like BoTorch, which takes the mean too; already outcome-transformed.
        options["noise"] = mean_noise(model, X).expand(mean.shape)
    try:
        return model.condition_on_observations(X, mean, **options)
    except (AttributeError, NotImplementedError, RuntimeError) as error:
        raise ValueError(
            "X_pending must be None for a model that cannot be conditioned on more points, "
            f"got a {type(model).__name__} ({error})"
        ) from error
