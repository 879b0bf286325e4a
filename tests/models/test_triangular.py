"""Solves of very many columns on CUDA, as pretended."""

import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, counting
from botorch_ext.models import triangular
from botorch_ext.models.finite import FinitePosterior


def test_no_solve_on_cuda_has_too_many_columns(monkeypatch):
    monkeypatch.setattr(triangular, "_MOST_COLUMNS", 1000)
    X = torch.rand(2500, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kernel = RBFKernel(batch_shape=torch.Size([3]))
    y = X.sum(dim=-1)

    def variance(device):
        posterior = FinitePosterior(kernel.to(device), X.to(device), 0.1)
        posterior.add(X[:3].to(device), y[:3].to(device))
        posterior.add(X[5:20].to(device), y[5:20].to(device))
        return posterior.variance.cpu()

    expected = variance("cpu")
    with PretendCUDA(), counting() as tally:
        assert_close(variance("cuda"), expected, rtol=1e-12, atol=1e-12)
    columns = [right[-1] for _, right in tally.solves]
    assert max(columns) == 1000
