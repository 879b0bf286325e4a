"""Functions that fall from their maximum by a known power: their gap and their norm."""

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


def test_a_column_that_the_kernel_does_not_look_at_does_not_count():
    f = GrowthFunction(scaled(matern(0.3, nu=0.5, active_dims=(1,)), 0.49), PLANE, 1.0, norm=3.0)
    # A multiple of the kernel makes the space of its multiples: the norm falls by its root.
    assert f.height == pytest.approx(3.0 * 0.7 / growth_norm(0.5, 1.0, 1), rel=1e-12)
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
