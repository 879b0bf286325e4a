"""Arguments of climbs, as BoTorch's optimisers and people write them: limits, fixed columns and
steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from botorch_ext.checks import short, whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.points import checked_like, require_finite

# How far outside the bounds, in sides of the box, a point counts as inside.
_ROUNDING = 1e-6


def require_within(X: Tensor, box: Box, name: str, column: int | None = None) -> None:
    """Raises a ValueError unless points are in a box up to rounding.

    Args:
        X: ``n x d``, or ``n`` entries of one column.
        box: Of d dimensions.
        name: Of the argument.
        column: Which column, if not all of them.
    """
    lower, upper = box.bounds if column is None else box.bounds[:, column]
    slack, X = _ROUNDING * (upper - lower), X.detach()
    if bool(((X < lower - slack) | (X > upper + slack)).any()):
        raise ValueError(
            f"{name} must be within bounds, {short(box.bounds.tolist())}, got {short(X.tolist())}"
        )


def checked_limits(lower: Any, upper: Any, box: Box) -> tuple[Tensor, Tensor]:
    """Where climbs go: the part of a box between limits.

    Args:
        lower: A number, or d in a tensor, an array or a list; None for the box's own.
        upper: Likewise.
        box: Of d dimensions.

    Returns:
        Two tensors of d.

    Raises:
        ValueError: No such limits, crossed ones, or none of the box between them.
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
    # BoTorch's own may be of another dtype.
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
    """Values of the columns that are fixed.

    Args:
        fixed: From columns to a number, one for each start, or None for that of the start.
        X: ``n x d`` starts.
        box: Of d dimensions.

    Returns:
        From columns, 0 to d - 1, to ``n`` values.

    Raises:
        ValueError: No such columns or values, or values outside the box.
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
    """``maxiter`` among options, or the default; else a ValueError."""
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict, got {short(options)}")
    maxiter = (options or {}).get("maxiter")
    return default if maxiter is None else whole_number(maxiter, "maxiter", least=0)
