"""Triangular systems with many right-hand sides, one for each candidate."""

from __future__ import annotations

import torch
from torch import Tensor

# From 524,281 columns on, batches are wrong on CUDA (PyTorch pull request 187717), and the
# workaround there for 2 to 63 rows takes seconds.
_MOST_COLUMNS = 2**18


def solve_triangular(L: Tensor, R: Tensor, upper: bool = False) -> Tensor:
    """Solve triangular systems; on CUDA some columns at a time.

    Args:
        L: Triangular matrices, ``... x n x n``.
        R: The right-hand sides, ``... x n x m``.
        upper: Whether the matrices are upper triangular.

    Returns:
        L^-1 R, ``... x n x m``.
    """
    if not R.is_cuda or R.shape[-1] <= _MOST_COLUMNS:
        return torch.linalg.solve_triangular(L, R, upper=upper)
    parts = R.split(_MOST_COLUMNS, dim=-1)
    return torch.cat([torch.linalg.solve_triangular(L, part, upper=upper) for part in parts], -1)
