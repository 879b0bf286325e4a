"""The positions of the highest values, in an order that is the same on all devices."""

from __future__ import annotations

from torch import Tensor


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
