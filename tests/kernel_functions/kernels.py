"""Kernels with known form, single, batched and additive, on three columns away from the origin."""

import math

import torch
from gpytorch.kernels import Kernel, MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from torch import Tensor

from botorch_ext.kernels import AdditiveKernel

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


ARD = spread(0.4, 2.0, 1, 3)
DECOMPOSITIONS = [
    [(0,), (1,), (2,)],
    [(2, 0), (1,)],
    [(0, 1), (1, 2)],  # a tree
    [(0, 1, 2)],
    [(1,)],
    [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)],
]


class Distance(Kernel):
    """A stationary kernel this package has no closed form for."""

    has_lengthscale = True

    def forward(self, x1, x2, diag=False, **params):
        r2 = self.covar_dist(x1 / self.lengthscale, x2 / self.lengthscale, diag, square_dist=True)
        return 1 / (1 + r2)


BASES = {
    "rbf": lambda: stationary(math.inf),
    "rbf ard": lambda: stationary(math.inf, ARD),
    "matern": lambda: stationary(1.5, ARD),
    "columns": lambda: stationary(2.5, spread(0.3, 2.0, 1, 2), active_dims=(2, 0)),
    "product": lambda: stationary(0.5) * stationary(math.inf, ARD),
    "sum": lambda: scaled(stationary(0.5, active_dims=(1,)) + stationary(math.inf)),
    "periodic": periodic,
    "scaled periodic": lambda: scaled(periodic(spread(0.5, 3.0, 1, 3), ARD)),
    "generic": lambda: Distance().double(),
}
BATCHED = {
    "rbf ard": lambda: stationary(math.inf, spread(0.3, 2.0, 4, 1, 3)),
    "matern": lambda: stationary(2.5, spread(0.3, 2.0, 4, 1, 1)),
    "scaled": lambda: scaled(stationary(2.5, spread(0.3, 2.0, 4, 1, 1)), spread(0.3, 1.0, 4)),
    "product": lambda: stationary(0.5) * stationary(math.inf, spread(0.3, 2.0, 4, 1, 3)),
    "periodic": lambda: periodic(spread(0.5, 3.0, 4, 1, 1), spread(0.3, 2.0, 4, 1, 1)),
    "generic": lambda: Distance(batch_shape=torch.Size([4])).double(),
    "the same": lambda: scaled(stationary(1.5, spread(0.7, 0.7, 4, 1, 1)), spread(0.5, 0.5, 4)),
    "two dimensions": lambda: stationary(math.inf, spread(0.3, 2.0, 2, 4, 1, 1)),
}


def batch_of(base):
    """An additive kernel on a batch of bases, whose entries have decompositions in turn."""
    kernel = AdditiveKernel(base, [(0,)], 3)
    single = [AdditiveKernel(stationary(math.inf), each, 3).masks for each in DECOMPOSITIONS[:4]]
    masks = torch.stack([single[i % 4] for i in range(math.prod(kernel.batch_shape))])
    kernel.masks = masks.reshape(*kernel.batch_shape, *masks.shape[1:])
    return kernel
