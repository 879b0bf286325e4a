"""Jitter: Cholesky factors of covariances that rounding has left without a positive pivot."""

from __future__ import annotations

import torch
from torch import Tensor

# A pivot of less than this many units in the last place is rounding, not information.
_ROUNDING = 1000


def least_pivot(prior_variance: Tensor) -> Tensor:
    """The least pivot of a factorisation at points of this prior variance: less is rounding."""
    return _ROUNDING * torch.finfo(prior_variance.dtype).eps * prior_variance


def cholesky_with_jitter(
    conditional: Tensor, noise_variance: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    """Cholesky of ``conditional + noise I`` with jitter on those diagonal entries that need it.

    A pivot below its ``... x m`` floor is raised to it, in its own diagonal entry only.
    """
    noise = noise_variance[..., None]
    variance = conditional.diagonal(dim1=-2, dim2=-1)
    m = conditional.shape[-1]
    if m == 1:
        pivot = variance.clamp_min(0) + noise
        raised = torch.maximum(pivot, floor)
        return raised.sqrt().unsqueeze(-1), raised - pivot
    eye = torch.eye(m, dtype=conditional.dtype, device=conditional.device)
    corner, info = torch.linalg.cholesky_ex(conditional + noise.unsqueeze(-1) * eye)
    high_enough = corner.diagonal(dim1=-2, dim2=-1).square() >= floor
    if bool(((info == 0) & high_enough.all(dim=-1)).all()):
        return corner, torch.zeros_like(variance)
    return _cholesky_by_columns(conditional, noise_variance, floor)


def _cholesky_by_columns(
    conditional: Tensor, noise_variance: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    S, columns, jitter = conditional, [], []
    for i in range(conditional.shape[-1]):
        pivot = S[..., i, i].clamp_min(0) + noise_variance
        raised = torch.maximum(pivot, floor[..., i])
        column = S[..., :, i] / raised.sqrt()[..., None]
        column = torch.cat(
            [torch.zeros_like(column[..., :i]), raised.sqrt()[..., None], column[..., i + 1 :]],
            dim=-1,
        )
        columns.append(column)
        jitter.append(raised - pivot)
        S = S - column[..., :, None] * column[..., None, :]
    return torch.stack(columns, dim=-1), torch.stack(jitter, dim=-1)
