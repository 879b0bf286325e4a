import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from botorch_ext.kernel_functions import freeze
from botorch_ext.models.conditioning import condition
from tests.oracles.posterior import dense_posterior


def test_variances_are_those_of_a_dense_solve_after_each_point():
    generator = torch.Generator().manual_seed(0)
    X = torch.rand(30, 2, generator=generator, dtype=torch.float64)
    kernel, noise = RBFKernel().double(), 0.1
    kernel.lengthscale = 0.4
    K = freeze(kernel, X.dtype, X.device)(X, X).detach()
    V, variance = X.new_empty(5, 30), K.diagonal().clone()
    for n, chosen in enumerate([3, 17, 3, 20, 8]):
        root = (variance[chosen] + noise).sqrt()
        condition(V, variance, n, K[chosen], V[:n, chosen].clone(), root)
        points = X[[3, 17, 3, 20, 8][: n + 1]]
        _, covariance = dense_posterior(kernel, points, points[:, 0], X, noise)
        assert_close(variance, covariance.diagonal(), rtol=1e-10, atol=1e-12)
