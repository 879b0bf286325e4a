"""The number of points that are evaluated at once."""

from __future__ import annotations

from torch import Tensor

# The most entries of the largest temporary tensor on CUDA: 1 GiB in float64.
_MOST_ENTRIES = 2**27


def points_at_once(X: Tensor, on_cpu: int, entries: int = 1024) -> int:
    """The number of points to evaluate at once.

    On the CPU the temporary tensors of so many points should fit the caches. On CUDA, where
    launches cost more than arithmetic, the largest temporary tensor may have 1 GiB in float64.

    Args:
        X: A tensor on the device.
        on_cpu: The number of points on the CPU.
        entries: The number of entries of the largest temporary tensor for each point, such as
            observations times models.

    Returns:
        The number of points, at least 1.
    """
    return max(_MOST_ENTRIES // max(entries, 1) if X.is_cuda else on_cpu, 1)
