"""Several models of the same quantity, and their confidence bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model, ModelList
from botorch.utils.transforms import is_ensemble
from torch import Tensor

from botorch_ext.acquisition.confidence_bound import evaluated_width
from botorch_ext.acquisition.input_checks import (
    batch_shape_of,
    columns_of,
    kind_of,
    require_one_output,
)
from botorch_ext.acquisition.pending import (
    LEAST_VARIANCE,
    HallucinatingAcquisitionFunction,
    moments_in_turn,
)
from botorch_ext.checks import flag
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.widths import Width

Widths = float | Tensor | Width | Sequence[float | Tensor | Width]


class Alternatives(ModelList):
    """Models of the same quantity, unlike those of a `ModelList`, which are of different
    quantities.

    Args:
        models: The models. One with a batch dimension counts as so many models: a batched
            `KernelGP`, or an ensemble such as the draws of a fully Bayesian model.

    Raises:
        ValueError: If a model has more than one batch dimension.
    """

    def __init__(self, *models: Model) -> None:
        super().__init__(*models)
        self.counts = [_count(model) for model in models]

    @property
    def num_outputs(self) -> int:
        return max(model.num_outputs for model in self.models)  # pyright: ignore

    def moments(self, X: Tensor, transform: PosteriorTransform | None) -> tuple[Tensor, Tensor]:
        """The mean and the standard deviation of every model.

        Args:
            X: Points for all models, ``... x 1 x d``, or for each model its own, ``n x m x d``.
            transform: The posterior transform, as in BoTorch.

        Returns:
            Two ``... x m``-dim tensors.
        """
        start, means, stds = 0, [], []
        for model, count in zip(self.models, self.counts, strict=True):
            own = X if X.shape[-2] == 1 else X[..., start : start + count, :]
            mean, variance = _marginals(model, own, count, transform)
            means.append(mean)
            stds.append(variance.clamp_min(LEAST_VARIANCE).sqrt())
            start += count
        return torch.cat(means, dim=-1), torch.cat(stds, dim=-1)

    def moments_in_turn(
        self, X: Tensor, transform: PosteriorTransform | None
    ) -> tuple[Tensor, Tensor] | None:
        """The moments at the points of batches ``... x q x d``, each with the points before it
        hallucinated, ``... x q x m`` each; None if a model has none, as `moments_in_turn` says."""
        models: Any = self.models
        found = []
        for model in models:
            has_batch = bool(batch_shape_of(model))
            own = X.unsqueeze(-3) if has_batch and not is_ensemble(model) else X
            moments = moments_in_turn(model, own, transform)
            if moments is None:
                return None
            found.append([m.mT if has_batch else m.unsqueeze(-1) for m in moments])
        means, stds = zip(*found, strict=True)
        return torch.cat(means, dim=-1), torch.cat(stds, dim=-1)


class AlternativesAcquisitionFunction(HallucinatingAcquisitionFunction):
    """An acquisition function of the moments of several models, with pending points hallucinated
    for each.

    Args:
        models: A `CandidateModels`, a sequence of single-output models, a batched `KernelGP` or an
            ensemble.
        posterior_transform: As in BoTorch, for every model.
        maximize: Whether f is maximised; False negates the means.
    """

    _columns: Tensor

    def __init__(
        self,
        models: Any,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
    ) -> None:
        holders, positions = _holders(models)
        if posterior_transform is None:
            require_one_output(holders)
        model = Alternatives(*holders)
        super().__init__(model, posterior_transform)
        self.maximize = flag(maximize, "maximize")
        columns = list(range(sum(model.counts)))
        # The position of each model in the order of the caller, and the column of each model.
        self.positions: list[int] = columns if positions is None else positions
        columns = sorted(columns, key=self.positions.__getitem__)
        self.register_buffer("_columns", torch.tensor(columns, device=_device(holders)))

    @property
    def num_models(self) -> int:
        return len(self._columns)

    def _moments_of(self, model: Any, X: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and standard deviation of every model, ``... x m`` each; arguments are those of
        `Alternatives.moments`."""
        return self._own(model.moments(X, self.posterior_transform))

    def _own(self, moments: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Moments in the order of the caller, and in the sign of what is maximised."""
        mean, std = (moment[..., self._columns] for moment in moments)
        return (mean if self.maximize else -mean), std

    def _moments_in_turn(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        moments = cast(Alternatives, self.model).moments_in_turn(X, self.posterior_transform)
        return None if moments is None else self._own(moments)


class AlternativeBounds(AlternativesAcquisitionFunction):
    """The confidence bounds of several models, with pending points hallucinated for each.

    Args:
        models: As for `AlternativesAcquisitionFunction`.
        width: A number, a tensor of m numbers, a width object, or a sequence of m of these.
        posterior_transform: As in BoTorch, for every model.
        maximize: Whether f is maximised; False negates the means.
        X_pending: The ``n x d`` pending points. None: no pending points.
    """

    width: Tensor
    offset: Tensor

    def __init__(
        self,
        models: Any,
        width: Widths,
        posterior_transform: PosteriorTransform | None = None,
        maximize: bool = True,
        X_pending: Tensor | None = None,
    ) -> None:
        super().__init__(models, posterior_transform, maximize)
        # The widths are those of the models before any point is hallucinated.
        columns, device = self._columns.tolist(), self._columns.device
        width, offset = _evaluated_widths(self.model, columns, width, device)
        self.register_buffer("width", width)
        self.register_buffer("offset", offset)
        self.set_X_pending(X_pending)

    def _values(self, X: Tensor) -> Tensor:
        self.to(X)  # as BoTorch's analytic acquisition functions do
        return self._of_moments(*self._moments_of(self.model, X))

    def _upper_bounds(self, X: Tensor) -> Tensor:
        """The upper bound of every model.

        Args:
            X: Points for all models, ``... x 1 x d``, or for each model its own, ``n x m x d``.

        Returns:
            The bounds, ``... x m``.
        """
        self.to(X)  # as BoTorch's analytic acquisition functions do
        if X.shape[-2] != 1:
            X = X[..., self._columns.argsort(), :]
        return self._bounds(*self._moments_of(self.model, X))

    def _bounds(self, mean: Tensor, std: Tensor) -> Tensor:
        return mean + self.width * std + self.offset


def _count(model: Model) -> int:
    batch = batch_shape_of(model)
    if len(batch) > 1 or (is_ensemble(model) and not batch):
        raise ValueError(
            "models must have at most one batch dimension, and ensembles one, "
            f"got a {type(model).__name__} of batch shape {tuple(batch)}"
        )
    return batch[0] if batch else 1


def _marginals(
    model: Any, X: Tensor, count: int, transform: PosteriorTransform | None
) -> tuple[Tensor, Tensor]:
    """The means and variances of the models that one BoTorch model holds, ``... x count`` each, at
    ``... x 1 x d`` or ``n x count x d``."""
    shared, ensemble = X.shape[-2] == 1, is_ensemble(model)
    if not batch_shape_of(model):
        posterior = model.posterior(X, posterior_transform=transform)
        return posterior.mean.squeeze(-1), posterior.variance.squeeze(-1)
    if not ensemble:
        X = X.unsqueeze(-3) if shared else X.unsqueeze(-2)
    elif not shared:  # an ensemble evaluates all its models at every point
        X = X.flatten(0, 1).unsqueeze(-2)
    posterior = model.posterior(X, posterior_transform=transform)
    mean, variance = (m[..., 0, 0] for m in (posterior.mean, posterior.variance))
    if mean.shape[-1:] != (count,):
        raise ValueError(
            "models must have a posterior with one entry for each model of an ensemble, "
            f"got a {type(posterior).__name__} from a {type(model).__name__}"
        )
    if ensemble and not shared:
        mean, variance = (
            m.view(-1, count, count).diagonal(dim1=-2, dim2=-1) for m in (mean, variance)
        )
    return mean, variance


def _holders(models: Any) -> tuple[list[Model], list[int] | None]:
    """The BoTorch models that hold all the models, and the position of each of these in the order
    of the caller (None: the same order)."""
    if isinstance(models, Model):
        return [models], None
    if isinstance(models, CandidateModels):
        parts = models.parts
        return [part.model for part in parts], [p for part in parts for p in part.positions]
    if not isinstance(models, Sequence) or not all(isinstance(m, Model) for m in models):
        raise ValueError(
            "models must be CandidateModels, a BoTorch model or a sequence of BoTorch models, "
            f"got {models!r}"
        )
    if not len(models):
        raise ValueError("models must hold at least one model, got none")
    first = models[0]
    for model in models[1:]:
        for what in (_kind, _columns):
            expected, got = what(first), what(model)
            if None not in (expected, got) and expected != got:
                raise ValueError(
                    f"models must share dtype, device and input dimension, got {expected} and {got}"
                )
    return list(models), None


def _kind(model: Model) -> str | None:
    like = kind_of(model)
    return None if like is None else f"{like.dtype} on {like.device}"


def _columns(model: Model) -> str | None:
    columns = columns_of(model)
    return None if columns is None else f"dimension {columns}"


def _device(models: list[Model]) -> torch.device | None:
    kinds = [kind for kind in map(kind_of, models) if kind is not None]
    return kinds[0].device if kinds else None


def _evaluated_widths(
    model: Any, columns: list[int], width: Any, device: torch.device | None
) -> tuple[Tensor, Tensor]:
    """The width and the offset of every model, in the order of the caller."""
    num_models, holders = len(columns), list(zip(model.models, model.counts, strict=True))
    if isinstance(width, list | tuple):
        if len(width) != num_models:
            raise ValueError(f"width must have one entry for each model, got {len(width)}")
        owners = [(holder, entry, count) for holder, count in holders for entry in range(count)]
        pairs = []
        for column, one in zip(columns, width, strict=True):
            holder, entry, count = owners[column]
            values = (_spread(value, count, device) for value in evaluated_width(holder, one))
            pairs.append(tuple(value[entry] for value in values))
        widths, offsets = zip(*pairs, strict=True)
        return torch.stack(widths), torch.stack(offsets)
    if not isinstance(width, Width):
        values = evaluated_width(model, width)
        return _spread(values[0], num_models, device), _spread(values[1], num_models, device)
    pairs = [
        [_spread(value, count, device) for value in evaluated_width(holder, width)]
        for holder, count in holders
    ]
    widths, offsets = (torch.cat(values)[columns] for values in zip(*pairs, strict=True))
    return widths, offsets


def _spread(value: float | Tensor, count: int, device: torch.device | None) -> Tensor:
    """The value repeated for each of ``count`` models, in float64 until an evaluation moves all
    buffers to the dtype of X."""
    value = torch.as_tensor(value, dtype=torch.float64, device=device)
    if value.shape not in ((), (count,)):
        raise ValueError(f"width must have shape () or ({count},), got {tuple(value.shape)}")
    return value.expand(count).clone()
