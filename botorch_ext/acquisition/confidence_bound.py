"""Confidence bounds as BoTorch acquisition functions, for any single-output BoTorch model."""

from __future__ import annotations

import math
import warnings
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.models.transforms.outcome import Standardize
from botorch.utils.transforms import average_over_ensemble_models
from torch import Tensor

from botorch_ext.acquisition.input_checks import (
    appends_columns,
    batch_shape_of,
    checked_amounts,
    inputs_of,
)
from botorch_ext.acquisition.pending import HallucinatingAcquisitionFunction
from botorch_ext.acquisition.tasks import with_task, without_task
from botorch_ext.checks import amount, flag, whole_number
from botorch_ext.domains import host
from botorch_ext.exceptions import EnlargementWarning
from botorch_ext.models.checks import checked_noise_variance
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.widths import PointwiseEnlarged, Width, enlarging
from botorch_ext.widths import enlargement as published_enlargement
from botorch_ext.widths.base import SEVERAL_TIMES, require_no_function
from botorch_ext.widths.composed import EnlargementForm, require_plain

# The largest number of training points at which the noise variances are compared.
_NOISE_POINTS = 64

# The largest difference of two variances that counts as rounding, in machine epsilons.
_ROUNDING = 1e3


def evaluated_width(
    model: Model, width: float | Tensor | Width
) -> tuple[float | Tensor, float | Tensor]:
    """The width and the offset of a confidence bound of a model, as numbers or tensors.

    Args:
        model: A fitted single-output model.
        width: One or several numbers, whose offset is 0, or a width object.

    Raises:
        ValueError: If ``width`` is none of these, or if it is a width object and the model is not a
            `KernelGP`, has an outcome transform, or has observations that differ in noise, for
            which the width is not.
    """
    if not isinstance(width, Width):
        require_no_function(width, "width")
        return checked_amounts(width, "width"), 0.0
    if not isinstance(model, KernelGP):
        raise ValueError(
            f"width must be a number or a tensor for a {type(model).__name__}; "
            "width objects need a KernelGP (see KernelGP.from_botorch)"
        )
    require_plain(width)
    if hasattr(model, "outcome_transform"):
        raise ValueError(
            "width must be a number or a tensor for a model with an outcome transform: "
            "width objects compare noise_std and rkhs_bound with its transformed noise"
        )
    if model.relative_noise is not None and not width.takes_unequal_noise:
        raise ValueError(
            "width must be one for observations that differ in noise, as those of the model, got "
            f"{type(width).__name__}"
        )
    t = model.num_observations + 1
    return width(t, model), width.offset(t, model)


class _ConfidenceBound(HallucinatingAcquisitionFunction):
    """The confidence bound mean + sign * (width * std + offset)."""

    _sign: float
    width: Tensor
    offset: Tensor

    def __init__(
        self,
        model: Model,
        width: float | Tensor | Width,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(model, posterior_transform)
        self.maximize = flag(maximize, "maximize")
        self._set_width(width)  # before any point is hallucinated
        self.set_X_pending(X_pending)

    def _set_width(self, width: float | Tensor | Width) -> None:
        # A Python number stays exact until an evaluation moves all buffers to the dtype of X.
        numbers, batch = evaluated_width(self.model, width), batch_shape_of(self.model)
        for name, value in zip(("width", "offset"), numbers, strict=True):
            value = value if isinstance(value, Tensor) else host.tensor(value, dtype=torch.float64)
            if value.numel() != 1 and not _is_for(value, batch):
                raise ValueError(
                    "width must be one number or broadcast to the batch shape of the model, "
                    f"{tuple(batch)}, got shape {tuple(value.shape)}"
                )
            self.register_buffer(name, value)

    @average_over_ensemble_models  # pyright: ignore[reportArgumentType]
    def _values(self, X: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._of_moments(*self._moments(X))

    def _of_moments(self, mean: Tensor, std: Tensor) -> Tensor:
        return (mean if self.maximize else -mean) + self._sign * (self.width * std + self.offset)


class EnlargedUpperConfidenceBound(_ConfidenceBound):
    """The upper confidence bound mean + (width + eps sqrt(t)/sqrt(lambda)) std of EC-GP-UCB, for
    any single-output BoTorch model; or mean + width std + eps ||zeta||_1, for exact ones.

    It replaces `UpperConfidenceBound` if f differs by up to ``misspecification`` from what the
    model can express. With ``misspecification=0`` it is UCB with ``beta = width^2``. Unlike
    BoTorch's UCB it takes pending points, which it hallucinates, so ``optimize_acqf(...,
    q=4)`` gives a batch.

    With ``enlargement="pointwise"`` the misspecification adds eps times the sum of the absolute
    weights zeta of the observations in the posterior mean, which is never more and holds as well
    (see `widths.PointwiseEnlarged`). Pending points have no weights; near them the part is at most
    eps sqrt(t / lambda) times the standard deviation with them. Several points are then chosen one
    by one (``sequential=True``).

    ``misspecification``, ``noise_variance`` and the width are in the units of the model's posterior
    (raw observations, for a model with an outcome transform), after ``posterior_transform``.
    Source: Bogunovic and Krause 2021, algorithm 1.

    Args:
        model: A fitted single-output model.
        width: The width w of the well-specified bound: a number; a tensor that broadcasts to the
            batch shape of the model; or, for a `KernelGP` without an outcome transform, a width
            object.
        misspecification: eps >= 0, the max-norm distance of f to what the model can express.
        noise_variance: lambda. None: what ``observation_noise=True`` adds to the posterior variance
            of the model, for the output task of a multi-task model. Needed if that differs between
            points, as with an outcome transform that is not linear.
        num_observations: t - 1. None: the number of training points of the model, or the largest
            number of a list of models. Pending points do not count, since BoTorch and Ax re-order
            and de-duplicate them.
        posterior_transform: As in BoTorch.
        maximize: Whether f is maximised. False gives the bound for minimisation,
            ``-mean + width * std``.
        X_pending: The ``n x d`` pending points, which are hallucinated. None: no pending points.
        enlargement: "published" or "pointwise". The latter needs a `KernelGP` (see
            `KernelGP.from_botorch`) without batch dimensions, whose outcomes are standardised, if
            they are transformed at all, and no ``posterior_transform``.

    Warns:
        EnlargementWarning: The published enlargement is more than three times the width.

    Raises:
        ValueError: If ``misspecification`` is negative; if ``noise_variance`` is not positive, or
            None although the noise differs between points; if the enlargement is the published one
            and the rows of a `KernelGP` differ in noise; if a default needs training data and
            the model has none; or if ``width`` is a width object and the model is not a `KernelGP`
            or has an outcome transform.

    Example:
        >>> import torch
        >>> from botorch_ext import KernelGP
        >>> from botorch_ext.acquisition import EnlargedUpperConfidenceBound
        >>> from gpytorch.kernels import RBFKernel
        >>> model = KernelGP(RBFKernel(), noise_variance=0.01, dtype=torch.float64)
        >>> X = torch.tensor([[0.2], [0.5]], dtype=torch.float64)
        >>> model.add(X, torch.tensor([0.1, 0.4], dtype=torch.float64))
        >>> acqf = EnlargedUpperConfidenceBound(model, width=2.0, misspecification=0.05)
        >>> points = torch.tensor([[[0.0]], [[1.0]]], dtype=torch.float64)  # 2 x 1 x 1
        >>> [round(value, 2) for value in acqf(points).tolist()]
        [0.53, 1.95]
    """

    _sign = 1.0
    _noise: Tensor

    def __init__(
        self,
        model: Model,
        width: float | Tensor | Width = 2.0,
        misspecification: float = 0.0,
        noise_variance: float | Tensor | None = None,
        num_observations: int | None = None,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
        enlargement: EnlargementForm = "published",
    ) -> None:
        is_pointwise = enlarging(enlargement) is PointwiseEnlarged
        if is_pointwise:
            _require_exact(model, posterior_transform)
        misspecification = amount(misspecification, "misspecification", "non-negative and finite")
        if num_observations is not None:
            num_observations = whole_number(num_observations, "num_observations", least=0)
        super().__init__(model, width, posterior_transform, maximize, X_pending)
        noise = None
        if noise_variance is not None:
            noise = checked_noise_variance(noise_variance, self.width.dtype, self.width.device)
        self._pointwise = misspecification if is_pointwise else 0.0
        if misspecification == 0:
            return
        if num_observations is None:
            num_observations = _num_observations(model)
        if noise is None:
            noise = _noise_variance(model, posterior_transform)
        precision = model.total_precision() if isinstance(model, KernelGP) else None
        if is_pointwise:
            self._t = (num_observations if precision is None else precision) + 1
            self.register_buffer("_noise", noise)
            return
        if precision is not None:
            raise ValueError(
                'enlargement must be "pointwise" for a model whose observations differ in noise'
            )
        added = published_enlargement(misspecification, num_observations + 1, noise)
        if bool(((added > SEVERAL_TIMES * self.width) & (self.width > 0)).any()):
            message = (
                f"misspecification adds {float(added.max()):.3g} to a width of "
                f"{float(self.width.min()):.3g}: the bound then mostly shows where data are "
                "missing; a larger noise_variance reduces this"
            )
            warnings.warn(message, EnlargementWarning, stacklevel=2)
        self.register_buffer("width", self.width + added)

    def _values(self, X: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        if not self._pointwise:
            return super()._values(X)
        mean, std = self._moments(X)
        told: Any = self._told_model
        norms = told.weight_norms(told.transform_inputs(X.reshape(-1, X.shape[-1])))
        norms = norms.view(mean.shape)
        if self.X_pending is not None:
            t = self._t + len(self.X_pending)
            norms = torch.minimum(norms, (t / self._noise).sqrt() * std)
        return self._of_moments(mean, std) + self._pointwise * norms

    def _moments_in_turn(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        return None if self._pointwise else super()._moments_in_turn(X)


class LowerConfidenceBound(_ConfidenceBound):
    """The lower confidence bound mean - width * std, whose maximiser is a safe choice.

    The other arguments are those of `EnlargedUpperConfidenceBound`.

    Args:
        width: A number; a tensor that broadcasts to the batch shape of the model; or, for a
            `KernelGP` without an outcome transform, a width object, whose offset is subtracted too.
        maximize: Whether f is maximised. False gives the bound for minimisation,
            ``-mean - width * std``.

    Raises:
        ValueError: If ``width`` is a width object and the model is not a `KernelGP` or has an
            outcome transform.

    Example:
        >>> import torch
        >>> from botorch_ext import KernelGP
        >>> from botorch_ext.acquisition import LowerConfidenceBound
        >>> from gpytorch.kernels import RBFKernel
        >>> model = KernelGP(RBFKernel(), noise_variance=0.01, dtype=torch.float64)
        >>> acqf = LowerConfidenceBound(model, width=2.0)
        >>> acqf([[[0.3]]]).tolist()
        [-2.0]
    """

    _sign = -1.0


def _require_exact(model: Model, posterior_transform: PosteriorTransform | None) -> None:
    """Raises a ValueError unless the weights of the observations in the mean are known."""
    if not (
        isinstance(model, KernelGP)
        and not model.batch_shape
        and isinstance(getattr(model, "outcome_transform", None), Standardize | None)
        and posterior_transform is None
    ):
        raise ValueError(
            'enlargement must be "published" unless the model is a single KernelGP (see '
            "KernelGP.from_botorch), with no other transform of its outcomes than Standardize, got "
            f"a {type(model).__name__}"
        )


def _is_for(value: Tensor, batch: torch.Size) -> bool:
    """Whether a value broadcasts to a batch shape."""
    try:
        return torch.broadcast_shapes(value.shape, batch) == batch
    except RuntimeError:
        return False


def _training_inputs(model: Model, argument: str) -> list[Tensor]:
    """The inputs of a model, or of each model of a list, without tasks; if there are none, raises a
    ValueError that asks for ``argument``."""
    models: Any = model.models if isinstance(model, ModelList) else [model]
    inputs = [(each, inputs_of(each)) for each in models]
    known = [without_task(each, X) for each, X in inputs if X is not None and X.numel()]
    if not known:
        raise ValueError(f"{argument} must be given: a {type(model).__name__} has no training data")
    return known


def _num_observations(model: Model) -> int:
    if isinstance(model, KernelGP):
        return model.num_observations
    return max(X.shape[-2] for X in _training_inputs(model, "num_observations"))


def _noise_variance(model: Model, posterior_transform: PosteriorTransform | None) -> Tensor:
    """The part of the posterior variance that is observation noise, in units of the posterior."""
    if isinstance(model, KernelGP) and not model.has_transforms and posterior_transform is None:
        return model.noise_variance
    X = _training_inputs(model, "noise_variance")[0]
    if any(map(appends_columns, model.models if isinstance(model, ModelList) else [model])):
        raise ValueError(
            f"noise_variance must be given: this {type(model).__name__} appends features to its "
            "points, so that its training data do not show which points it takes"
        )
    X = X.reshape(-1, X.shape[-1])
    X = X[:: math.ceil(len(X) / _NOISE_POINTS)]
    rows = with_task(model, X)  # some outcome transforms depend on the task
    X = rows if len(rows) == len(X) else X
    with torch.no_grad():
        noisy, plain = (
            model.posterior(X, observation_noise=noise, posterior_transform=posterior_transform)
            for noise in (True, False)
        )
        variance: Tensor = plain.variance  # pyright: ignore[reportAttributeAccessIssue]
        added = noisy.variance - variance  # pyright: ignore[reportAttributeAccessIssue]
    added, variance = added.squeeze(-1), variance.squeeze(-1)
    low, high = added.aminmax(dim=-1)
    rounding = _ROUNDING * torch.finfo(X.dtype).eps * variance.amax(dim=-1)
    if bool((high - low > 0.01 * high + rounding).any()):
        raise ValueError(
            "noise_variance must be given: the noise of this "
            f"{type(model).__name__} differs between points, from {float(low.min()):.3g} to "
            f"{float(high.max()):.3g} in the units of the posterior"
        )
    return added.mean(dim=-1)
