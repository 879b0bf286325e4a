"""Additive kernels of every kind of base, single and batched."""

import math

import torch
from gpytorch.kernels import Kernel

from botorch_ext.kernels import AdditiveKernel
from tests.kernel_functions.kernels import periodic, scaled, spread, stationary

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
