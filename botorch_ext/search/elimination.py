"""Elimination: many small systems of equations at once, without a library of linear algebra."""

from __future__ import annotations

import torch
from torch import Tensor


def solved(A: Tensor, B: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B for many small definite matrices, ``... x n x n`` and ``... x n x m``; anything where
    A is not definite.

    No library of linear algebra: what those do with small batches on CUDA may stop the host.
    """
    return eliminated(torch.cat([A, B], dim=-1), eye)


def eliminated(AB: Tensor, eye: Tensor) -> Tensor:
    """A^-1 B, by elimination without pivots."""
    n = len(eye)
    for i in range(n):
        row = AB[..., i : i + 1, :] / AB[..., i : i + 1, i : i + 1]
        AB = torch.addcmul(AB, eye[:, i : i + 1] - AB[..., i : i + 1], row)
    return AB[..., n:]
