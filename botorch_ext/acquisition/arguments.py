"""Arguments of acquisition functions, checked at the door: numbers, and points as people write
them."""

from __future__ import annotations

from itertools import chain
from typing import Any

import torch
from botorch.models.model import Model, ModelList
from botorch.models.transforms.input import AppendFeatures, FilterFeatures
from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.domains.points import checked_like, checked_tensor, require_finite


def kind_of(model: Model) -> Tensor | None:
    """An empty tensor of the dtype and on the device of a model; None where it has no numbers."""
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.is_floating_point():
            return tensor.new_empty(0)
    return None


def inputs_of(model: Any) -> Tensor | None:
    """The training inputs of one model as they were given, ``... n x d``; those of a `KernelGP` are
    transformed. None where there are none."""
    inputs = getattr(model, "train_inputs", None)
    if not inputs:
        return None
    return model._original_train_inputs if model._has_transformed_inputs else inputs[0]


def appends_columns(model: Any) -> bool:
    """Whether the input transform of a model gives points more or fewer columns at evaluation only:
    its training inputs then have others than the points it takes."""
    transform = getattr(model, "input_transform", None)
    return transform is not None and any(
        isinstance(part, AppendFeatures | FilterFeatures) and not part.transform_on_train
        for part in transform.modules()
    )


def columns_of(model: Model) -> int | None:
    """The dimension of the inputs where the training data show it."""
    if isinstance(model, ModelList):
        models: Any = model.models
        known = [columns for columns in map(columns_of, models) if columns is not None]
        return known[0] if known else None
    inputs = inputs_of(model)
    # Models of several tasks take points without their task, too.
    if inputs is None or hasattr(model, "num_tasks") or appends_columns(model):
        return None
    if hasattr(model, "input_transform") and hasattr(model, "factor"):
        return None  # a KernelGP keeps its inputs transformed
    return inputs.shape[-1] or None  # a KernelGP without data has dimension 0


def batch_shape_of(model: Model) -> torch.Size:
    """The batch shape of a model; an empty one where it has none."""
    try:
        return model.batch_shape or torch.Size()  # some deterministic models have None
    except NotImplementedError:
        return torch.Size()


def as_batch(X: Any, model: Model, name: str = "X", dim: int | None = None) -> Tensor:
    """Points of any shape as a tensor.

    Args:
        X: ``... x d``: a tensor, an array, nested numbers or a list of tensors.
        model: What will be asked about them.
        name: The name of the argument, for the error message.
        dim: d where the model does not show it.

    Raises:
        ValueError: No such numbers, or another dtype, device or dimension than the model's.
    """
    like, columns = kind_of(model), dim or columns_of(model)
    if isinstance(X, list | tuple) and all(isinstance(x, Tensor) for x in X):
        X = torch.stack(tuple(X)) if len({x.shape for x in X}) == 1 else X
    if like is not None:
        X = checked_like(X, like, name)
    elif not isinstance(X, Tensor) or not X.is_floating_point():
        X = checked_tensor(X, torch.float64, None, name)
    if X.ndim and columns is not None and X.shape[-1] != columns:
        raise ValueError(f"{name} must have {columns} columns, got shape {tuple(X.shape)}")
    return X


def as_rows(X: Any, model: Model, name: str, dim: int | None = None) -> Tensor | None:
    """``n x d`` points as a tensor, one point as a row; None where there are none.

    Raises:
        ValueError: As for `as_batch`; another shape, or an entry that is not finite.
    """
    if X is None or (not isinstance(X, Tensor) and hasattr(X, "__len__") and not len(X)):
        return None
    X = as_batch(X, model, name, dim)
    X = X.unsqueeze(0) if X.ndim == 1 else X
    if X.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), got {tuple(X.shape)}")
    require_finite({name: X.detach()})
    return X


def checked_amounts(value: Any, name: str) -> float | Tensor:
    """Numbers that are non-negative and finite: a float, or a tensor of those that are a tensor, an
    array or a list; else a ValueError."""
    if not isinstance(value, Tensor):
        if not getattr(value, "shape", isinstance(value, list | tuple)):
            return amount(value, name, "non-negative and finite")
        value = checked_tensor(value, torch.float64, None, name)
    values: Tensor = value
    if values.dtype == torch.bool or not bool((values.isfinite() & (values >= 0)).all()):
        raise ValueError(f"{name} must be non-negative and finite, got {value!r}")
    return values
