"""Kernels that GPyTorch does not have; `frozen` has the fast forms of all kernels."""

from botorch_ext.kernels.action_context import ActionContextKernel
from botorch_ext.kernels.additive import GroupAdditiveKernel
from botorch_ext.kernels.nugget import NuggetKernel
from botorch_ext.kernels.tasks import TaskKernel

AdditiveKernel = GroupAdditiveKernel

__all__ = [
    "ActionContextKernel",
    "AdditiveKernel",
    "GroupAdditiveKernel",
    "NuggetKernel",
    "TaskKernel",
]
