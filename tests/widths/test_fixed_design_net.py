"""The default width on a box against its formula written out, and on the net it is made for."""

import itertools
import math

import pytest
import torch
from gpytorch.kernels import LinearKernel, MaternKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext import Box, widths
from tests.helpers import tolerance
from tests.widths.test_formulas import Model, draw, uniform

BOX = Box([[3.0, -2.0], [5.5, 0.0]])


def model_of(num_observations: int, noise_variance: float = 0.01) -> Model:
    return Model(
        torch.tensor(noise_variance, dtype=torch.float64), torch.tensor(1.0), num_observations, 2
    )


def expected_width(B, sigma, delta, R, sides, C, xi, lam, q) -> float:
    N = 1
    if B > 0:
        rho = (B * C * math.sqrt(q)) ** (-1 / xi)
        for side in sides:
            N *= max(math.ceil(side * math.sqrt(len(sides)) / (2 * rho)), 1)
    # Python's whole numbers have no limit; their logarithm is exact enough.
    return B + sigma / math.sqrt(lam) * math.sqrt(2 * (math.log(4 * R / delta) + math.log(N)))


@pytest.mark.parametrize("xi", [0.5, 1.0])
def test_the_formula(xi: float) -> None:
    for seed in range(30):
        model, B, sigma, delta, t, g = draw(seed)
        R, C = int(uniform(g, 1, 9)), uniform(g, 0.5, 2).item()
        sides = tuple(uniform(g, 0.1, 20, (int(uniform(g, 1, 7)),)).tolist())
        width = widths.FixedDesignNet(B, sigma, delta, R, sides, C, xi)
        lam, q = model.noise_variance.item(), model.num_observations
        expected = expected_width(B, sigma, delta, R, sides, C, xi, lam, q)
        assert_close(float(width(t, model)), expected, **tolerance(torch.float64))
        assert_close(width.offset(t, model), 1 / math.sqrt(q), **tolerance(torch.float64))


def test_it_is_the_fixed_design_width_of_its_net() -> None:
    width = widths.FixedDesignNet(2.0, 0.1, 0.05, 4, (1.3, 0.7), 1.0, 1.0)
    q = 49
    rho = 1 / (2 * 7)
    spacing = 2 * rho / math.sqrt(2)
    N = math.ceil(1.3 / spacing) * math.ceil(0.7 / spacing)
    finite = widths.FixedDesign(2.0, 0.1, 0.05, N, 4)
    assert_close(width(50, model_of(q)), finite(50, model_of(q)))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_functions_move_little_between_points_of_the_net(nu: float) -> None:
    """Every point has a point of the net near enough, and every function of norm B knows it."""
    kernel = MaternKernel(nu=nu, ard_num_dims=2).double()
    kernel.lengthscale = torch.tensor([2.0, 1.0])
    B, q = (0.5 if nu == 0.5 else 2.0), 9
    width = widths.FixedDesignNet.on_box(B, 0.1, 0.1, 3, BOX, kernel)
    counts = [
        max(
            math.ceil(side * math.sqrt(2) / 2 * (B * width.constant * 3) ** (1 / width.exponent)), 1
        )
        for side in width.sides
    ]
    net = torch.tensor(
        list(itertools.product(*(((torch.arange(n) + 0.5) / n).tolist() for n in counts))),
        dtype=torch.float64,
    )
    net = BOX.lower + (BOX.upper - BOX.lower) * net
    X = torch.cat([BOX.sample(200, seed=0), BOX.bounds])
    with torch.no_grad():
        near = kernel(X, net).to_dense().max(dim=-1).values
    # The largest |f(x) - f(z)| over norm B is B sqrt(2 (k(0) - k(x, z))).
    assert (B * (2 * (1 - near)).sqrt()).max() <= 1 / math.sqrt(q) + 1e-12


def test_on_box_measures_sides_in_lengthscales() -> None:
    kernel = ScaleKernel(RBFKernel(ard_num_dims=2)).double()
    kernel.outputscale = 0.25
    kernel.base_kernel.lengthscale = torch.tensor([0.5, 4.0])
    width = widths.FixedDesignNet.on_box(2.0, 0.1, 0.05, 4, BOX, kernel)
    assert width.sides == pytest.approx((5.0, 0.5), rel=1e-6)
    assert (width.constant, width.exponent) == (pytest.approx(0.5), 1.0)
    blind = RBFKernel(active_dims=(1,)).double()
    assert widths.FixedDesignNet.on_box(2.0, 0.1, 0.05, 4, BOX, blind).sides[0] == 0.0


def test_a_function_that_is_zero_needs_no_net() -> None:
    width = widths.FixedDesignNet(0.0, 0.1, 0.05, 4, (1.3, 0.7), 1.0, 0.5)
    assert_close(width(2, model_of(9)), widths.FixedDesign(0.0, 0.1, 0.05, 1, 4)(2, model_of(9)))


def test_astronomical_nets() -> None:
    sides, C = (1e6,) * 200, 1e300
    width = widths.FixedDesignNet(1.0, 0.1, 0.05, 4, sides, C, 0.5)
    log_N = 200 * (math.log(1e6 * math.sqrt(200) / 2) + 2 * math.log(C * 3))
    expected = 1 + math.sqrt(2 * (math.log(4 * 4 / 0.05) + log_N))
    assert float(width(10, model_of(9))) == pytest.approx(expected, rel=1e-12)
    assert math.isfinite(widths.FixedDesignNet(1e300, 0.1, 0.05, 4, sides, C, 0.5)(10, model_of(9)))


def test_a_round_without_observations_counts_as_one() -> None:
    width = widths.FixedDesignNet(1.0, 0.1, 0.05, 4, (1.0, 1.0), 1.0, 1.0)
    assert width.offset(1, model_of(0)) == 1.0
    assert_close(width(1, model_of(0)), width(2, model_of(1)))


def test_it_lies_below_the_rigorous_width() -> None:
    width = widths.FixedDesignNet.on_box(2.0, 0.02, 0.01, 4, BOX, RBFKernel().double())
    rigorous = widths.FixedDesignContinuous(2.0, 0.02, 0.01, 4)
    model = model_of(400, 4e-4)
    assert width(401, model) < rigorous(401, model)
    assert width.offset(401, model) < 0.1 * rigorous.offset(401, model)


def test_batches_composition_and_repr() -> None:
    width = widths.FixedDesignNet(1.0, 0.1, 0.05, 4, (1.0, 2.0), 1.0, 1.0)
    batch = Model(torch.tensor([0.1, 0.2]), torch.tensor([1.0, 1.0]), 5, 2)
    assert width(6, batch).shape == (2,)
    assert widths.Scaled(width, 0.5).offset(6, batch) == pytest.approx(0.5 / math.sqrt(5))
    assert repr(width) == (
        "FixedDesignNet(rkhs_bound=1.0, noise_std=0.1, delta=0.05, num_rounds=4, "
        "sides=(1.0, 2.0), constant=1.0, exponent=1.0)"
    )


def make(B=1.0, sigma=0.1, delta=0.05, R=4, sides=(1.0, 2.0), C=1.0, xi=1.0):
    return widths.FixedDesignNet(B, sigma, delta, R, sides, C, xi)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("rkhs_bound", {"B": -1.0}),
        ("noise_std", {"sigma": 0.0}),
        ("delta", {"delta": 1.0}),
        ("num_rounds", {"R": 0}),
        ("sides", {"sides": ()}),
        ("sides", {"sides": (1.0, -1.0)}),
        ("sides", {"sides": (math.inf,)}),
        ("constant", {"C": 0.0}),
        ("exponent", {"xi": 0.0}),
        ("exponent", {"xi": 1.5}),
    ],
)
def test_impossible_parameters_are_refused(name: str, arguments: dict) -> None:
    with pytest.raises(ValueError, match=f"{name} must"):
        make(**arguments)


def test_kernels_of_unknown_smoothness_are_refused() -> None:
    with pytest.raises(ValueError, match="pass width="):
        widths.FixedDesignNet.on_box(1.0, 0.1, 0.05, 4, BOX, LinearKernel().double())
