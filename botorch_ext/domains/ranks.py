"""The positions of the highest values, by a rule that is the same on all devices and processors.

Processors round differently, so values that are equal by symmetry differ in their last digits.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Values that differ by at most this share of the highest one are equal up to rounding.
_ROUNDING = {torch.float64: 1e-9, torch.float32: 1e-5}


def rounding_of(dtype: torch.dtype) -> float:
    """The share of the highest value by which equal values may differ, since they are rounded."""
    return _ROUNDING.get(dtype, 1e-3)


def first_highest(values: Tensor, error: Tensor | float = 0.0) -> Tensor:
    """The position of the highest value along the last dimension; of values that are equal up to
    rounding, the first.

    Args:
        values: Values, ``... x n``.
        error: The rounding error of a value, besides its share of the highest value.

    Returns:
        The positions, ``... x 1``.
    """
    return are_highest(values, error).view(torch.uint8).argmax(dim=-1, keepdim=True)


def are_highest(values: Tensor, error: Tensor | float = 0.0) -> Tensor:
    """Whether values are equal to the highest one along the last dimension, up to rounding; the
    arguments are those of `first_highest`."""
    top = values.amax(dim=-1, keepdim=True)
    size = top.abs().clamp_max(torch.finfo(values.dtype).max)  # inf - inf is not a number
    least = top.sub(size, alpha=rounding_of(values.dtype))
    return values >= (least - error if isinstance(error, Tensor) or error else least)


def reach(values: Tensor, threshold: Tensor | float) -> Tensor:
    """Whether values are at least a threshold, up to rounding.

    Args:
        values: Values, ``... x n``.
        threshold: The threshold, or thresholds ``... x 1``.

    Returns:
        A mask, ``... x n``.
    """
    return values >= threshold - _error(values)


def _error(values: Tensor) -> Tensor:
    """The rounding error of values ``... x n``, from the largest finite one, ``... x 1``."""
    sizes = values.abs()
    return rounding_of(values.dtype) * sizes.where(sizes.isfinite(), 0).amax(dim=-1, keepdim=True)


def highest_first(values: Tensor, num: int | None = None, dim: int = -1) -> Tensor:
    """The positions of the highest values in descending order; equal values keep their order.

    `Tensor.topk` returns equal values in any order, and in another order on CUDA than on the CPU.
    Equal values are common: before the first observation, upper bounds are equal everywhere.

    Args:
        values: Values of any shape.
        num: The number of positions, at most the number of values; None for all.
        dim: The dimension along which values are ranked.

    Returns:
        The positions, in the shape of the values except in this dimension.
    """
    order = values.argsort(dim=dim, descending=True, stable=True)
    return order if num is None else order.narrow(dim, 0, min(num, values.shape[dim]))


def among_highest(values: Tensor, num: int) -> Tensor:
    """Whether values are among the ``num`` highest; of values that are equal up to rounding, the
    first ones are.

    Args:
        values: Values, ``n``.
        num: The number of values, from 1 to ``n``.

    Returns:
        A mask of the ``n`` values, true for ``num`` of them.
    """
    error = _error(values)
    last = values.topk(num).values[-1]
    above = values > last + error
    tied = ~above & (values >= last - error)
    return above | (tied & (tied.cumsum(dim=0) <= num - above.sum()))
