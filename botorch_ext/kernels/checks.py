"""Checks of kernels."""

from __future__ import annotations

from typing import Any

from gpytorch.kernels import Kernel

from botorch_ext.checks import short


def require_kernel(kernel: Any, name: str = "kernel") -> None:
    """Check that an argument is a GPyTorch kernel.

    Args:
        kernel: What was given.
        name: The name of the argument, for the message.

    Raises:
        ValueError: If it is not a GPyTorch kernel; the message says what to write.
    """
    if isinstance(kernel, Kernel):
        return
    got = short(kernel)
    if isinstance(kernel, type):
        got = f"the class {kernel.__name__}: write {kernel.__name__}()"
    elif type(kernel).__module__.startswith("sklearn."):
        got += " of scikit-learn: use one of gpytorch.kernels, such as RBFKernel() for RBF()"
    raise ValueError(
        f"{name} must be a GPyTorch kernel, such as gpytorch.kernels.MaternKernel(nu=2.5), got "
        f"{got}"
    )


def refuse_columns_as_batch(kernel: Kernel, params: dict[str, Any]) -> None:
    """Takes ``last_dim_is_batch`` from the arguments of a call; raises a RuntimeError if it is
    set."""
    if params.pop("last_dim_is_batch", False):
        raise RuntimeError(f"{type(kernel).__name__} does not take last_dim_is_batch")
