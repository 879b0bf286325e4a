import math

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.kernel_functions.rkhs_norms import growth_norm
from botorch_ext.problems import GrowthFunction
from tests.helpers import tolerance

LINE = Box([[3.0], [5.5]])
PLANE = Box([[2.0, -7.0], [5.0, -6.2]])
CLOSE = tolerance(torch.float64)


def matern(nu: float, *lengthscales: float, outputscale: float | None = None):
    kernel = MaternKernel(nu=nu, ard_num_dims=len(lengthscales)).to(torch.float64)
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64)
    if outputscale is None:
        return kernel
    scaled = ScaleKernel(kernel).to(torch.float64)
    scaled.outputscale = outputscale
    return scaled


def minimal_norm(kernel, points: Tensor, values: Tensor) -> float:
    """The smallest norm of a function with these values."""
    with torch.no_grad():
        K = kernel(points).to_dense()
    K = K + 1e-11 * K.diagonal().mean() * torch.eye(len(points), dtype=points.dtype)
    return math.sqrt(float(values @ torch.linalg.solve(K, values)))


def grid(box: Box, num: int) -> Tensor:
    axes = [torch.linspace(*side, num, dtype=box.dtype) for side in box.bounds.T.tolist()]
    return torch.cartesian_prod(*axes).reshape(-1, box.dim)


def test_values_are_the_definition() -> None:
    f = GrowthFunction(
        matern(0.5, 0.9, 0.3), PLANE, 1.5, norm=2.0, center=[2.6, -6.5], scale=1.4, noise_std=0.1
    )
    for x in ((2.6, -6.5), (2.7, -6.5), (4.9, -7.0), (30.0, 2.0)):
        squared = ((x[0] - 2.6) / (1.4 * 0.9)) ** 2 + ((x[1] + 6.5) / (1.4 * 0.3)) ** 2
        value = f.height * (1 - (1 - math.exp(-squared)) ** 0.75)
        assert float(f(x)) == pytest.approx(value, rel=1e-9)
    assert (f.exponent, f.norm, f.scale, f.noise_std) == (1.5, 2.0, 1.4, 0.1)
    assert f.optimal_value == f.height == float(f(f.optimizer))
    assert torch.equal(f.optimizer, f.center)
    assert f.center.tolist() == [2.6, -6.5]


@pytest.mark.parametrize("exponent", [0.75, 1.0, 2.0, 3.1, 4.0])
def test_the_gap_grows_by_the_exponent(exponent: float) -> None:
    f = GrowthFunction(matern(0.5, 0.9, 0.3), PLANE, exponent, norm=1.0)
    direction = torch.tensor([0.6 * 0.9, 0.8 * 0.3], dtype=torch.float64)  # one lengthscale
    distances = torch.tensor([1e-3, 1e-2], dtype=torch.float64)
    gaps = f.gap(f.center + distances.unsqueeze(-1) * direction)
    expected = f.height * distances**exponent
    assert (gaps / expected).tolist() == pytest.approx([1.0, 1.0], rel=2e-4)
    X = grid(PLANE, 13)
    torch.testing.assert_close(f.gap(X), f.optimal_value - f(X), **CLOSE)


@pytest.mark.parametrize(
    ("nu", "exponent"),
    [
        (0.5, 0.75),
        (0.5, 1.0),
        (0.5, 2.0),
        (0.5, 4.0),
        (1.5, 2.0),
        (1.5, 4.0),
        (2.5, 2.0),
        (2.5, 4.0),
    ],
)
@pytest.mark.parametrize("dim", [1, 2])
def test_interpolation_approaches_the_norm_from_below(nu: float, exponent: float, dim: int) -> None:
    # The kernel of variance 0.49 and the function on far more than the box, where its norm is that
    # on R^d but for the little beyond.
    lengthscales = (0.4, 0.9)[:dim]
    kernel = matern(nu, *lengthscales, outputscale=0.49)
    box = Box([[1.0, -3.0][:dim], [3.0, 1.5][:dim]])
    center = [1.9, -1.2][:dim]
    f = GrowthFunction(kernel, box, exponent, norm=3.0, center=center)
    sizes = (17, 65, 257) if dim == 1 else (9, 17, 33)
    norms = []
    for num in sizes:
        # Denser towards the maximum.
        unit = torch.linspace(-1, 1, num, dtype=torch.float64)
        line = 3.5 * (0.1 * unit + 0.9 * unit**3)
        axes = [center[j] + lengthscales[j] * line for j in range(dim)]
        X = torch.cartesian_prod(*axes).reshape(-1, dim)
        norms.append(minimal_norm(kernel, X, f(X)))
    assert norms == sorted(norms)
    close = {0.75: 0.9, 1.0: 0.95}.get(exponent, 0.97)
    assert close * 3.0 < norms[-1] < 3.0 * (1 + 1e-6)


def test_the_norm_on_the_line_in_closed_form() -> None:
    # Matern 1/2: half the integral of f'^2 + f^2 in lengthscales, from f itself.
    for exponent in (0.75, 2.0, 4.0):
        f = GrowthFunction(matern(0.5, 0.4), LINE, exponent, norm=1.7, scale=0.8)
        log_u = torch.linspace(-60, 2.2, 20_001, dtype=torch.float64)
        u = log_u.exp()
        g = (f.height - f.gap(f.center + 0.8 * 0.4 * u.unsqueeze(-1))).requires_grad_(False)
        q = -torch.expm1(-(u**2))
        slope = f.height * exponent * q ** (exponent / 2 - 1) * u * torch.exp(-(u**2)) / 0.8
        square = torch.trapezoid((slope**2 + g**2) * u, log_u) * 0.8
        assert math.sqrt(float(square)) == pytest.approx(1.7, rel=2e-6)


def test_the_height_follows_norm_variance_and_kernel() -> None:
    f = GrowthFunction(matern(1.5, 0.4), LINE, 2.0, norm=2.0)
    scaled = GrowthFunction(matern(1.5, 0.4, outputscale=0.25), LINE, 2.0, norm=4.0)
    assert f.height == pytest.approx(2.0 / growth_norm(1.5, 2.0, 1), rel=1e-12)
    assert scaled.height == pytest.approx(f.height, rel=1e-9)
    # A column the kernel does not look at is none of the function's.
    kernel = MaternKernel(nu=0.5, active_dims=(1,)).to(torch.float64)
    kernel.lengthscale = 0.3
    blind = GrowthFunction(kernel, PLANE, 1.0, norm=1.0)
    assert blind.height == pytest.approx(1 / growth_norm(0.5, 1.0, 1), rel=1e-12)
    assert float(blind([2.1, -6.6])) == float(blind([4.1, -6.6]))


def test_the_default_center_is_inside_and_no_corner_of_a_cell() -> None:
    for box in (LINE, PLANE, Box([[-1.0] * 9, [2.0] * 9])):
        kernel = matern(0.5, *[0.5] * box.dim)
        center = GrowthFunction(kernel, box, 1.0, norm=1.0).center
        assert bool(box.contains(center).all())
        unit = box.to_unit(center)
        assert bool(((0.05 < unit) & (unit < 0.97)).all())
        cells = unit * 2.0**10
        assert float((cells - cells.round()).abs().min()) > 1e-3
        assert len(set(unit.tolist())) == box.dim


def test_it_is_differentiable_also_at_its_maximum() -> None:
    f = GrowthFunction(matern(0.5, 0.9, 0.3), PLANE, 0.75, norm=2.0)
    X = torch.cat([f.center.unsqueeze(0), PLANE.sample(3, seed=0)]).requires_grad_()
    (gradient,) = torch.autograd.grad(f(X).sum(), X)
    assert gradient[0].tolist() == [0.0, 0.0]
    step = torch.tensor([1e-6, 0.0], dtype=torch.float64)
    slopes = (f(X.detach() + step) - f(X.detach() - step)) / 2e-6
    torch.testing.assert_close(gradient[1:, 0], slopes[1:], rtol=1e-5, atol=1e-7)
