"""Ranks: the places of the highest values."""

from __future__ import annotations

from torch import Tensor


def highest_first(values: Tensor, num: int | None = None, dim: int = -1) -> Tensor:
    """Places of the highest values, from the highest on, of equal ones the first.

    `Tensor.topk` puts equal ones in any order, on CUDA in another one than on the CPU. Upper bounds
    are equal everywhere before anything was observed.

    Args:
        values: Any shape.
        num: How many places, at most as many as there are values; None for all.
        dim: Along which dimension.

    Returns:
        The places, in the shape of the values but for this dimension.
    """
    order = values.argsort(dim=dim, descending=True, stable=True)
    return order if num is None else order.narrow(dim, 0, min(num, values.shape[dim]))
