"""Columns of the inputs: checks of arguments, and selections that index tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from botorch_ext.checks import whole_number

# The index that selects columns of a tensor; consecutive columns are a slice, which needs no copy.
Selection = slice | list[int]


def checked_columns(columns: Any, name: str) -> tuple[int, ...]:
    """The columns of a list, in the given order.

    Args:
        columns: Different whole numbers from 0 on, at least one.
        name: The name of the argument, for the error message.

    Raises:
        ValueError: If they are not such numbers.
    """
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"{name} must be columns or a number of columns, got {columns!r}")
    given = tuple(whole_number(column, f"each of {name}", least=0) for column in columns)
    if not given:
        raise ValueError(f"{name} must have at least one column, got none")
    if len(set(given)) < len(given):
        raise ValueError(f"{name} must have each column at most once, got {given}")
    return given


def selection(columns: tuple[int, ...]) -> Selection:
    """The index that selects columns, as in ``X[..., selection]``.

    Returns:
        A slice if the columns are consecutive, otherwise a list.
    """
    first, end = columns[0], columns[0] + len(columns)
    return slice(first, end) if columns == tuple(range(first, end)) else list(columns)


def require_columns(X: Tensor, least: int) -> None:
    """Check that joint points have all columns of the action and of the context.

    Args:
        X: Points, ``... x D``.
        least: The least number of columns.

    Raises:
        ValueError: If the points have fewer columns.
    """
    if X.shape[-1] < least:
        raise ValueError(
            f"points must have at least {least} columns, of actions and contexts, got shape "
            f"{tuple(X.shape)}"
        )
