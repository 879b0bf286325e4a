"""Kernels of actions and contexts: two columns of the action, then those of the context."""

from __future__ import annotations

import torch
from gpytorch.kernels import Kernel, PeriodicKernel, ScaleKernel
from gpytorch.means import ConstantMean

from botorch_ext.kernels import ActionContextKernel, TaskKernel

# Of four tasks: the first two nearly the same, the third their opposite, the fourth of its own and
# of less variance; of rank 3.
_FACTOR = torch.tensor(
    [[1.0, 0.0, 0.0], [0.9, 0.435889894354067, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 0.7]]
).double()


def product(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2)


def half_sum(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2, combination="sum")


def task_kernel() -> TaskKernel:
    return TaskKernel(_FACTOR @ _FACTOR.T)


def periodic(period: float, lengthscale: float = 1.5) -> PeriodicKernel:
    kernel = PeriodicKernel().double()
    kernel.period_length = torch.tensor(period, dtype=torch.float64)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    return kernel


def scaled(kernel: Kernel, outputscale: float) -> ScaleKernel:
    outer = ScaleKernel(kernel).double()
    outer.outputscale = torch.tensor(outputscale, dtype=torch.float64)
    return outer


def level(value: float) -> ConstantMean:
    """A prior mean that is the same everywhere."""
    mean = ConstantMean().double()
    mean.initialize(constant=value)
    return mean
