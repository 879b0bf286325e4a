"""Resampling: draws by their weights."""

from __future__ import annotations

import torch
from torch import Tensor


def effective_size(log_weights: Tensor) -> Tensor:
    """How many draws of equal weights are worth as much as these, 0-dim; NaN where none weighs
    anything."""
    return 1 / log_weights.softmax(dim=0).square().sum()


def resampled(log_weights: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """The rows of ``num`` draws by their weights, systematically: one of weight w is drawn
    ``num`` w times, rounded up or down.

    Args:
        log_weights: ``m``, up to a constant.
        num: How many.
        generator: On the CPU.
    """
    weights = log_weights.softmax(dim=0)
    # As a product: cumulative sums on CUDA differ from run to run.
    ends = weights.new_ones(len(weights), len(weights)).tril() @ weights
    first = torch.rand((), generator=generator, dtype=torch.float64)
    places = torch.arange(num, dtype=ends.dtype, device=ends.device).add(float(first)).div(num)
    return (ends[:-1].unsqueeze(-1) < places).sum(dim=0)
