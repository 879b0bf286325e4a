"""Greedy packings: points that are pairwise at least a distance apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.spatial import cKDTree
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import checked_tensor
from botorch_ext.domains.points import require_finite
from botorch_ext.widths.base import require

# Points count as a distance apart if they miss it by at most this share, as points of a grid do.
ROUNDING = 1e-9
_SAMPLE = 64


def greedy_packing(points: Tensor | Sequence[Sequence[float]], distance: float) -> Tensor:
    """Choose points that are pairwise at least ``distance`` apart, taking each point in turn if it
    is far enough from all points taken before.

    No point can be added: every point lies less than the distance from a chosen one. The largest
    set of such points can be larger than the greedy one, by a factor that is at most the number of
    points, a distance apart, that fit into an open ball of radius ``distance``: 2 on a line, 5 in
    the plane (a pentagon), and less than 3^d in general. If a volume is packed, the factor is 2 on
    a line and 3 in the plane.

    Example:
        >>> from botorch_ext.analysis import greedy_packing
        >>> greedy_packing([[0.0], [0.4], [1.0], [1.2]], distance=0.5)
        tensor([0, 2])

    Args:
        points: Points, ``n x d``, in the units of ``distance``.
        distance: The least distance between any two chosen points, positive.

    Returns:
        The row indices of the ``m`` chosen points, increasing.

    Raises:
        ValueError: If the points have another shape or are not finite, or the distance is not
            positive.
    """
    distance = one_number(distance, "distance")
    require(distance > 0, "distance", distance, "positive")
    points = checked_tensor(points, torch.float64, None, "points")
    if points.ndim != 2:
        raise ValueError(f"points must have shape (n, d), got {tuple(points.shape)}")
    require_finite({"points": points})
    rows = _greedy(points.detach().cpu().numpy(), distance)
    return torch.from_numpy(rows).to(points.device)


def _greedy(points: np.ndarray, distance: float) -> np.ndarray:
    # Just below the distance, since a tree also finds points exactly so far away.
    reach = distance * (1 - ROUNDING)
    extent = np.ptp(points, axis=0) if len(points) else np.zeros(points.shape[1])
    if math.hypot(*extent) < reach:
        return np.arange(min(len(points), 1))
    tree = cKDTree(points)
    alone = np.zeros(len(points), dtype=bool)
    # With a small distance most points have no neighbour; a sample tells whether this is so.
    sample = points[:: len(points) // _SAMPLE + 1]
    if (tree.query(sample, k=2)[0][:, 1] > reach).mean() > 0.5:
        alone = tree.query(points, k=2)[0][:, 1] > reach  # taken in any case
    taken = alone.tolist()
    free = (~alone).tolist()
    for row in np.flatnonzero(~alone).tolist():
        if free[row]:
            taken[row] = True
            for near in tree.query_ball_point(points[row], reach):
                free[near] = False
    return np.flatnonzero(taken)
