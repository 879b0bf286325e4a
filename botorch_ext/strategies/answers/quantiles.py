"""Quantiles of mixtures of normal distributions."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# Each bisection halves the bracket; 60 bring it below the rounding error of its first width.
_NUM_BISECTIONS = 60


def mixture_quantiles(
    weights: Tensor, means: Tensor, stds: Tensor, levels: Sequence[float]
) -> Tensor:
    """Quantiles of mixtures of m normal distributions, by bisection of the mixture's cumulative
    distribution function between the least and the largest quantile of its parts.

    Args:
        weights: ``m``, which sum to 1.
        means: ``m x n``.
        stds: ``m x n``; a normal distribution with a standard deviation of 0 is a point.
        levels: k probabilities between 0 and 1.

    Returns:
        ``k x n``.
    """
    p = means.new_tensor(list(levels))[:, None]  # k x 1
    of_parts = means + torch.special.ndtri(p).unsqueeze(-1) * stds  # k x m x n
    low, high = of_parts.amin(dim=1), of_parts.amax(dim=1)
    scales = stds.clamp_min(torch.finfo(stds.dtype).tiny)
    for _ in range(_NUM_BISECTIONS if len(weights) > 1 else 0):
        middle = low + (high - low) / 2
        parts = torch.special.ndtr((middle[:, None] - means) / scales)
        below = (weights[:, None] * parts).sum(dim=1) < p
        low, high = torch.where(below, middle, low), torch.where(below, high, middle)
    return low + (high - low) / 2
