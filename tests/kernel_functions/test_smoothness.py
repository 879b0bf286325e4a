"""Smoothness constants against the kernels themselves, and norms of radial functions."""

import math

import numpy as np
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

from botorch_ext.kernels import ActionContextKernel
from botorch_ext.kernels.rkhs_norms import bump_norm, growth_norm, radial_kernel
from botorch_ext.kernels.smoothness import holder_constants
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


NODES, WEIGHTS = np.polynomial.legendre.leggauss(1000)
SLOW = pytest.mark.slow


CONSTANTS = {
    (0.5, 1): 2.0,
    (1.5, 1): 12 * math.sqrt(3),
    (2.5, 1): 400 * math.sqrt(5) / 3,
    (1.0, 2): 8 * math.pi,
    (0.5, 3): 8 * math.pi,
}


def norm_by_derivatives(radial, r, weights, nu, dim):
    """Where nu + d/2 = p is whole, 1 / k^ is (2 nu + w^2)^p over a constant: squares of the
    derivatives up to the p-th on the line; of f, its gradient and its Laplacian where p is 2."""
    r = torch.from_numpy(r).requires_grad_()
    f = radial(r)
    if dim == 1:
        p, squares, derivative = round(nu + 0.5), 0 * r, f
        for i in range(p + 1):
            squares = squares + math.comb(p, i) * (2 * nu) ** (p - i) * derivative**2
            (derivative,) = torch.autograd.grad(derivative.sum(), r, create_graph=True)
    else:
        (first,) = torch.autograd.grad(f.sum(), r, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), r, create_graph=True)
        laplacian = second + (dim - 1) * first / r
        squares = 4 * nu**2 * f**2 + 4 * nu * first**2 + laplacian**2
    sphere = {1: 2.0, 2: 2 * math.pi * r, 3: 4 * math.pi * r**2}[dim]
    return math.sqrt(float(weights @ (squares * sphere).detach().numpy()) / CONSTANTS[nu, dim])


@pytest.mark.parametrize(
    ("nu", "dim"),
    [(0.5, 1), (1.0, 2), *(pytest.param(*each, marks=SLOW) for each in ((1.5, 1), (2.5, 1)))],
)
def test_the_norm_of_the_bump_in_closed_form(nu, dim):
    bump = lambda r: torch.exp(-(r**2) / (1 - r**2))  # noqa: E731
    expected = norm_by_derivatives(bump, (NODES + 1) / 2, WEIGHTS / 2, nu, dim)
    assert bump_norm(nu, dim) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("nu", "exponent", "dim", "scale"),
    [
        (0.5, 0.75, 1, 1.0),
        (0.5, 9.5, 1, 20.0),
        (0.5, 20.0, 1, 1.0),
        (1.5, 2.0, 1, 0.02),
        (1.5, 4.0, 1, 1.7),
        (2.5, 2.0, 1, 0.7),
        (2.5, 20.0, 1, 1.0),
        (1.0, 1.2, 2, 1.0),
        (1.0, 5.0, 2, 2.0),
        (0.5, 0.8, 3, 1.0),
    ],
)
def test_the_norm_of_a_growth_in_closed_form(nu, exponent, dim, scale):
    # In log distance, as the squares of derivatives have a pole at 0.
    start = -18 / min(2 * (exponent - nu), 1.0) if exponent % 2 else -36.0
    middle, half = (math.log(8 * scale) + start) / 2, (math.log(8 * scale) - start) / 2
    r = np.exp(middle + half * NODES)

    def growth(r):
        return 1 - (-torch.expm1(-((r / scale) ** 2))) ** (exponent / 2)

    expected = norm_by_derivatives(growth, r, half * WEIGHTS * r, nu, dim)
    assert growth_norm(nu, exponent, dim, scale) == pytest.approx(expected, rel=1e-6)


def test_a_growth_of_gaussians_in_the_space_of_the_rbf_kernel():
    # exp(-|x|^2 / 2) is the kernel itself; sums of its multiples have a quadratic form as norm.
    for dim in (1, 3):
        assert growth_norm(math.inf, 2, dim, math.sqrt(2)) == pytest.approx(1.0, rel=1e-12)
    axis = np.linspace(-9, 9, 37)
    values, vectors = np.linalg.eigh(np.exp(-((axis[:, None] - axis) ** 2) / 2))
    inside = values > 1e-9
    for exponent, scale in ((2.0, 1.5), (4.0, 2.0)):
        f = 1 - (-np.expm1(-((axis / scale) ** 2))) ** (exponent / 2)
        interpolated = math.sqrt(np.sum((vectors.T[inside] @ f) ** 2 / values[inside]))
        assert growth_norm(math.inf, exponent, 1, scale) == pytest.approx(interpolated, rel=1e-3)


@pytest.mark.parametrize(
    ("norm", "name", "arguments"),
    [
        (bump_norm, "nu", (math.inf, 2)),
        (bump_norm, "nu", (0.0, 2)),
        (bump_norm, "dim", (0.5, 0)),
        (bump_norm, "dim", (0.5, 5)),
        (bump_norm, "dim", (0.5, 1.5)),
        (growth_norm, "exponent", (0.5, 0.5, 1)),
        (growth_norm, "exponent", (2.5, 2.4, 1)),
        (growth_norm, "exponent", (math.inf, 3.0, 1)),
        (growth_norm, "exponent", (0.5, 0.0, 1)),
        (growth_norm, "exponent", (0.5, 22.0, 1)),
        (growth_norm, "exponent", (0.5, math.nan, 1)),
        (growth_norm, "scale", (math.inf, 4.0, 1, 1.4)),
        (growth_norm, "scale", (0.5, 1.0, 1, 0.0)),
        (growth_norm, "dim", (0.5, 1.0, 0)),
        (radial_kernel, "kernel", (LinearKernel(), 2)),
        (radial_kernel, "kernel", (RBFKernel() + RBFKernel(), 2)),
        (radial_kernel, "kernel", (RBFKernel(batch_shape=torch.Size([2])), 2)),
        (radial_kernel, "kernel", (RBFKernel(ard_num_dims=2), 1)),
    ],
)
def test_what_has_no_norm_and_kernels_that_are_not_radial_are_refused(norm, name, arguments):
    with pytest.raises(ValueError, match=name):
        norm(*arguments)


def test_what_is_known_of_a_radial_kernel():
    known = radial_kernel(scaled(matern(0.7, 0.2, nu=1.5, active_dims=(2, 0)), 0.49), 3)
    assert (known.nu, known.dim, known.variance) == (1.5, 2, pytest.approx(0.49))
    assert known.lengthscales == pytest.approx((0.2, math.inf, 0.7))
    one = RBFKernel()
    one.lengthscale = 0.25
    assert radial_kernel(one, 2).lengthscales == pytest.approx((0.25, 0.25))
    assert radial_kernel(one, 2).nu == math.inf
