"""Smoothness constants against the kernels themselves, at random pairs of points."""

import math

import pytest
import torch
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_ext.kernel_functions.smoothness import holder_constants
from botorch_ext.kernels import ActionContextKernel
from tests.helpers import matern, rbf
from tests.kernel_functions.kernels import scaled

DIM = 3


def largest_ratio(kernel, num_pairs=8_000):
    """The largest of sqrt(k(x,x) + k(z,z) - 2 k(x,z)) / (C r^xi), at all scales of distance."""
    g = torch.Generator().manual_seed(0)
    holder = holder_constants(kernel, DIM)
    X = 3 + 5 * torch.rand(num_pairs, DIM, generator=g, dtype=torch.float64)
    directions = torch.randn(num_pairs, DIM, generator=g, dtype=torch.float64)
    # Some pairs differ in one column only: a wrong lengthscale shows there.
    alone = torch.randint(DIM, (num_pairs // 2,), generator=g)
    directions[: len(alone)] = torch.nn.functional.one_hot(alone, DIM).double()
    sizes = 10 ** (4 * torch.rand(num_pairs, 1, generator=g, dtype=torch.float64) - 3)
    Z = X + sizes * directions / directions.norm(dim=-1, keepdim=True)
    with torch.no_grad():
        between = kernel(X.unsqueeze(1), Z.unsqueeze(1)).to_dense().squeeze()
        own, other = (kernel(P.unsqueeze(1), diag=True).squeeze() for P in (X, Z))
    distance = (own + other - 2 * between).clamp_min(0).sqrt()
    r = ((X - Z) / torch.tensor(holder.lengthscales, dtype=torch.float64)).norm(dim=-1)
    seen = r > 0
    assert (distance[~seen] == 0).all()
    bound = holder.constant * r[seen] ** holder.exponent
    return (distance[seen] / bound).max().item()


HALF, QUARTER = scaled(rbf(0.4), 0.5), scaled(matern(0.4), 0.25)
SAME = (0.4, 0.4, 0.4)
# Each: the kernel, the smallest constant, the exponent and the lengthscales.
TIGHT = {
    "matern 1/2": (matern(0.7, nu=0.5), math.sqrt(2), 0.5, (0.7, 0.7, 0.7)),
    "matern 3/2": (matern(0.2, 1.0, 3.0, nu=1.5), math.sqrt(3), 1.0, (0.2, 1.0, 3.0)),
    "matern 5/2": (matern(0.5), math.sqrt(5 / 3), 1.0, (0.5, 0.5, 0.5)),
    "rbf": (rbf(0.2, 1.0, 3.0), 1.0, 1.0, (0.2, 1.0, 3.0)),
    "two columns": (rbf(0.2, 3.0, active_dims=(2, 0)), 1.0, 1.0, (3.0, math.inf, 0.2)),
    "scaled": (scaled(rbf(0.4), 0.49), 0.7, 1.0, SAME),
    "sum": (AdditiveKernel(HALF, QUARTER), math.sqrt(0.5 + 0.25 * 5 / 3), 1.0, SAME),
    "product": (
        ProductKernel(HALF, QUARTER, rbf(0.4)),
        math.sqrt(0.125 * (1 + 5 / 3 + 1)),
        1.0,
        SAME,
    ),
    "scaled sum": (
        scaled(AdditiveKernel(rbf(0.4), matern(0.4, nu=1.5)), 0.5),
        math.sqrt(0.5 * (1 + 3)),
        1.0,
        SAME,
    ),
    "halves": (ProductKernel(matern(0.4, nu=0.5), matern(0.4, nu=0.5)), 2.0, 0.5, SAME),
}


@pytest.mark.parametrize("name", TIGHT)
def test_the_smallest_constant(name):
    kernel, constant, exponent, lengthscales = TIGHT[name]
    holder = holder_constants(kernel, DIM)
    assert (holder.constant, holder.exponent) == (pytest.approx(constant, rel=1e-6), exponent)
    assert holder.lengthscales == pytest.approx(lengthscales, rel=1e-6)
    assert 0.99 < largest_ratio(kernel) < 1 + 1e-6


OF_GROUPS = ActionContextKernel(rbf(0.3, 0.5), matern(0.4), (2, 0), (1,))


@pytest.mark.parametrize(
    "kernel",
    [
        AdditiveKernel(rbf(0.2, 1.0, 3.0), matern(0.5)),
        ProductKernel(rbf(0.3, active_dims=(0,)), matern(0.2, 3.0, nu=1.5, active_dims=(1, 2))),
        AdditiveKernel(matern(0.3, nu=0.5), scaled(rbf(0.5), 2.0)),
        ProductKernel(scaled(matern(2.0, nu=0.5), 0.3), scaled(rbf(0.05), 3.0)),
        ProductKernel(rbf(0.4), AdditiveKernel(matern(0.3, nu=0.5), matern(0.1, 1.0, 9.0))),
        ActionContextKernel(matern(0.4, nu=1.5), matern(0.2, nu=0.5), 2, 1, "sum"),
        OF_GROUPS,
    ],
)
def test_a_valid_constant_where_parts_differ(kernel):
    assert 0.2 < largest_ratio(kernel) < 1 + 1e-6


def test_groups_keep_their_lengthscales_and_the_variance_is_the_kernel_at_zero():
    assert holder_constants(OF_GROUPS, DIM).lengthscales == pytest.approx((0.5, 0.4, 0.3), rel=1e-6)
    kernel = scaled(ProductKernel(HALF, AdditiveKernel(rbf(1.0), rbf(2.0))), 0.3)
    assert holder_constants(kernel, DIM).variance == pytest.approx(0.3, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "said"),
    [
        (LinearKernel(), "kernel must be .* pass width= .* got LinearKernel$"),
        (AdditiveKernel(rbf(1.0), PeriodicKernel()), "kernel must be .* got PeriodicKernel$"),
        (ScaleKernel(LinearKernel()), "kernel must be .* got LinearKernel$"),
        (RBFKernel(batch_shape=torch.Size([2])), "kernel must have no batch dimensions"),
        (rbf(0.2, 0.3), "kernel must be on 3 columns, got 2 lengthscales"),
        (rbf(0.2, active_dims=(4,)), "kernel must be on 3 columns, got active_dims"),
    ],
)
def test_other_kernels_and_those_of_the_wrong_size_are_refused(kernel, said):
    with pytest.raises(ValueError, match=said):
        holder_constants(kernel, DIM)
    with pytest.raises(ValueError, match="points must have at least 3 columns"):
        holder_constants(OF_GROUPS, 2)
