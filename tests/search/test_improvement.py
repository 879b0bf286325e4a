"""log EI against quadrature, and its gradients against autograd."""

import mpmath
import pytest
import torch
from torch.testing import assert_close

from botorch_ext.search.improvement import log_improvement

PLACES = [-1e6, -12345.0, -1001.0, -300.0, -31.0, -29.9, -8.0, -1.001, -0.999, 0.0, 0.7, 3.0, 10.0]


def by_quadrature(z):
    """log of the integral of u phi(u - z) over u > 0, and the integral of phi(u - z), both by that
    of u phi(u - z)."""
    with mpmath.workdps(40):
        z = mpmath.mpf(z)
        if z < -1:  # phi(u - z) = phi(z) exp(u z - u^2 / 2), of scale 1 / |z|
            ends = [0, -1 / z, -5 / z, -20 / z, -90 / z]
            density = lambda u: mpmath.exp(u * z - u * u / 2)  # noqa: E731
            factor = -z * z / 2 - mpmath.log(2 * mpmath.pi) / 2
        else:
            ends = [0, max(z, 0), z + 1, z + 4, z + 14]
            density = lambda u: mpmath.npdf(u - z)  # noqa: E731
            factor = mpmath.mpf(0)
        h = mpmath.quad(lambda u: u * density(u), ends)
        probability = mpmath.quad(density, ends)
        return float(factor + mpmath.log(h)), float(probability / h)


@pytest.mark.parametrize("z", PLACES)
def test_log_improvement_is_the_integral(z, device):
    at = torch.tensor([z], dtype=torch.float64, device=device)
    value, by_mean, by_std = (float(each) for each in log_improvement(at))
    expected, slope = by_quadrature(z)
    assert value == pytest.approx(expected, rel=1e-13, abs=1e-14)
    assert by_mean == pytest.approx(slope, rel=1e-11)
    # h = phi + z Phi.
    assert by_std + z * by_mean == pytest.approx(1, abs=1e-11 * max(1, abs(z * by_mean)))


def test_single_precision_is_finite():
    z = torch.linspace(-1e4, 20, 500)
    for each in log_improvement(z):
        assert each.isfinite().all()
    value, by_mean, _ = log_improvement(z)
    expected = log_improvement(z.double())
    assert_close(value.double(), expected[0], rtol=1e-5, atol=1e-6)
    assert_close(by_mean.double(), expected[1], rtol=1e-3, atol=1e-6)
