"""The posterior mean at data with many repeated points."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.factors import GrowingCholesky
from botorch_ext.models.kernel_gp import KernelGP


@torch.no_grad()
def means_with_repeats(model: KernelGP, X: Tensor, Y: Tensor) -> Tensor:
    """The posterior mean of a model without data at its own ``n x d`` inputs given ``n`` values.

    The c observations of one point say as much about f as their average with noise lambda / c: the
    means are those of all n observations, in O(u^3) for u different points.
    """
    points, inverse, counts = torch.unique(X, dim=0, return_inverse=True, return_counts=True)
    prior = X.new_zeros(len(points)) if model.mean is None else model.mean(points)
    average = Y.new_zeros(len(points)).index_add(0, inverse, Y) / counts
    # With C = diag(c): (K + lambda C^-1)^-1 = C^1/2 (C^1/2 K C^1/2 + lambda I)^-1 C^1/2.
    root = counts.to(X.dtype).sqrt()
    factor = GrowingCholesky(model.noise_variance, capacity=0)
    K = model.kernel_function(points, points)
    none = X.new_zeros(0, len(points))
    factor.append(none, root[:, None] * K * root, root * (average - prior))
    n = factor.num_points
    weights = factor.mean_weights[:n]
    return (average - (model.noise_variance + factor.jitter[:n]) * weights / root)[inverse]
