"""Fusing: where a step on a finite set runs as a few kernels of its own."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from types import ModuleType

from torch import Tensor


def fused_step(like: Tensor) -> ModuleType | None:
    """The module with the kernels, `botorch_ext.models.fused_step`, for tensors on CUDA where
    Triton is; PyTorch brings it along there. None elsewhere."""
    return _kernels() if _is_on_a_gpu(like) else None


def _is_on_a_gpu(x: Tensor) -> bool:
    # Kernels are given addresses, of which subclasses of tensors know nothing.
    return x.is_cuda and type(x) is Tensor


@cache
def _kernels() -> ModuleType | None:
    if find_spec("triton") is None:
        return None
    from botorch_ext.models import fused_step

    return fused_step
