"""Fusing: where a step on a finite set runs as a few kernels of its own."""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec
from types import ModuleType

import torch
from torch import Tensor

from botorch_ext.exceptions import NoTritonWarning


def fused_step(like: Tensor) -> ModuleType | None:
    """The module with the kernels, `botorch_ext.models.fused_step`, for tensors on CUDA where
    Triton is, which PyTorch brings along there, and finds a C compiler. None elsewhere.

    Warns:
        NoTritonWarning: Triton is there and does not run.
    """
    return _kernels(like.device) if _is_on_a_gpu(like) else None


def _is_on_a_gpu(x: Tensor) -> bool:
    # Kernels are given addresses, of which subclasses of tensors know nothing.
    return x.is_cuda and type(x) is Tensor


@cache
def _kernels(device: torch.device) -> ModuleType | None:
    if find_spec("triton") is None:
        return None
    try:
        from botorch_ext.models import fused_step

        one = torch.ones(1, dtype=torch.float64, device=device)
        fused_step.highest(one, one, one, one)
    # Whatever it is: PyTorch's own operations do the same.
    except Exception as error:  # noqa: BLE001
        message = f"Triton does not run, steps on finite sets take more launches: {error!r}"
        warnings.warn(message, NoTritonWarning, stacklevel=4)
        return None
    return fused_step
