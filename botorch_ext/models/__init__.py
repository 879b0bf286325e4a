"""Exact Gaussian process posteriors whose kernel is fixed."""

from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP

__all__ = ["FinitePosterior", "KernelGP"]
