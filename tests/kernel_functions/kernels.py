"""Kernels with known form, single and batched, on three columns away from the origin."""

import math

import torch
from gpytorch.kernels import Kernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from torch import Tensor

DIM = 3
BOUNDS = torch.tensor([[2.0, -3.0, 10.0], [5.0, -1.0, 10.5]], dtype=torch.float64)


def points(num: int, seed: int, batch: tuple[int, ...] = ()) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    U = torch.rand(*batch, num, DIM, generator=generator, dtype=torch.float64)
    return BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * U


def spread(low: float, high: float, *shape: int) -> Tensor:
    """Numbers from ``low`` to ``high``, evenly spread over ``shape``."""
    return torch.linspace(low, high, math.prod(shape), dtype=torch.float64).reshape(shape)


def _as_parameter(value: Tensor | float) -> Tensor:
    value = torch.as_tensor(value, dtype=torch.float64)
    return value if value.ndim else value.reshape(1, 1)


def stationary(nu: float, lengthscale: Tensor | float = 0.8, **kwargs) -> Kernel:
    """RBF (nu = inf) or Matern; ``lengthscale`` is ``*batch x 1 x (1 or d)``."""
    lengthscale = _as_parameter(lengthscale)
    *batch, _, columns = lengthscale.shape
    if columns > 1:
        kwargs["ard_num_dims"] = columns
    kwargs["batch_shape"] = torch.Size(batch)
    kernel = RBFKernel(**kwargs) if nu == math.inf else MaternKernel(nu=nu, **kwargs)
    kernel = kernel.double()
    kernel.lengthscale = lengthscale
    return kernel


def scaled(base: Kernel, outputscale: Tensor | float = 0.6) -> Kernel:
    outputscale = torch.as_tensor(outputscale, dtype=torch.float64)
    kernel = ScaleKernel(base, batch_shape=outputscale.shape).double()
    kernel.outputscale = outputscale
    return kernel


def periodic(
    period: Tensor | float = 0.7,
    lengthscale: Tensor | float = 0.9,
    active_dims: tuple[int, ...] | None = None,
) -> Kernel:
    """Both ``*batch x 1 x (1 or d)``, of the same shape."""
    period, lengthscale = _as_parameter(period), _as_parameter(lengthscale)
    *batch, _, columns = period.shape
    kernel = PeriodicKernel(
        ard_num_dims=columns, batch_shape=torch.Size(batch), active_dims=active_dims
    )
    if columns == 1:
        kernel.ard_num_dims = None  # one period for all columns
    kernel = kernel.double()
    kernel.period_length, kernel.lengthscale = period, lengthscale
    return kernel
