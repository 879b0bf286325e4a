"""Arguments of models, checked at the door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from gpytorch.means import Mean
from torch import Tensor

from botorch_ext.domains import require_same_kind

PriorMean = Mean | Callable[[Tensor], Tensor]


def frozen_mean(mean: PriorMean | None, like: Tensor) -> PriorMean | None:
    """A copy of a GPyTorch `Mean` without gradients, of the dtype and on the device of ``like``;
    anything else as it is."""
    if not isinstance(mean, torch.nn.Module):
        return mean
    return deepcopy(mean).to(like).requires_grad_(False)


def checked_noise_variance(
    noise_variance: float | Tensor | Sequence[float],
    dtype: torch.dtype,
    device: torch.device | str,
) -> Tensor:
    """``noise_variance`` as a tensor, or a ValueError if it is not positive and finite."""
    try:
        noise = torch.as_tensor(noise_variance, dtype=dtype, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(f"noise_variance must be numbers, got {noise_variance!r}") from None
    if not bool((torch.isfinite(noise) & (noise > 0)).all()):
        raise ValueError(f"noise_variance must be positive and finite, got {noise_variance}")
    return noise


def checked_values(Y: Tensor, num_points: int, like: Tensor, name: str = "Y") -> Tensor:
    """``n x 1`` or ``n`` observations as a ``n``-dim tensor, or a ValueError."""
    require_same_kind(Y, like, name)
    if Y.shape not in ((num_points,), (num_points, 1)):
        raise ValueError(
            f"{name} must have shape ({num_points}, 1) or ({num_points},), got {tuple(Y.shape)}"
        )
    if not bool(torch.isfinite(Y).all()):
        raise ValueError(f"{name} must be finite, got NaN or infinite entries")
    return Y.reshape(num_points)
