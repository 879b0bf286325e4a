"""Conditioning of variances on one more point, in place."""

from __future__ import annotations

from torch import Tensor


def condition(
    V: Tensor, variance: Tensor, n: int, covariances: Tensor, weights: Tensor, root: Tensor
) -> None:
    """Gives V = L^-1 K(points, candidates) of one model the row of one more point, and takes it off
    the variances.

    Args:
        V: ``capacity x m``, of which ``n`` rows are in use.
        variance: ``m`` posterior variances of the candidates.
        n: How many points there are.
        covariances: ``m``: of the new point with the candidates, a priori.
        weights: ``n``: the new row of L but for its last entry.
        root: That last entry, the root of the pivot.
    """
    row = covariances - weights @ V[:n] if n else covariances
    V[n] = row = row / root
    variance.addcmul_(row, row, value=-1)
