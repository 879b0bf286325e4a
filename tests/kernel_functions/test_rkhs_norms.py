import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel

from botorch_ext.kernel_functions.rkhs_norms import (
    bump_norm,
    growth_norm,
    radial_kernel,
    spectral_density,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(1000)


def profile(nu: float, r: np.ndarray) -> np.ndarray:
    """The Matern kernel of lengthscale 1 as it is printed in books."""
    s = math.sqrt(2 * nu) * r
    return {0.5: 1 + 0 * s, 1.5: 1 + s, 2.5: 1 + s + s**2 / 3}[nu] * np.exp(-s)


def minimal_norm(nu: float, points: np.ndarray, values: np.ndarray) -> float:
    """The smallest norm of a function with these values at ``n x d`` points."""
    distances = np.linalg.norm(points[:, None] - points[None], axis=-1)
    K = profile(nu, distances) + 1e-11 * np.eye(len(points))
    return math.sqrt(values @ np.linalg.solve(K, values))


def bump(squared: np.ndarray) -> np.ndarray:
    inside = np.clip(1 - squared, 1e-300, None)
    return np.where(squared < 1, np.exp(-np.minimum(squared / inside, 700.0)), 0.0)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_the_density_is_the_transform_of_the_kernel(nu: float) -> None:
    frequency = np.array([0.0, 0.3, 1.7, 6.0])
    x = 20 * (NODES + 1)  # [0, 40], beyond which the kernel is 1e-17
    one = [40 * np.sum(WEIGHTS * profile(nu, x) * np.cos(w * x)) for w in frequency]
    np.testing.assert_allclose(spectral_density(nu, frequency, 1), one, rtol=1e-8)
    # In the plane at frequency (w, 0): the second column integrated out first.
    angle = math.pi * (np.arange(400) + 0.5) / 400
    r, radial = np.polynomial.legendre.leggauss(400)
    r, radial = 20 * (r + 1), 20 * radial
    two = [
        2
        * math.pi
        * np.sum(radial * r * profile(nu, r) * np.cos(np.outer(np.cos(angle), w * r)).mean(axis=0))
        for w in frequency
    ]
    np.testing.assert_allclose(spectral_density(nu, frequency, 2), two, rtol=1e-8)


SLOW = pytest.mark.slow


@pytest.mark.parametrize("nu", [0.5, pytest.param(1.5, marks=SLOW), pytest.param(2.5, marks=SLOW)])
def test_the_norm_of_the_bump_on_the_line_in_closed_form(nu: float) -> None:
    # 1 / k^ = (2 nu + w^2)^p / c with p = nu + 1/2: squares of the derivatives up to the p-th.
    p = round(nu + 0.5)
    x = torch.from_numpy(NODES).requires_grad_()
    derivative = torch.exp(-(x**2) / (1 - x**2))
    terms = []
    for i in range(p + 1):
        square = (torch.from_numpy(WEIGHTS) * derivative**2).sum().item()
        terms.append(math.comb(p, i) * (2 * nu) ** (p - i) * square)
        (derivative,) = torch.autograd.grad(derivative.sum(), x, create_graph=True)
    constant = {0.5: 2.0, 1.5: 12 * math.sqrt(3), 2.5: 400 * math.sqrt(5) / 3}[nu]
    assert bump_norm(nu, 1) == pytest.approx(math.sqrt(sum(terms) / constant), rel=1e-7)


@pytest.mark.parametrize(("nu", "dim"), [(1.0, 2), pytest.param(0.5, 3, marks=SLOW)])
def test_the_norm_of_the_bump_in_more_columns_in_closed_form(nu: float, dim: int) -> None:
    # Where nu + d/2 = 2, 1 / k^ = (2 nu + w^2)^2 / c: the bump, its gradient and its Laplacian.
    r, weights = (NODES + 1) / 2, WEIGHTS / 2
    y = 1 - r**2
    f = np.exp(-(r**2) / y)
    first = f * -2 * r / y**2
    second = f * (4 * r**2 / y**4 - 2 / y**2 - 8 * r**2 / y**3)
    laplacian = second + (dim - 1) * first / r
    squares = 4 * nu**2 * f**2 + 4 * nu * first**2 + laplacian**2
    sphere = {2: 2 * math.pi * r, 3: 4 * math.pi * r**2}[dim]
    constant = {2: 8 * math.pi, 3: 8 * math.pi}[dim]
    norm = math.sqrt(np.sum(weights * sphere * squares) / constant)
    assert bump_norm(nu, dim) == pytest.approx(norm, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "close"), [(0.5, 0.985), (1.5, 0.9997), (2.5, 0.9995)])
def test_interpolation_on_the_line_approaches_the_norm_from_below(nu: float, close: float) -> None:
    norms = []
    for n in (9, 21, 61, 121):
        x = np.linspace(-1.5, 1.5, n)[:, None]
        norms.append(minimal_norm(nu, x, bump(x[:, 0] ** 2)))
    assert norms == sorted(norms)
    assert close * bump_norm(nu, 1) < norms[-1] < bump_norm(nu, 1) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("nu", "close"), [(0.5, 0.93), (1.5, 0.95), (2.5, 0.8)])
def test_interpolation_in_the_plane_approaches_the_norm_from_below(nu: float, close: float) -> None:
    norms = []
    for n in (5, 9, 17, 33):
        axis = np.linspace(-1, 1, n)
        points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        norms.append(minimal_norm(nu, points, bump((points**2).sum(axis=1))))
    assert norms == sorted(norms)
    assert close * bump_norm(nu, 2) < norms[-1] < bump_norm(nu, 2) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "nu", "dim"),
    [("nu", math.inf, 2), ("nu", 0.0, 2), ("dim", 0.5, 0), ("dim", 0.5, 5), ("dim", 0.5, 1.5)],
)
def test_a_bump_without_a_norm_is_refused(name: str, nu: float, dim: int) -> None:
    with pytest.raises(ValueError, match=name):
        bump_norm(nu, dim)


def test_what_is_known_of_a_radial_kernel() -> None:
    kernel = MaternKernel(nu=1.5, ard_num_dims=2, active_dims=(2, 0)).to(torch.float64)
    kernel.lengthscale = torch.tensor([0.7, 0.2], dtype=torch.float64)
    scaled = ScaleKernel(kernel).to(torch.float64)
    scaled.outputscale = 0.49
    known = radial_kernel(scaled, 3)
    assert known.nu == 1.5
    assert known.variance == pytest.approx(0.49)
    assert known.lengthscales == pytest.approx((0.2, math.inf, 0.7))
    assert known.dim == 2
    one = RBFKernel()
    one.lengthscale = 0.25
    assert radial_kernel(one, 2).lengthscales == pytest.approx((0.25, 0.25))
    assert radial_kernel(one, 2).nu == math.inf


@pytest.mark.parametrize(
    ("kernel", "dim"),
    [
        (LinearKernel(), 2),
        (RBFKernel() + RBFKernel(), 2),
        (RBFKernel(batch_shape=torch.Size([2])), 2),
        (RBFKernel(ard_num_dims=2), 1),
    ],
)
def test_other_kernels_are_refused(kernel, dim) -> None:
    with pytest.raises(ValueError, match="kernel"):
        radial_kernel(kernel, dim)


def closed_growth_norm(nu: float, exponent: float, dim: int, scale: float) -> float:
    """By derivatives, where nu + d/2 = p is whole: p is 2 or dim is 1. In log distance, as the
    squares of derivatives have a pole at 0."""
    start = -18 / min(2 * (exponent - nu), 1.0) if exponent % 2 else -36.0
    log_r = (math.log(8 * scale) + start) / 2 + (math.log(8 * scale) - start) / 2 * NODES
    r = torch.from_numpy(np.exp(log_r)).requires_grad_()
    f = 1 - (-torch.expm1(-((r / scale) ** 2))) ** (exponent / 2)
    (first,) = torch.autograd.grad(f.sum(), r, create_graph=True)
    p = round(nu + dim / 2)
    if dim == 1:
        squares, derivative = 0 * r, f
        for i in range(p + 1):
            squares = squares + math.comb(p, i) * (2 * nu) ** (p - i) * derivative**2
            (derivative,) = torch.autograd.grad(derivative.sum(), r, create_graph=True)
    else:
        (second,) = torch.autograd.grad(first.sum(), r, create_graph=True)
        laplacian = second + (dim - 1) * first / r
        squares = 4 * nu**2 * f**2 + 4 * nu * first**2 + laplacian**2
    sphere = {1: 2.0, 2: 2 * math.pi * r, 3: 4 * math.pi * r**2}[dim]
    values = (squares * sphere * r).detach().numpy()
    integral = (math.log(8 * scale) - start) / 2 * float(WEIGHTS @ values)
    constant = {
        (0.5, 1): 2.0,
        (1.5, 1): 12 * math.sqrt(3),
        (2.5, 1): 400 * math.sqrt(5) / 3,
        (1.0, 2): 8 * math.pi,
        (0.5, 3): 8 * math.pi,
    }[nu, dim]
    return math.sqrt(integral / constant)


@pytest.mark.parametrize(
    ("nu", "exponent", "dim", "scale"),
    [
        (0.5, 0.75, 1, 1.0),
        (0.5, 2.0, 1, 1.0),
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
def test_the_norm_of_a_growth_in_closed_form(
    nu: float, exponent: float, dim: int, scale: float
) -> None:
    expected = closed_growth_norm(nu, exponent, dim, scale)
    assert growth_norm(nu, exponent, dim, scale) == pytest.approx(expected, rel=1e-6)


def test_a_growth_of_gaussians_in_the_space_of_the_rbf_kernel() -> None:
    # exp(-|x|^2 / 2) is the kernel itself; sums of its multiples have a quadratic form as norm.
    assert growth_norm(math.inf, 2, 1, math.sqrt(2)) == pytest.approx(1.0, rel=1e-12)
    assert growth_norm(math.inf, 2, 3, math.sqrt(2)) == pytest.approx(1.0, rel=1e-12)
    axis = np.linspace(-9, 9, 37)
    for exponent, scale in ((2.0, 1.5), (4.0, 2.0)):
        f = 1 - (-np.expm1(-((axis / scale) ** 2))) ** (exponent / 2)
        K = np.exp(-((axis[:, None] - axis) ** 2) / 2)
        values, vectors = np.linalg.eigh(K)
        inside = values > 1e-9
        interpolated = math.sqrt(np.sum((vectors.T[inside] @ f) ** 2 / values[inside]))
        assert growth_norm(math.inf, exponent, 1, scale) == pytest.approx(interpolated, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("exponent", (0.5, 0.5, 1)),
        ("exponent", (2.5, 2.4, 1)),
        ("exponent", (math.inf, 3.0, 1)),
        ("exponent", (0.5, 0.0, 1)),
        ("exponent", (0.5, 22.0, 1)),
        ("exponent", (0.5, math.nan, 1)),
        ("scale", (math.inf, 4.0, 1, 1.4)),
        ("scale", (0.5, 1.0, 1, 0.0)),
        ("dim", (0.5, 1.0, 0)),
    ],
)
def test_a_growth_without_a_norm_is_refused(name: str, arguments: tuple) -> None:
    with pytest.raises(ValueError, match=name):
        growth_norm(*arguments)
