"""Checks of the arguments of models, at the door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from gpytorch.means import Mean
from torch import Tensor

from botorch_ext.domains import as_points, require_same_kind
from botorch_ext.domains.points import require_finite

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


def checked_values(
    Y: Tensor, num_points: int, like: Tensor, name: str = "Y", look: bool = True
) -> Tensor:
    """``n x 1`` or ``n`` observations as a ``n``-dim tensor, or a ValueError; ``look`` as for
    `as_points`."""
    require_same_kind(Y, like, name)
    if Y.shape not in ((num_points,), (num_points, 1)):
        raise ValueError(
            f"{name} must have shape ({num_points}, 1) or ({num_points},), got {tuple(Y.shape)}"
        )
    if look:
        require_finite({name: Y})
    return Y.reshape(num_points)


def checked_inputs(
    X: Tensor, dim: int, like: Tensor, transform: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Inputs as ``n x d``, and transformed, or a ValueError; their entries are not looked at.

    Args:
        X: ``n x d``.
        dim: How many columns the model has after the transform, which may change them; 0 while that
            is not known.
        like: Of the dtype and on the device that is expected.
        transform: None where inputs stay as they are.
    """
    if transform is None:
        X = as_points(X, dim or X.shape[-1], like, look=False)
        return X, X
    X = as_points(X, X.shape[-1], like, look=False)
    Z = transformed(X, transform)
    if dim not in (0, Z.shape[-1]):
        raise ValueError(
            f"X must have {dim} columns after the input transform, got {Z.shape[-1]} "
            f"from shape {tuple(X.shape)}"
        )
    return X, Z


def transformed(X: Tensor, transform: Callable[[Tensor], Tensor]) -> Tensor:
    """Transformed inputs, or a ValueError where the transform does not take them."""
    try:
        return transform(X)
    except Exception as error:
        raise ValueError(
            f"input_transform must take points of dimension {X.shape[-1]}, got {error!r}"
        ) from error
