"""Kernels, checked at the door."""

from __future__ import annotations

from typing import Any

from gpytorch.kernels import Kernel

from botorch_ext.checks import short


def require_kernel(kernel: Any, name: str = "kernel") -> None:
    """A ValueError that says what to write unless this is a GPyTorch kernel."""
    if isinstance(kernel, Kernel):
        return
    got = short(kernel)
    if isinstance(kernel, type):
        got = f"the class {kernel.__name__}: write {kernel.__name__}()"
    elif type(kernel).__module__.startswith("sklearn."):
        got += " of scikit-learn: write the one of gpytorch.kernels, such as RBFKernel() for RBF()"
    raise ValueError(
        f"{name} must be a GPyTorch kernel, such as gpytorch.kernels.MaternKernel(nu=2.5), got "
        f"{got}"
    )
