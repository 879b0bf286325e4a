"""Resampling of weighted samples."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext import host


def effective_size(log_weights: Tensor) -> Tensor:
    """The effective sample size of weighted samples.

    Args:
        log_weights: The logarithms of the weights, ``m``, up to a constant.

    Returns:
        The effective size, 0-dim; NaN if all weights are 0.
    """
    return 1 / log_weights.softmax(dim=0).square().sum()


def resampled(log_weights: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """Resample by systematic resampling: a sample of weight w comes ``num`` w times, rounded up or
    down.

    Args:
        log_weights: The logarithms of the weights, ``m``, up to a constant.
        num: The number of samples to draw.
        generator: The random generator, on the CPU.

    Returns:
        The positions of the samples, ``num``.
    """
    weights = log_weights.softmax(dim=0)
    # A matrix product, since cumulative sums on CUDA are not deterministic.
    ends = weights.new_ones(len(weights), len(weights)).tril() @ weights
    first = host.rand((), generator=generator, dtype=torch.float64)
    places = torch.arange(num, dtype=ends.dtype, device=ends.device).add(float(first)).div(num)
    return (ends[:-1].unsqueeze(-1) < places).sum(dim=0)
