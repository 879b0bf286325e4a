"""Data that the measurements share, and BoTorch's model of them."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from torch import Tensor

import botorch_ext as bx
from botorch_ext.problems import RKHSFunction


def noisy_data(
    n: int, dim: int, kernel: Kernel, seed: int, device: torch.device, gathered: bool = False
) -> tuple[Tensor, Tensor]:
    """Noisy values of a random function of the RKHS at random points of the unit cube.

    Args:
        n: How many.
        dim: d.
        kernel: Of the function.
        seed: Of function, points and noise.
        device: Of the result.
        gathered: Whether seven points in ten lie around the maximiser, as in a study, and not all
            of them everywhere.

    Returns:
        ``n x d`` points and ``n x 1`` standardised values.
    """
    generator = torch.Generator().manual_seed(seed)
    box = bx.Box([[0.0] * dim, [1.0] * dim])
    function = RKHSFunction.random(box, kernel, norm=1.0, num_centers=200, seed=seed)
    X = torch.rand(n, dim, dtype=torch.float64, generator=generator)
    if gathered:
        near = slice(0, 7 * n // 10)
        step = 0.15 * torch.randn(X[near].shape, dtype=torch.float64, generator=generator)
        X[near] = (function.optimizer + step).clamp(0, 1)
    f = function(X)
    Y = f + 0.1 * f.std() * torch.randn(n, dtype=torch.float64, generator=generator)
    Y = ((Y - Y.mean()) / Y.std()).unsqueeze(-1)
    return X.to(device), Y.to(device)


def single_task_gp(X: Tensor, Y: Tensor, kernel: Kernel, noise_variance: float) -> SingleTaskGP:
    """BoTorch's model of the same posterior as a `KernelGP` of these arguments."""
    options: dict[str, Any] = {"covar_module": kernel, "mean_module": ZeroMean()}
    model = SingleTaskGP(X, Y, outcome_transform=None, **options).to(X)
    model.likelihood.noise = noise_variance
    model.eval()
    model.requires_grad_(False)
    return model
