"""Checks of dtypes and devices."""

from __future__ import annotations

from typing import Any

import torch

from botorch_ext.checks import short

_DTYPES = (torch.float32, torch.float64)


def checked_dtype(dtype: Any, name: str = "dtype") -> torch.dtype:
    """Check that a dtype is one in which the library computes.

    Args:
        dtype: What was given.
        name: The name of the argument, for the message.

    Returns:
        The dtype, float32 or float64.

    Raises:
        ValueError: If it is anything else.
    """
    if not isinstance(dtype, torch.dtype) or dtype not in _DTYPES:
        raise ValueError(
            f"{name} must be a floating-point dtype, torch.float64 or torch.float32, got "
            f"{short(dtype)}"
        )
    return dtype


def checked_device(device: Any) -> torch.device | None:
    """Check that a device exists.

    Args:
        device: What was given; None for no device.

    Returns:
        The device, or None if none was given.

    Raises:
        ValueError: If torch does not find the device.
    """
    if device is None:
        return None
    try:
        return torch.empty(0, device=device).device
    except (AssertionError, RuntimeError, TypeError) as error:
        raise ValueError(
            f'device must be one that torch finds here, such as "cpu" or "cuda", got '
            f"{short(device)}"
        ) from error
