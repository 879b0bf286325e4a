"""Distances between the points of two sets."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks

# The most differences, d for each pair of points, that are held at once on CUDA.
_MOST_DIFFERENCES = 2**27


def distances(X1: Tensor, X2: Tensor) -> Tensor:
    """Euclidean distances between the points of two sets.

    Args:
        X1: Points, ``... x n1 x d``.
        X2: Points, ``... x n2 x d``.

    Returns:
        The distances, ``... x n1 x n2``; small distances have full precision.
    """
    if X1.is_cuda:
        squares = _squares_by_differences(X1, X2)
        # The square root has no gradient at zero.
        return squares.clamp_min_(torch.finfo(squares.dtype).tiny).sqrt()
    if _by_products(X1, X2):
        return _squares_by_products(X1, X2).sqrt_()
    return _direct_cdist(X1, X2)


def squared_distances(X1: Tensor, X2: Tensor) -> Tensor:
    """Squared Euclidean distances between the points of two sets.

    Args:
        X1: Points, ``... x n1 x d``.
        X2: Points, ``... x n2 x d``.

    Returns:
        The squared distances, ``... x n1 x n2``; small distances have full precision.
    """
    if X1.is_cuda:
        return _squares_by_differences(X1, X2)
    if _by_products(X1, X2):
        return _squares_by_products(X1, X2)
    D = _direct_cdist(X1, X2)
    return D.square() if D.requires_grad else D.square_()


def _squares_by_differences(X1: Tensor, X2: Tensor) -> Tensor:
    # On CUDA, cdist uses a block of threads for each pair and fails from 2^31 pairs on.
    (n1, d), n2 = X1.shape[-2:], X2.shape[-2]
    batch = torch.broadcast_shapes(X1.shape[:-2], X2.shape[:-2])
    rows = max(_MOST_DIFFERENCES // max(batch.numel() * n2 * d, 1), 1)
    if rows >= n1:
        return (X1.unsqueeze(-2) - X2.unsqueeze(-3)).square().sum(dim=-1)
    squares = X1.new_empty(*batch, n1, n2)
    for start in range(0, n1, rows):
        some = slice(start, start + rows)
        differences = X1[..., some, :].unsqueeze(-2) - X2.unsqueeze(-3)
        squares[..., some, :] = differences.square().sum(dim=-1)
    return squares


def _direct_cdist(X1: Tensor, X2: Tensor) -> Tensor:
    # The matrix-multiplication form of cdist loses half the digits at small distances.
    return torch.cdist(X1, X2, compute_mode="donot_use_mm_for_euclid_dist")


def _by_products(X1: Tensor, X2: Tensor) -> bool:
    """Whether matrix products compute the distances faster, as they do with many columns."""
    (n1, d), n2 = X1.shape[-2:], X2.shape[-2]
    large = d >= 32 and min(n1, n2) >= 16 and n1 * n2 * d >= 2**20
    by_autograd = torch.is_grad_enabled() and (X1.requires_grad or X2.requires_grad)
    return large and not by_autograd and X1.dtype == torch.float64 and X1.device.type == "cpu"


def _squares_by_products(X1: Tensor, X2: Tensor) -> Tensor:
    """Squared distances as |x1|^2 + |x2|^2 - 2 x1 x2; where this loses more than two digits, sums
    of squared differences replace them."""
    batch = torch.broadcast_shapes(X1.shape[:-2], X2.shape[:-2])
    X1, X2 = (X.expand(*batch, *X.shape[-2:]) for X in (X1, X2))
    center = X1.mean(dim=-2, keepdim=True)
    A, B = X1 - center, X2 - center
    sizes = B.square().sum(dim=-1).unsqueeze(-2)
    squares = A.new_empty(*batch, A.shape[-2], B.shape[-2])
    entries = squares[..., :1, :].numel()
    parts = (in_chunks(Z, entries) for Z in (X1, A, squares))
    for X, part, out in zip(*parts, strict=True):
        torch.matmul(part, B.mT, out=out)
        scale = part.square().sum(dim=-1, keepdim=True) + sizes
        out.mul_(-2).add_(scale)
        *members, rows, columns = near = (out < scale.mul_(0.01)).nonzero(as_tuple=True)
        if len(rows) <= out.numel() // 16:
            out[near] = (X[*members, rows] - X2[*members, columns]).square().sum(dim=-1)
        else:  # so many differences would take much memory
            out.copy_(_direct_cdist(X, X2).square_())
    return squares
