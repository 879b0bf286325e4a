"""Kernels of actions and contexts, as formulas and as GPyTorch kernels.

Columns: two of the action, then those of the context.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from gpytorch.kernels import Kernel, PeriodicKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor

from botorch_ext.kernels import ActionContextKernel, TaskKernel

Gram = Callable[[Tensor], Tensor]  # of n points the n x n matrix

# Of four tasks: the first two nearly the same, the third their opposite, the fourth of its own and
# of less variance; of rank 3.
_FACTOR = torch.tensor(
    [[1.0, 0.0, 0.0], [0.9, 0.435889894354067, 0.0], [-0.8, 0.6, 0.0], [0.0, 0.0, 0.7]]
).double()
TASKS = _FACTOR @ _FACTOR.T


def _squared(X: Tensor, lengthscales: tuple[float, ...]) -> Tensor:
    scale = X.new_tensor(lengthscales)
    return ((X[:, None, :] - X[None, :, :]) / scale).square().sum(dim=-1)


def rbf_of(*lengthscales: float) -> Gram:
    return lambda X: torch.exp(-_squared(X, lengthscales) / 2)


def matern_of(*lengthscales: float) -> Gram:
    """nu = 3/2."""

    def gram(X: Tensor) -> Tensor:
        r = (3 * _squared(X, lengthscales)).sqrt()
        return (1 + r) * torch.exp(-r)

    return gram


def table_of(covariance: Tensor) -> Gram:
    def gram(X: Tensor) -> Tensor:
        tasks = X[:, 0].long()
        return covariance[tasks][:, tasks]

    return gram


def product_of(of_actions: Gram, of_contexts: Gram) -> Gram:
    return lambda X: of_actions(X[:, :2]) * of_contexts(X[:, 2:])


def half_sum_of(of_actions: Gram, of_contexts: Gram) -> Gram:
    return lambda X: (of_actions(X[:, :2]) + of_contexts(X[:, 2:])) / 2


def product(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2)


def half_sum(of_actions: Kernel, of_contexts: Kernel) -> Kernel:
    return ActionContextKernel(of_actions, of_contexts, 2, combination="sum")


def task_kernel() -> TaskKernel:
    return TaskKernel(TASKS)


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
