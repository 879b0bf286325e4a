"""Triangular systems, of as many columns as there are candidates."""

from __future__ import annotations

import torch
from torch import Tensor

# From 524,281 columns on batches come out wrong on CUDA (PyTorch pull request 187717), and what
# avoids it there for 2 to 63 rows takes seconds.
_MOST_COLUMNS = 2**18


def solve_triangular(L: Tensor, R: Tensor, upper: bool = False) -> Tensor:
    """L^-1 R for ``... x n x n`` and ``... x n x m``, some columns at a time on CUDA."""
    if not R.is_cuda or R.shape[-1] <= _MOST_COLUMNS:
        return torch.linalg.solve_triangular(L, R, upper=upper)
    parts = R.split(_MOST_COLUMNS, dim=-1)
    return torch.cat([torch.linalg.solve_triangular(L, part, upper=upper) for part in parts], -1)
