"""Kernels that GPyTorch does not have."""

from botorch_ext.kernels.action_context import ActionContextKernel
from botorch_ext.kernels.additive import AdditiveKernel
from botorch_ext.kernels.tasks import TaskKernel

__all__ = ["ActionContextKernel", "AdditiveKernel", "TaskKernel"]
