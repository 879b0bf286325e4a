"""Kernels with known form, single and batched, on three columns away from the origin."""

import math

import torch
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
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


def stationary(nu: float, lengthscale: Tensor | float = 0.8, **kwargs) -> Kernel:
    """RBF (nu = inf) or Matern; ``lengthscale`` is ``*batch x 1 x (1 or d)``."""
    lengthscale = torch.as_tensor(lengthscale, dtype=torch.float64).reshape(
        getattr(lengthscale, "shape", (1, 1))
    )
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
