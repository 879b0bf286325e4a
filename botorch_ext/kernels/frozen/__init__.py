"""Frozen, fast evaluation of GPyTorch kernels, with closed-form input gradients where they exist.

A GPyTorch kernel call costs hundreds of microseconds of bookkeeping, more than the kernel row it
computes. `freeze` snapshots a kernel into a small module that evaluates RBF, Matern and periodic
kernels and kernels of tasks (scaled, added, multiplied, on groups of columns) directly; any other
kernel is evaluated through GPyTorch itself.
"""

from botorch_ext.kernels.frozen.base import GenericKernel, KernelFunction, Pullback
from botorch_ext.kernels.frozen.columns import ColumnsKernel
from botorch_ext.kernels.frozen.combined import CombinedKernel
from botorch_ext.kernels.frozen.freezing import freeze, require_unbatched
from botorch_ext.kernels.frozen.stationary import StationaryKernel

__all__ = [
    "ColumnsKernel",
    "CombinedKernel",
    "GenericKernel",
    "KernelFunction",
    "Pullback",
    "StationaryKernel",
    "freeze",
    "require_unbatched",
]
