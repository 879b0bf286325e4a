"""Dtypes and devices, checked at the door."""

from __future__ import annotations

from typing import Any

import torch

from botorch_ext.checks import short

_DTYPES = (torch.float32, torch.float64)


def checked_dtype(dtype: Any, name: str = "dtype") -> torch.dtype:
    """A dtype that the library computes in, or a ValueError that names the argument."""
    if not isinstance(dtype, torch.dtype) or dtype not in _DTYPES:
        raise ValueError(
            f"{name} must be a floating-point dtype, torch.float64 or torch.float32, got "
            f"{short(dtype)}"
        )
    return dtype


def checked_device(device: Any) -> torch.device | None:
    """A device that is there, None where none is given; or a ValueError."""
    if device is None:
        return None
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(
            f'device must be one that torch finds here, such as "cpu" or "cuda", got '
            f"{short(device)}"
        ) from error
