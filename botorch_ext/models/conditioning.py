"""Conditioning of variances on one more point, in place."""

from __future__ import annotations

import torch
from torch import Tensor


def condition(
    V: Tensor, variance: Tensor, n: int, covariances: Tensor, weights: Tensor, root: Tensor
) -> None:
    """Add the row of a new point to V = L^-1 K(points, candidates) and subtract its square from the
    variances.

    Args:
        V: V, ``capacity x m``, of which ``n`` rows are in use; it is changed.
        variance: The posterior variances of the candidates, ``m``; they are changed.
        n: The number of points.
        covariances: The prior covariances of the new point with the candidates, ``m``.
        weights: The new row of L without its last entry, ``n``.
        root: The last entry of this row, the square root of the pivot.
    """
    row = V[n]
    torch.addmv(covariances, V[:n].mT, weights, alpha=-1, out=row)
    row.div_(root)
    variance.addcmul_(row, row, value=-1)
