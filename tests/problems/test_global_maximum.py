import math
import warnings

import numpy as np
import pytest
import torch

from botorch_ext.domains import Box
from botorch_ext.problems import RKHSFunction, global_maximum
from tests.helpers import matern

BOX = Box([[2.0, -7.0, 100.0], [5.0, -6.2, 140.0]])
PEAK = torch.tensor([3.1, -6.51, 117.0], dtype=torch.float64)
# The second column lies 1.2 of its 0.8 outside.
OUTSIDE = torch.tensor([3.1, -5.0, 117.0], dtype=torch.float64)


def bowl(peak, scale=1.0):
    return lambda X: -scale * ((X - peak) / (BOX.upper - BOX.lower)).square().sum(dim=-1)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("peak", [PEAK, OUTSIDE])
def test_a_smooth_maximum_is_found_to_1e9_of_the_spread_inside_and_on_a_face(peak, scale):
    x, value = global_maximum(bowl(peak, scale), BOX, seed=3, num_raw=64)
    assert bool(BOX.contains(x))
    assert abs(value + scale * ((1.2 / 0.8) ** 2 if peak is OUTSIDE else 0.0)) <= 1e-9 * scale
    expected = torch.minimum(peak, BOX.upper)
    torch.testing.assert_close(x, expected, rtol=1e-6, atol=0.0)


def bumps(X):
    return (14.0 * X[:, 0]).cos() + 0.1 * X[:, 0] + (19.0 * X[:, 1]).cos()


def highest_bump():
    x = np.linspace(2.0, 5.0, 3_000_001)
    assert -7.0 < -40 * math.pi / 19.0 < -6.2  # where the second cosine is 1
    return float((np.cos(14.0 * x) + 0.1 * x).max()) + 1.0


def valley(X):
    """Rosenbrock, shifted; its spread here is about 1e4."""
    u, v = X[:, 0] - 4.0, X[:, 1] + 8.0
    return -100 * (v - u.square()).square() - (1 - u).square()


def flat(X):
    return 5.0 - (X[:, 0] - 3.7).pow(4) - 0.3 * (X[:, 0] - 3.7).pow(5)


def cusp(X):
    """Its gradient is NaN at the peak."""
    return -(X - PEAK).abs().sqrt().sum(dim=-1)


def hills(X):
    """A broad one of height 1, a narrow one of height 2."""
    broad = torch.exp(-(X[:, 0] - 3.0).square())
    return broad + (2 - broad) * torch.exp(-1e4 * (X[:, 0] - 4.5).square())


PLANE, LINE = Box([[2.0, -7.0], [5.0, -6.2]]), Box([[2.0], [5.0]])
NARROW = bowl(PEAK, 1e10)
FEW = {"num_raw": 9, "num_starts": 1}
# Each: the function, the box, the value, how close it is, and more arguments.
FOUND = {
    "many bumps": (bumps, PLANE, highest_bump(), 1e-9, {}),
    "a valley": (valley, Box([[2.0, -9.0], [5.5, -6.5]]), 0.0, 1e-7, {"num_raw": 32}),
    "a flat top": (flat, LINE, 5.0, 1e-9, {"num_raw": 5}),
    "a cusp among the extra points": (cusp, BOX, 0.0, 0.0, {"num_raw": 32, "extra": PEAK[None]}),
    "extra points alone": (NARROW, BOX, 0.0, 0.0, {"num_raw": 0, "extra": PEAK[None]}),
    "a hill that is missed": (hills, LINE, 1.0, 1e-9, FEW),
    # Worth 0.73, and refined although others are better.
    "a hill of an extra point": (hills, LINE, 2.0, 1e-9, FEW | {"extra": LINE.upper[None] - 0.49}),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_maximum_is_found(name):
    function, box, best, close, options = FOUND[name]
    state = torch.get_rng_state()
    x, value = global_maximum(function, box, seed=0, **options)
    assert value == pytest.approx(best, rel=0.0, abs=close)
    assert float(function(x[None])) == value
    again = global_maximum(function, box, seed=0, **options)
    assert torch.equal(x, again[0]) and value == again[1]
    assert torch.equal(state, torch.get_rng_state())


def test_warnings_of_the_optimiser_are_hidden_and_those_of_the_function_are_not():
    cusps = RKHSFunction.random(PLANE, matern(0.7, nu=0.5), 2.0, seed=0)

    def complaining(X):
        if X.requires_grad:
            warnings.warn("heard", UserWarning, stacklevel=1)
        return X.sum(dim=-1)

    for function, box, extra, heard in (
        (cusps, PLANE, cusps.centers, set()),
        (complaining, BOX, None, {"heard"}),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            global_maximum(function, box, seed=0, num_raw=512, extra=extra)
        assert {str(w.message) for w in caught} == heard
