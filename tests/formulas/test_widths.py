"""Every width against its formula written out, with the constants of the papers."""

import itertools
import math
from dataclasses import dataclass, replace

import pytest
import torch
from gpytorch.kernels import LinearKernel, ScaleKernel
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from botorch_ext import Box, widths
from botorch_ext.widths import as_width, enlarged, with_delta
from botorch_ext.widths.base import as_widths
from botorch_ext.widths.composed import share_of_enlargement
from tests.formulas.letters import Numbers, drawn_numbers
from tests.helpers import drawn, matern, rbf


@dataclass
class Model:
    """What a width reads of a model."""

    noise_variance: Tensor
    gain: Tensor
    num_observations: int
    dim: int = 2
    candidates: Tensor | None = None

    def information_gain(self) -> Tensor:
        return self.gain


def model_of(x: Numbers) -> Model:
    lam, gain = (torch.tensor(value, dtype=torch.float64) for value in (x.lam, x.gain))
    return Model(lam, gain, x.n, x.d, torch.zeros(x.N, x.d))


def known(x: Numbers) -> tuple[float, float, float]:
    return x.B, x.sigma, x.delta


numbers = drawn_numbers(B=st.just(0.0) | st.floats(0.001, 5), N=st.integers(1, 5000))
ONE = Numbers(sigma=0.1, delta=0.1, lam=0.02, gain=3.0, n=6, d=2, N=9, R=2)


def continuous(x: Numbers, c: float, largest: float) -> tuple[float, float]:
    share = x.delta / (4 * x.R)
    C = max(x.sigma, largest) * math.sqrt(x.n / x.lam) * math.sqrt(2 * math.log(4 * x.n / share))
    Gamma = c * (x.B + C) ** x.d * float(x.n) ** x.d
    width = x.B + x.noise * math.sqrt(2 * math.log(2 * Gamma / share))
    return width, 2 / x.n + width * 2 / math.sqrt(x.n)


def mixed(x: Numbers, width: float) -> float:
    """The width B + r as sqrt(B^2 + r^2)."""
    return math.hypot(x.B, width - x.B)


def net(x: Numbers, sides: list[float], C: float, xi: float) -> float:
    N = 1
    if x.B > 0:
        rho = (x.B * C * math.sqrt(x.n)) ** (-1 / xi)
        for side in sides:
            # Up to rounding: B = 5, C = 1.4 and n = 2 give 21 cells for a side of 3.
            N *= max(math.ceil(side * math.sqrt(len(sides)) / (2 * rho) * (1 - 1e-12)), 1)
    return x.fixed_design(4 * x.R * N)


# name: the width, its value, and its offset where it is not zero.
WIDTHS = {
    "constant": lambda x: (widths.Constant(x.B), x.B),
    "self normalized": lambda x: (widths.SelfNormalized(*known(x)), x.self_normalized(x.delta)),
    "chowdhury": lambda x: (
        widths.ChowdhuryGopalan(*known(x)),
        x.chowdhury(x.gain, x.noise, x.delta),
    ),
    "chowdhury, printed": lambda x: (
        widths.ChowdhuryGopalan(*known(x), printed=True),
        x.chowdhury(x.gain, x.sigma, x.delta),
    ),
    "chowdhury, gamma": lambda x: (  # of the observations so far
        widths.ChowdhuryGopalan(*known(x), max_information_gain=lambda n: 3.0 * math.log(n + 1)),
        x.chowdhury(3.0 * math.log(x.n + 1), x.noise, x.delta),
    ),
    "srinivas": lambda x: (  # with one more point
        widths.SrinivasRKHS(x.B, x.delta),
        x.srinivas(x.gain + 0.5 * math.log(1 + 1 / x.lam), x.t),
    ),
    "srinivas, gamma": lambda x: (
        widths.SrinivasRKHS(x.B, x.delta, max_information_gain=lambda n: 2.0 * n),
        x.srinivas(2.0 * x.t, x.t),
    ),
    "bayes, finite": lambda x: (widths.BayesFinite(x.N, x.delta), x.bayes_finite(x.t, x.delta)),
    "bayes, continuous": lambda x: (
        widths.BayesContinuous(x.d, 1.3, 0.9, 2.5, x.delta),
        x.bayes_continuous(x.t, x.delta, 1.3, 0.9, 2.5),
    ),
    "fixed design": lambda x: (
        widths.FixedDesign(*known(x), x.N, x.R),
        x.fixed_design(4 * x.R * x.N),
    ),
    "anytime": lambda x: (
        widths.AnytimeFixedDesign(*known(x)),
        x.fixed_design(x.N * math.pi**2 * x.t**2 / 3),
    ),
    "continuous": lambda x: (
        widths.FixedDesignContinuous(*known(x), x.R),
        *continuous(x, 1.0, 1.0),
    ),
    "continuous, options": lambda x: (
        widths.FixedDesignContinuous(*known(x), x.R, 1.7, max_kernel=0.4),
        *continuous(x, 1.7, 0.4),
    ),
    "net": lambda x: (
        widths.FixedDesignNet(*known(x), x.R, (x.factor, 3.0), 1.4, 1.0),
        net(x, [x.factor, 3.0], 1.4, 1.0),
        1 / math.sqrt(x.n),
    ),
    "net, rough": lambda x: (
        widths.FixedDesignNet(*known(x), x.R, (x.factor, 0.0, 9.0), 0.8, 0.5),
        net(x, [x.factor, 0.0, 9.0], 0.8, 0.5),
        1 / math.sqrt(x.n),
    ),
    "fixed design, mixture": lambda x: (
        widths.FixedDesignMixture(*known(x), x.N, x.R),
        mixed(x, x.fixed_design(4 * x.R * x.N)),
    ),
    "ladder": lambda x: (
        widths.FixedDesignLadder(*known(x), x.N, x.R, (1, 9)),
        mixed(x, x.fixed_design(4 * x.R * x.N)),
    ),
    "anytime, mixture": lambda x: (
        widths.AnytimeFixedDesignMixture(*known(x)),
        mixed(x, x.fixed_design(x.N * math.pi**2 * x.t**2 / 3)),
    ),
    "continuous, mixture": lambda x: (
        widths.FixedDesignContinuousMixture(*known(x), x.R),
        mixed(x, continuous(x, 1.0, 1.0)[0]),
        2 / x.n + mixed(x, continuous(x, 1.0, 1.0)[0]) * 2 / math.sqrt(x.n),
    ),
    "net, mixture": lambda x: (
        widths.FixedDesignNetMixture(*known(x), x.R, (x.factor, 3.0), 1.4, 1.0),
        mixed(x, net(x, [x.factor, 3.0], 1.4, 1.0)),
        1 / math.sqrt(x.n),
    ),
    "enlarged and scaled": lambda x: (
        widths.Scaled(widths.Enlarged(widths.SelfNormalized(*known(x)), x.eps), x.factor),
        x.factor * (x.self_normalized(x.delta) + x.eps * math.sqrt(x.t) / math.sqrt(x.lam)),
    ),
    "with an offset": lambda x: (
        widths.Scaled(widths.Enlarged(widths.FixedDesignContinuous(*known(x), x.R), x.eps), 0.5),
        0.5 * (continuous(x, 1.0, 1.0)[0] + x.eps * math.sqrt(x.t / x.lam)),
        0.5 * continuous(x, 1.0, 1.0)[1],
    ),
}


@pytest.mark.parametrize("name", WIDTHS)
@given(x=numbers)
def test_a_width_is_its_formula(name, x):
    width, value, offset = (*WIDTHS[name](x), 0.0)[:3]
    assert float(width(x.t, model_of(x))) == pytest.approx(value, rel=1e-9)
    assert float(width.offset(x.t, model_of(x))) == pytest.approx(offset, rel=1e-9)


@pytest.mark.parametrize("name", WIDTHS)
def test_each_model_of_a_batch_has_its_own_width(name):
    width, *_ = WIDTHS[name](ONE)
    lam, gain = drawn(4, low=0.01), drawn(4, seed=1, high=9.0)
    batch = replace(model_of(ONE), noise_variance=lam, gain=gain)
    for of in (width, width.offset):
        values = torch.as_tensor(of(7, batch), dtype=torch.float64).expand(4)
        for i in range(4):
            own = replace(model_of(ONE), noise_variance=lam[i], gain=gain[i])
            assert float(values[i]) == pytest.approx(float(of(7, own)), rel=1e-12)


def test_a_round_without_observations_counts_as_one():
    x = replace(ONE, n=1)
    empty = replace(model_of(x), num_observations=0)
    for name in ("net", "continuous"):
        width, value, offset = (*WIDTHS[name](x), 0.0)[:3]
        assert float(width(1, empty)) == pytest.approx(value, rel=1e-12)
        assert float(width.offset(1, empty)) == pytest.approx(offset, rel=1e-12)


def test_a_grid_of_less_than_one_point_has_one():
    width = widths.BayesContinuous(2, 1.0, 1e-9, 1.0, 0.1)
    assert width(3, None) == pytest.approx(math.sqrt(2 * math.log(2 * math.pi**2 * 9 / 0.3)))


# --- nets of boxes --------------------------------------------------------------------------------

BOX = Box([[3.0, -2.0], [5.5, 0.0]])


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_functions_move_by_little_from_the_net(nu):
    kernel = rbf(2.0, 1.0) if nu == math.inf else matern(2.0, 1.0, nu=nu)
    B, q = (0.5 if nu == 0.5 else 2.0), 9
    width = widths.FixedDesignNet.on_box(B, 0.1, 0.1, 3, BOX, kernel)
    assert width.sides == pytest.approx((1.25, 2.0))
    expected = {0.5: math.sqrt(2), 1.5: math.sqrt(3), 2.5: math.sqrt(5 / 3), math.inf: 1.0}
    assert width.constant == pytest.approx(expected[nu])
    assert width.exponent == (0.5 if nu == 0.5 else 1.0)
    rate = (B * width.constant * 3) ** (1 / width.exponent)
    counts = [max(math.ceil(side * math.sqrt(2) / 2 * rate), 1) for side in width.sides]
    places = (((torch.arange(n) + 0.5) / n).tolist() for n in counts)
    net = torch.tensor(list(itertools.product(*places)), dtype=torch.float64)
    X = torch.cat([BOX.sample(200, seed=0), BOX.bounds])
    with torch.no_grad():
        near = kernel(X, BOX.lower + (BOX.upper - BOX.lower) * net).to_dense().amax(dim=-1)
    # The largest |f(x) - f(z)| of norm B is B sqrt(2 (k(0) - k(x, z))).
    assert (B * (2 * (1 - near)).sqrt()).max() <= 1 / math.sqrt(q) + 1e-12


def test_a_net_has_no_sides_across_columns_that_the_kernel_does_not_see():
    kernel = ScaleKernel(rbf(0.5, active_dims=(1,))).double()
    kernel.outputscale = 0.25
    width = widths.FixedDesignNet.on_box(2.0, 0.1, 0.05, 4, BOX, kernel)
    assert (width.sides[0], width.constant) == (0.0, pytest.approx(0.5))
    with pytest.raises(ValueError, match="kernel"):
        widths.FixedDesignNet.on_box(1.0, 0.1, 0.05, 4, BOX, LinearKernel().double())


def test_nets_with_more_points_than_a_float_can_count():
    width = widths.FixedDesignNet(1.0, 0.1, 0.05, 4, (1e6,) * 200, 1e300, 0.5)
    log_N = 200 * (math.log(1e6 * math.sqrt(200) / 2) + 2 * math.log(1e300 * 3))
    model = Model(torch.tensor(0.01, dtype=torch.float64), torch.tensor(1.0), 9)
    expected = 1 + math.sqrt(2 * (math.log(16 / 0.05) + log_N))
    assert float(width(10, model)) == pytest.approx(expected, rel=1e-12)


# --- widths of widths -----------------------------------------------------------------------------


def test_widths_are_read_changed_and_compared():
    inner = widths.SelfNormalized(2.0, 0.1, 0.05)
    width = widths.Scaled(widths.Enlarged(inner, 0.1), 0.5)
    assert as_width(2.0) == widths.Constant(2.0) and as_width(width) is width
    assert as_widths([1.0, width]) == [widths.Constant(1.0), width]
    assert as_widths(torch.tensor([1.0, 2.0])) == [widths.Constant(1.0), widths.Constant(2.0)]
    assert as_widths(3.0) == widths.Constant(3.0)
    halved = widths.Scaled(widths.Enlarged(widths.SelfNormalized(2.0, 0.1, 0.2), 0.1), 0.5)
    assert with_delta(width, 0.2) == halved
    assert with_delta(widths.Constant(1.0), 0.2) == widths.Constant(1.0)
    assert enlarged(inner, 0.0) is inner
    assert enlarged(inner, 0.1) == widths.Enlarged(inner, 0.1)
    assert enlarged(width, 0.1) is width
    with pytest.raises(ValueError, match="width must be enlarged by the misspecification"):
        enlarged(width, 0.2)
    twice = widths.Enlarged(width, 0.3)
    expected = (0.3 + 0.5 * 0.1) * math.sqrt(7 / 0.02)
    assert share_of_enlargement(twice, 7, 0.02) == pytest.approx(expected)
    assert share_of_enlargement(inner, 7, 0.02) == 0
    assert repr(width) == (
        "Scaled(width=Enlarged(width=SelfNormalized(rkhs_bound=2.0, noise_std=0.1, delta=0.05), "
        "misspecification=0.1), factor=0.5)"
    )


def test_a_union_over_candidates_needs_candidates():
    model = Model(torch.tensor(0.1), torch.tensor(1.0), 3)
    with pytest.raises(ValueError, match="model must have finitely many"):
        widths.AnytimeFixedDesign(1.0, 0.1, 0.1)(3, model)
