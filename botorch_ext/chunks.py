"""Chunks: how many points are evaluated at once."""

from __future__ import annotations

from torch import Tensor

_MOST_ENTRIES = 2**27


def points_at_once(X: Tensor, on_cpu: int, entries: int = 1024) -> int:
    """How many points are evaluated at once, at least 1.

    On the CPU as many as its caches hold what they take; on CUDA, where launches cost more than
    arithmetic, as many as make the largest temporary tensor 1 GiB in float64.

    Args:
        X: On the device.
        on_cpu: How many they are on the CPU.
        entries: Of that tensor for each point, such as observations times models.
    """
    return max(_MOST_ENTRIES // max(entries, 1) if X.is_cuda else on_cpu, 1)
