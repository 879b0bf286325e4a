"""Functions that fall from their maximum by a known power: their gap and their norm."""

import math

import pytest
import torch

from botorch_ext.domains import Box
from botorch_ext.kernel_functions.rkhs_norms import growth_norm
from botorch_ext.problems import GrowthFunction
from tests.helpers import matern, tolerance
from tests.kernel_functions.kernels import scaled

PLANE = Box([[2.0, -7.0], [5.0, -6.2]])
ROUGH = matern(0.9, 0.3, nu=0.5)


@pytest.mark.parametrize("exponent", [0.75, 1.0, 2.0, 3.1, 4.0])
def test_the_gap_grows_by_the_exponent(exponent):
    f = GrowthFunction(ROUGH, PLANE, exponent, norm=1.0)
    assert f.optimal_value == f.height == float(f(f.center))
    direction = torch.tensor([0.6 * 0.9, 0.8 * 0.3], dtype=torch.float64)  # one lengthscale
    steps = torch.tensor([1e-3, 1e-2], dtype=torch.float64)
    shares = f.gap(f.center + steps.unsqueeze(-1) * direction) / (f.height * steps**exponent)
    assert shares.tolist() == pytest.approx([1.0, 1.0], rel=2e-4)
    X = PLANE.sample(50, seed=0)
    torch.testing.assert_close(f.gap(X), f.optimal_value - f(X), **tolerance(X.dtype))


def minimal_norm(kernel, X, values):
    """The smallest norm of a function with these values."""
    K = kernel(X).to_dense().detach()
    K = K + 1e-11 * K.diagonal().mean() * torch.eye(len(X), dtype=X.dtype)
    return math.sqrt(float(values @ torch.linalg.solve(K, values)))


@pytest.mark.parametrize(
    ("nu", "exponent"), [(0.5, 0.75), (0.5, 1.0), (0.5, 4.0), (1.5, 2.0), (2.5, 2.0), (2.5, 4.0)]
)
@pytest.mark.parametrize("dim", [1, 2])
def test_interpolation_approaches_the_norm_from_below(nu, exponent, dim):
    # The kernel of variance 0.49 and the function on far more than the box, where its norm is that
    # on R^d but for the little beyond.
    lengthscales, center = (0.4, 0.9)[:dim], [1.9, -1.2][:dim]
    kernel = scaled(matern(*lengthscales, nu=nu), 0.49)
    box = Box([[1.0, -3.0][:dim], [3.0, 1.5][:dim]])
    f = GrowthFunction(kernel, box, exponent, norm=3.0, center=center)
    norms = []
    for num in (17, 65, 257) if dim == 1 else (9, 17, 33):
        # Denser towards the maximum.
        unit = torch.linspace(-1, 1, num, dtype=torch.float64)
        line = 3.5 * (0.1 * unit + 0.9 * unit**3)
        axes = [center[j] + lengthscales[j] * line for j in range(dim)]
        X = torch.cartesian_prod(*axes).reshape(-1, dim)
        norms.append(minimal_norm(kernel, X, f(X)))
    assert norms == sorted(norms)
    close = {0.75: 0.9, 1.0: 0.95}.get(exponent, 0.97)
    assert close * 3.0 < norms[-1] < 3.0 * (1 + 1e-6)


def test_a_column_that_the_kernel_does_not_look_at_does_not_count():
    f = GrowthFunction(matern(0.3, nu=0.5, active_dims=(1,)), PLANE, 1.0, norm=1.0)
    assert f.height == pytest.approx(1 / growth_norm(0.5, 1.0, 1), rel=1e-12)
    assert float(f([2.1, -6.6])) == float(f([4.1, -6.6]))


def test_the_default_center_is_inside_and_no_corner_of_a_cell():
    for dim in (1, 2, 9):
        box = Box([[-1.0] * dim, [2.0] * dim])
        center = GrowthFunction(matern(0.5, nu=0.5), box, 1.0, norm=1.0).center
        unit = box.to_unit(center)
        assert bool(((0.05 < unit) & (unit < 0.97)).all())
        cells = unit * 2.0**10
        assert float((cells - cells.round()).abs().min()) > 1e-3
        assert len(set(unit.tolist())) == dim


def test_it_is_differentiable_also_at_its_maximum():
    f = GrowthFunction(ROUGH, PLANE, 0.75, norm=2.0)
    X = torch.cat([f.center.unsqueeze(0), PLANE.sample(3, seed=0)]).requires_grad_()
    (gradient,) = torch.autograd.grad(f(X).sum(), X)
    assert gradient[0].tolist() == [0.0, 0.0]
    step = torch.tensor([1e-6, 0.0], dtype=torch.float64)
    slopes = (f(X.detach() + step) - f(X.detach() - step)) / 2e-6
    torch.testing.assert_close(gradient[1:, 0], slopes[1:], rtol=1e-5, atol=1e-7)
