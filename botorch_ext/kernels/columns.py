"""Columns of the inputs, as arguments and as what a tensor is indexed with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import Tensor

from botorch_ext.checks import whole_number

# What takes columns out of a tensor: those in a row as a slice, which needs no copy.
Selection = slice | list[int]


def checked_columns(columns: Any, name: str) -> tuple[int, ...]:
    """Different columns in the order given, at least one, or a ValueError.

    Args:
        columns: Whole numbers from 0 on.
        name: The name of the argument, for the error message.
    """
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise ValueError(f"{name} must be columns or a number of columns, got {columns!r}")
    given = tuple(whole_number(column, f"each of {name}", least=0) for column in columns)
    if not given:
        raise ValueError(f"{name} must hold at least one column, got none")
    if len(set(given)) < len(given):
        raise ValueError(f"{name} must hold each column at most once, got {given}")
    return given


def selection(columns: tuple[int, ...]) -> Selection:
    """What takes these columns out of ``X[..., selection]``."""
    first, end = columns[0], columns[0] + len(columns)
    return slice(first, end) if columns == tuple(range(first, end)) else list(columns)


def require_columns(X: Tensor, least: int) -> None:
    """A ValueError where joint points ``... x D`` lack columns of the action or of the context."""
    if X.shape[-1] < least:
        raise ValueError(
            f"points must have at least {least} columns, of actions and contexts, got shape "
            f"{tuple(X.shape)}"
        )
