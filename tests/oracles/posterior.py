"""Definitions written as dense algebra and plain loops: what the library must agree with."""

from __future__ import annotations

import math

import torch
from gpytorch.kernels import Kernel
from torch import Tensor


def dense_posterior(
    kernel: Kernel, X: Tensor, y: Tensor, Z: Tensor, noise_variance: float
) -> tuple[Tensor, Tensor]:
    """Mean and covariance at ``Z``: k' (K + lambda I)^-1 y and k - k' (K + lambda I)^-1 k."""
    with torch.no_grad():
        K = kernel(X, X).to_dense() + noise_variance * torch.eye(
            len(X), dtype=X.dtype, device=X.device
        )
        k = kernel(X, Z).to_dense()
        weights = torch.linalg.solve(K, k)
        return weights.mT @ y, kernel(Z, Z).to_dense() - k.mT @ weights


def dense_information_gain(kernel: Kernel, X: Tensor, noise_variance: float) -> float:
    """1/2 log det(I + K / lambda)."""
    with torch.no_grad():
        K = kernel(X, X).to_dense()
    eye = torch.eye(len(X), dtype=X.dtype, device=X.device)
    return 0.5 * torch.linalg.slogdet(eye + K / noise_variance).logabsdet.item()


def self_normalized_width(
    B: float, sigma: float, delta: float, noise_variance: float, gain: float
) -> float:
    """Bogunovic and Krause 2021, lemma 1, corrected."""
    return sigma / math.sqrt(noise_variance) * math.sqrt(2 * math.log(1 / delta) + 2 * gain) + B
