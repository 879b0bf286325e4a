"""Points that keep their distance from each other."""

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

# Points count as a distance apart that are so up to this share of it: the spacings of a grid.
ROUNDING = 1e-9
_SAMPLE = 64


def greedy_packing(points: Tensor | Sequence[Sequence[float]], distance: float) -> Tensor:
    """Rows of points that are pairwise ``distance`` apart, each point taken in turn if it can be.

    No point can be added, so every point lies less than the distance from one of these. A largest
    set with this property has at most as many points for each of these as fit, a distance apart,
    into an open ball of radius ``distance``: 2 on a line, 5 in the plane (a pentagon), and fewer
    than 3^d in general. Where a volume is packed it is 2 and 3.

    Args:
        points: ``n x d``, in the units of ``distance``.
        distance: Positive.

    Returns:
        ``m`` row indices, increasing.

    Raises:
        ValueError: Points of another shape or not finite, or a distance that is not positive.
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
    # Just below the distance: a tree finds all points at most so far away.
    reach = distance * (1 - ROUNDING)
    extent = np.ptp(points, axis=0) if len(points) else np.zeros(points.shape[1])
    if math.hypot(*extent) < reach:
        return np.arange(min(len(points), 1))
    tree = cKDTree(points)
    alone = np.zeros(len(points), dtype=bool)
    # Where distances are small, most points have no neighbour; a sample tells whether to look.
    sample = points[:: len(points) // _SAMPLE + 1]
    if (tree.query(sample, k=2)[0][:, 1] > reach).mean() > 0.5:
        alone = tree.query(points, k=2)[0][:, 1] > reach  # taken whatever else is
    taken = alone.tolist()
    free = (~alone).tolist()
    for row in np.flatnonzero(~alone).tolist():
        if free[row]:
            taken[row] = True
            for near in tree.query_ball_point(points[row], reach):
                free[near] = False
    return np.flatnonzero(taken)
