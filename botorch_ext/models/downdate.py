"""Posteriors without some of their rows, computed from the factor with all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from botorch_ext.models.cholesky import GrowingCholesky

# Let P = (K + noise)^-1 = L^-T L^-1, and S the columns p of L^-1. Without the rows p, the span of S
# is projected out of z and of every L^-1 k(x), and S'S = P_pp is the precision of the left out
# targets given the others (Rasmussen and Williams 2006, section 5.4.2, for one row).


def _columns(factor: GrowingCholesky, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The columns ``rows`` of L^-1, ``*batch x n x p``, and the Cholesky factor of their gram."""
    n, p = factor.num_points, len(rows)
    start = min(rows, default=n)
    units = factor.z.new_zeros(*factor.triangle.batch_shape, n, p)
    units[..., list(rows), range(p)] = 1
    units[..., start:, :] = factor.solve_from(start, units[..., start:, :])
    return units, torch.linalg.cholesky(units.mT @ units)


def _log_diagonal(L: Tensor) -> Tensor:
    return L.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)


@torch.no_grad()
def moments_without(
    factor: GrowingCholesky,
    rows: Sequence[int],
    cross: Tensor,
    mean: Tensor,
    variance: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The posterior of one model at one point without some of its rows.

    Args:
        factor: The factor of all rows, without batch dimensions.
        rows: The rows to leave out.
        cross: L^-1 k(data, x), ``n``.
        mean: The posterior mean at x with all rows, 0-dim.
        variance: The posterior variance at x with all rows, 0-dim.

    Returns:
        The mean, the standard deviation and the information gain of the other rows, all 0-dim.
    """
    gain = factor.information_gain()
    rows = sorted(set(rows))
    if not rows:
        return mean, variance.clamp_min(0).sqrt(), gain
    S, root = _columns(factor, rows)
    along = torch.linalg.solve_triangular(root, S.mT @ cross.unsqueeze(-1), upper=False)
    variance = variance + along.square().sum()
    gain = gain + _log_diagonal(root) + 0.5 * factor.noise[rows].log().sum()
    # Pending rows do not count in the present mean, nor may they count in the new one.
    silent = sorted({*rows, *factor.pending})
    if silent != rows:
        S, root = _columns(factor, silent)
    c, a = (S.mT @ v.unsqueeze(-1) for v in (cross, factor.z[: factor.num_points]))
    mean = mean - (c * torch.cholesky_solve(a, root)).sum()
    return mean, variance.clamp_min(0).sqrt(), gain


@torch.no_grad()
def variance_of_pending(
    factor: GrowingCholesky, combined: Callable[[Tensor, int], Tensor]
) -> Tensor | float:
    """The amount by which pending rows reduce the variance at m points.

    Args:
        factor: The factor of all rows, of any batch shape.
        combined: A function of weights, ``*batch x p x n'``, and a row that returns the weighted
            sums of the rows of L^-1 K(data, points) from that row on, ``*batch x p x m``.

    Returns:
        The amounts, ``*batch x m``, to add to the variance for that of the known rows; 0 if no row
        is pending.
    """
    if not factor.pending:
        return 0.0
    start = factor.pending[0]
    S, root = _columns(factor, factor.pending)
    along = combined(S[..., start:, :].mT, start)
    return torch.linalg.solve_triangular(root, along, upper=False).square().sum(dim=-2)


@torch.no_grad()
def log_evidence(factor: GrowingCholesky, without: Sequence[int] = ()) -> Tensor:
    """The log marginal likelihood log p(y) of the known rows.

    Args:
        factor: The factor of all rows, of any batch shape.
        without: The known rows to leave out; pending rows are always left out.

    Returns:
        The log likelihood, ``*batch``.
    """
    n = factor.num_points
    z = factor.z[..., :n]
    fit, log_root = z.square().sum(dim=-1), factor.triangle.diagonal.log().sum(dim=-1)
    rows = sorted({*without, *factor.pending})
    if len(rows) == n:  # exactly zero: by rounding alone models would differ
        return torch.zeros_like(fit)
    if rows:
        S, root = _columns(factor, rows)
        a = torch.linalg.solve_triangular(root, S.mT @ z.unsqueeze(-1), upper=False)
        fit = fit - a.square().sum(dim=(-2, -1))
        log_root = log_root + _log_diagonal(root)
    return -0.5 * fit - log_root - 0.5 * (n - len(rows)) * math.log(2 * math.pi)
