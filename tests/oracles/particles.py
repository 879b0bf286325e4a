"""Particles written out: what their models are told, and by which kernels."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def standardised(Y: Tensor) -> tuple[Tensor, float, float]:
    """Observations, those far too low squeezed, less their mean and over their deviation; both."""
    best = Y.topk(math.ceil(len(Y) * 2 / 3)).values
    unit = (Y.max() - best).square().mean().sqrt()
    excess = (Y.max() - Y) / unit - 4
    low = Y.max() - unit * (4 + 0.3 * excess.clamp_min(0).log1p())
    y = torch.where(excess > 0, low, Y)
    center, scale = float(y.mean()), float(y.std(correction=0))
    return (y - center) / scale, center, scale


def model_of(particle: Tensor) -> tuple[Callable[[Tensor, Tensor], Tensor], Tensor]:
    """The kernel on the unit cube and the noise variance of one particle."""
    *lengthscales, noise, odds = particle
    share, scale = odds.sigmoid(), torch.stack(lengthscales).exp()

    def kernel(A: Tensor, B: Tensor) -> Tensor:
        r = torch.cdist(A / scale, B / scale)
        s = math.sqrt(5) * r
        return share * (-0.5 * r**2).exp() + (1 - share) * (1 + s + s**2 / 3) * (-s).exp()

    return kernel, noise.exp()
