"""Chunks of points, which are evaluated one after another."""

from __future__ import annotations

from torch import Tensor

# The most entries of the largest temporary tensor. On the CPU it fits the caches; on CUDA, where
# launches cost more than arithmetic, it has 1 GiB in float64.
_ON_CPU, _ON_CUDA = 2**18, 2**27
# The fewest points of a chunk on the CPU. With fewer, reading the factors of many models costs more
# than solving for the points.
_FEWEST_ON_CPU = 64


def in_chunks(X: Tensor, entries: int) -> tuple[Tensor, ...]:
    """Divide points into chunks whose temporary tensors fit the caches or the memory.

    Args:
        X: Points, ``... x n x d``.
        entries: The number of entries of the largest temporary tensor for each point, such as
            observations times models.

    Returns:
        The chunks, of at least one point each.
    """
    most, fewest = (_ON_CUDA, 1) if X.is_cuda else (_ON_CPU, _FEWEST_ON_CPU)
    return X.split(max(most // max(entries, 1), fewest), dim=-2)
