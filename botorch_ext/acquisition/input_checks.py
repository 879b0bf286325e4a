"""Checks of the arguments of acquisition functions and of the arguments of optimisers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import torch
from botorch.models.model import Model, ModelList
from botorch.models.transforms.input import AppendFeatures, FilterFeatures
from torch import Tensor

from botorch_ext.checks import amount, short, whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.points import checked_like, checked_tensor, require_finite

# The largest distance outside the bounds, in sides of the box, that counts as rounding.
_ROUNDING = 1e-6


def kind_of(model: Model) -> Tensor | None:
    """An empty tensor of the dtype and on the device of a model; None if it has no parameters."""
    for tensor in chain(model.parameters(), model.buffers()):
        if tensor.is_floating_point():
            return tensor.new_empty(0)
    return None


def inputs_of(model: Any) -> Tensor | None:
    """The training inputs of one model as they were given, ``... n x d`` (transformed for a
    `KernelGP`); None without training data."""
    inputs = getattr(model, "train_inputs", None)
    if not inputs:
        return None
    return model._original_train_inputs if model._has_transformed_inputs else inputs[0]


def appends_columns(model: Any) -> bool:
    """Whether the input transform of a model adds or drops columns at evaluation only, so that its
    training inputs have other columns than the points that it takes."""
    transform = getattr(model, "input_transform", None)
    return transform is not None and any(
        isinstance(part, AppendFeatures | FilterFeatures) and not part.transform_on_train
        for part in transform.modules()
    )


def columns_of(model: Model) -> int | None:
    """The dimension of the inputs, if the training data show it; else None."""
    if isinstance(model, ModelList):
        models: Any = model.models
        known = [columns for columns in map(columns_of, models) if columns is not None]
        return known[0] if known else None
    inputs = inputs_of(model)
    # Multi-task models also take points without the task column.
    if inputs is None or hasattr(model, "num_tasks") or appends_columns(model):
        return None
    if hasattr(model, "input_transform") and hasattr(model, "factor"):
        return None  # a KernelGP keeps its inputs transformed
    return inputs.shape[-1] or None  # a KernelGP without data has dimension 0


def require_one_output(models: Iterable[Model]) -> None:
    """Raises a ValueError if one of several models of the same quantity has several outputs."""
    for model in models:
        if model.num_outputs > 1:
            cure = "give a posterior_transform to one number"
            if isinstance(model, ModelList):
                cure = (
                    f"if its models are of the same quantity give [*model.models], otherwise {cure}"
                )
            raise ValueError(
                f"models must have one output each, got a {type(model).__name__} of "
                f"{model.num_outputs} outputs: {cure}"
            )


def batch_shape_of(model: Model) -> torch.Size:
    """The batch shape of a model, empty if it has none."""
    try:
        return model.batch_shape or torch.Size()  # some deterministic models have None
    except NotImplementedError:
        return torch.Size()


def as_batch(X: Any, model: Model, name: str = "X", dim: int | None = None) -> Tensor:
    """Points of any shape as a tensor.

    Args:
        X: The points ``... x d``: a tensor, an array, nested numbers or a list of tensors.
        model: The model that takes the points.
        name: The name of the argument, for the message.
        dim: d, if the model does not show it.

    Raises:
        ValueError: If they are not numbers, or have another dtype, device or dimension than the
            model's.
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
    """The points as an ``n x d`` tensor, one point as one row; None without points.

    Raises:
        ValueError: If `as_batch` raises it, if the shape is another, or if an entry is not finite.
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
    """The number as a float, or numbers as a tensor; raises a ValueError unless they are
    non-negative and finite."""
    if not isinstance(value, Tensor):
        if not getattr(value, "shape", isinstance(value, list | tuple)):
            return amount(value, name, "non-negative and finite")
        value = checked_tensor(value, torch.float64, None, name)
    values: Tensor = value
    if values.dtype == torch.bool or not bool((values.isfinite() & (values >= 0)).all()):
        raise ValueError(f"{name} must be non-negative and finite, got {value!r}")
    return values


def require_within(X: Tensor, box: Box, name: str, column: int | None = None) -> None:
    """Raises a ValueError unless points are in a box up to rounding.

    Args:
        X: The points ``n x d``, or ``n`` entries of one column.
        box: The box, with d dimensions.
        name: The name of the argument, for the message.
        column: The column; None for all columns.
    """
    lower, upper = box.bounds if column is None else box.bounds[:, column]
    slack, X = _ROUNDING * (upper - lower), X.detach()
    if bool(((X < lower - slack) | (X > upper + slack)).any()):
        raise ValueError(
            f"{name} must be within bounds, {short(box.bounds.tolist())}, got {short(X.tolist())}"
        )


def checked_limits(lower: Any, upper: Any, box: Box) -> tuple[Tensor, Tensor]:
    """The part of a box between limits, in which ascents stay.

    Args:
        lower: A number, or d numbers in a tensor, an array or a list. None: the bounds of the box.
        upper: As ``lower``.
        box: The box, with d dimensions.

    Returns:
        The lower and the upper limits, tensors of d numbers.

    Raises:
        ValueError: If the limits are impossible or crossed, or if no part of the box is between
            them.
    """
    low, high = (
        own.clone() if value is None else _limit(value, own, name)
        for value, own, name in (
            (lower, box.lower, "lower_bounds"),
            (upper, box.upper, "upper_bounds"),
        )
    )
    if not bool((low <= high).all()):
        raise ValueError(
            f"lower_bounds must be at most upper_bounds, got {low.tolist()} and {high.tolist()}"
        )
    for limit, beyond, name in (
        (low, low > box.upper, "lower_bounds"),
        (high, high < box.lower, "upper_bounds"),
    ):
        if bool(beyond.any()):
            raise ValueError(
                f"{name} must leave a part of bounds, {short(box.bounds.tolist())}, "
                f"got {limit.tolist()}"
            )
    return torch.maximum(low, box.lower), torch.minimum(high, box.upper)


def _limit(value: Any, like: Tensor, name: str) -> Tensor:
    # Limits that BoTorch passes may have another dtype.
    value = value.to(like) if isinstance(value, Tensor) else value
    value = checked_like(value, like, name)
    if value.shape not in ((), (1,), like.shape):
        raise ValueError(
            f"{name} must be one number or {len(like)}, got shape {tuple(value.shape)}"
        )
    if bool(value.isnan().any()):
        raise ValueError(f"{name} must be numbers, got {value.tolist()}")
    return value.detach().expand(like.shape)


def checked_fixed(fixed: Any, X: Tensor, box: Box) -> dict[int, Tensor]:
    """The values of the fixed columns.

    Args:
        fixed: A dict from columns to a number, one for each start, or None for that of the start.
        X: The ``n x d`` starts.
        box: The box, with d dimensions.

    Returns:
        A dict from columns, 0 to d - 1, to ``n`` values.

    Raises:
        ValueError: If columns or values are impossible, or if values lie outside the box.
    """
    if fixed is None:
        return {}
    if not isinstance(fixed, Mapping):
        raise ValueError(f"fixed_features must map columns to values, got {short(fixed)}")
    n, d = X.shape
    values = {}
    for key, given in fixed.items():
        column = whole_number(key, "fixed_features")
        if not -d <= column < d:
            raise ValueError(f"fixed_features must be columns from {-d} to {d - 1}, got {column}")
        value = X[:, column] if given is None else given
        if isinstance(value, Tensor):
            value = value.to(X)
        value = checked_like(value, X, "fixed_features").detach()
        if value.shape not in ((), (1,), (n,), (n, 1)):
            raise ValueError(
                f"fixed_features must be one number or {n} for each column, "
                f"got shape {tuple(value.shape)}"
            )
        require_finite({"fixed_features": value})
        value = value.reshape(-1).expand(n)
        require_within(value, box, "fixed_features", column)
        values[column % d] = value
    return values


def checked_steps(options: Any, default: int) -> int:
    """The ``maxiter`` of options, or the default; raises a ValueError if options are impossible."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict, got {short(options)}")
    maxiter = (options or {}).get("maxiter")
    return default if maxiter is None else whole_number(maxiter, "maxiter", least=0)
