"""Points as tensors: what is checked at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


def as_points(
    X: Tensor | Sequence[float] | Sequence[Sequence[float]],
    dim: int,
    like: Tensor,
    name: str = "X",
    look: bool = True,
) -> Tensor:
    """Checks points at the door.

    Args:
        X: A ``n x d`` or ``d``-dim tensor, or nested numbers of that shape.
        dim: The expected ``d``.
        like: A tensor whose dtype and device the points must share.
        name: The name of the argument, for the error message.
        look: Whether entries are looked at; else the caller does, with `require_finite`.

    Returns:
        A ``n x d``-dim tensor.

    Raises:
        ValueError: Wrong shape, dtype or device, or an entry that is not finite.
    """
    X = checked_like(X, like, name)
    if X.ndim == 1:
        X = X.unsqueeze(0)
    if X.ndim != 2 or X.shape[-1] != dim:
        raise ValueError(f"{name} must have shape (n, {dim}) or ({dim},), got {tuple(X.shape)}")
    if look:
        require_finite({name: X})
    return X


def require_finite(arguments: Mapping[str, Tensor]) -> None:
    """A ValueError that names the first of the arguments with an entry that is not finite. One look
    at the device does for all of them."""
    # A sum is finite where all entries are, unless it overflows.
    sums = [values.sum() for values in arguments.values()]
    if bool(torch.stack(sums).isfinite().all()):
        return
    for name, values in arguments.items():
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{name} must be finite, got NaN or infinite entries")


def checked_like(values: Any, like: Tensor, name: str) -> Tensor:
    """Numbers as a tensor of the dtype and on the device of ``like``; a tensor must be so already.
    Else a ValueError that names the argument."""
    if isinstance(values, Tensor):
        require_same_kind(values, like, name)
        return values
    return checked_tensor(values, like.dtype, like.device, name)


def require_same_kind(X: Tensor, like: Tensor, name: str) -> None:
    """Raises a ValueError unless ``X`` has the dtype and the device of ``like``."""
    if X.dtype != like.dtype or X.device != like.device:
        raise ValueError(
            f"{name} must be {like.dtype} on {like.device}, got {X.dtype} on {X.device}"
        )


def checked_tensor(
    values: Any, dtype: torch.dtype, device: torch.device | str | None, name: str
) -> Tensor:
    """Numbers as a tensor, or a ValueError that names the argument."""
    if isinstance(values, Tensor):
        return values.to(dtype=dtype, device=device)
    try:
        return torch.tensor(values, dtype=dtype, device=device)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} must be a tensor or nested numbers of one shape, got {values!r}"
        ) from error


def as_floating(
    values: Tensor | Sequence[Sequence[float]],
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    name: str,
) -> Tensor:
    """A floating-point copy without gradients: of the dtype asked for, else the tensor's, else
    float64; or a ValueError that names the argument."""
    if dtype is not None and not dtype.is_floating_point:
        raise ValueError(f"dtype must be a floating-point dtype, got {dtype}")
    given = values.dtype if isinstance(values, Tensor) and values.is_floating_point() else None
    return checked_tensor(values, dtype or given or torch.float64, device, name).detach().clone()
