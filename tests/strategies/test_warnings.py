"""Numbers that make little sense beside the domain and the data are warned of, once, and others are
not."""

import math
import warnings

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import MaternKernel, PeriodicKernel, RBFKernel, ScaleKernel
from scipy.stats import chi2

import botorch_ext as bx
from botorch_ext.acquisition import EnlargedUpperConfidenceBound
from botorch_ext.exceptions import (
    BotorchExtWarning,
    EnlargementWarning,
    LengthscaleWarning,
    PriorScaleWarning,
)
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.strategies.prior_warnings import LOOKS, odd_lengthscales, odd_scale

BOX = bx.Box([[2.0, -7.0], [5.0, -6.2]])
GRID = bx.FiniteSet(BOX.sample(40, seed=1))
both = pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])


def matern(*lengthscales, of=MaternKernel):
    kernel = of(ard_num_dims=len(lengthscales)).double()
    kernel.lengthscale = torch.tensor(lengthscales, dtype=torch.float64)
    return kernel


def caught(function):
    """What it returns, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        result = function()
    return result, [each.category for each in got if issubclass(each.category, BotorchExtWarning)]


# --- enlargement ----------------------------------------------------------------------------------


def enlarged(domain, misspecification, **options):
    return bx.algorithms.ec_gp_ucb(
        domain,
        matern(0.9, 0.3),
        noise_variance=0.01,
        width=2.0,
        misspecification=misspecification,
        **options,
    )


@both
@pytest.mark.parametrize("options", [{}, {"pending": "hallucinate", "inflate": True}])
def test_an_enlargement_of_three_widths_is_warned_of_once(domain, options):
    """eps sqrt(t / lambda) against 2: three times it with t = 4 and eps a little over .3."""
    strategy = enlarged(domain, 0.301, **options)
    said = [caught(strategy.ask)[1] for _ in range(6)]
    assert said == [[], [], [], [EnlargementWarning], [], []]
    (message,) = strategy.report()["warnings"]
    assert message.startswith("misspecification adds 6.02 to a width of 2: ")
    again, repeated = enlarged(domain, 0.301, **options), strategy.events
    _, said = caught(lambda: again.replay(repeated))
    assert again.report() == strategy.report()


@both
def test_an_enlargement_of_less_is_not_warned_of(domain):
    strategy = enlarged(domain, 0.299)
    strategy.ask(4)
    assert strategy.report()["warnings"] == []


def test_an_enlargement_inside_a_scaled_width_counts_by_its_share():
    width = bx.widths.Scaled(bx.widths.Enlarged(2.0, 0.301), 0.5)
    strategy = bx.algorithms.gp_ucb(BOX, matern(0.9, 0.3), noise_variance=0.01, width=width)
    assert [caught(strategy.ask)[1] for _ in range(4)] == [[], [], [], [EnlargementWarning]]


def test_an_enlargement_of_fitted_noise_is_warned_of():
    strategy = bx.algorithms.ec_gp_ucb(
        BOX, bx.Fitted(), width=2.0, misspecification=100.0, num_initial=3
    )
    for trial in strategy.ask(3):
        strategy.tell(trial.id, float(trial.x.sum()))
    assert caught(strategy.ask)[1] == [EnlargementWarning]


def test_an_acquisition_function_warns_of_its_enlargement():
    X = BOX.to_unit(BOX.sample(20, seed=0))
    model = SingleTaskGP(X, torch.linspace(-1.6, 1.6, 20)[:, None].double(), outcome_transform=None)

    def make(misspecification):
        return EnlargedUpperConfidenceBound(
            model, 2.0, misspecification, noise_variance=0.01, num_observations=24
        )

    assert caught(lambda: make(0.119))[1] == []  # .119 * 5 / .1 = 5.95
    acqf, said = caught(lambda: make(0.121))
    assert said == [EnlargementWarning]
    assert float(acqf.width) == pytest.approx(8.05)


# --- lengthscales ---------------------------------------------------------------------------------

SIDES = (3.0, 0.8)


@both
@pytest.mark.parametrize("of", [MaternKernel, RBFKernel])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize(
    ("share", "odd"), [(0.9 / 20, True), (1.2 / 20, False), (19.0, False), (23.0, True)]
)
def test_lengthscales_beside_the_sides_of_the_domain(domain, of, column, share, odd):
    scales = [0.5 * side for side in SIDES]
    scales[column] = share * SIDES[column]
    kernel = ScaleKernel(matern(*scales, of=of)).double()
    kernel.outputscale = 0.5

    def make():
        return bx.algorithms.gp_ucb(domain, kernel, noise_variance=0.1, width=2.0)

    strategy, said = caught(make)
    assert said == ([LengthscaleWarning] if odd else [])
    if odd:
        (message,) = strategy.report()["warnings"]
        assert message.startswith(f"lengthscale of column {column} is ")


def test_one_lengthscale_for_all_columns_is_looked_at_in_each():
    kernel = matern(0.1)  # a thirtieth of the first side
    kernel.ard_num_dims = None
    said = odd_lengthscales([kernel], GRID.points)
    assert said is not None and "column 0" in said
    assert odd_lengthscales([matern(0.5)], GRID.points) is None


def test_contexts_and_parts_are_looked_at():
    kernel = ActionContextKernel(matern(0.9, 0.3), matern(0.01), 2)
    _, said = caught(
        lambda: bx.algorithms.cgp_ucb(
            BOX, kernel, noise_variance=0.1, width=2.0, context_domain=bx.Box([[0.0], [1.0]])
        )
    )
    assert said == [LengthscaleWarning]
    # Of these nobody knows how far they range.
    _, said = caught(lambda: bx.algorithms.cgp_ucb(BOX, kernel, noise_variance=0.1, width=2.0))
    assert said == []


def test_periods_columns_without_extent_and_sets_of_which_one_is_sensible():
    periodic = PeriodicKernel().double()
    periodic.lengthscale = 1000.0
    assert odd_lengthscales([periodic], GRID.points) is None
    flat = GRID.points.clone()
    flat[:, 1] = 4.0
    assert odd_lengthscales([matern(0.9, 1e-9)], flat) is None
    for scales, odd in (([0.001, 0.3, 90.0], False), ([0.001, 0.0003, 90.0], True)):
        models = bx.CandidateModels.lengthscales(RBFKernel().double(), scales, 0.1)
        _, said = caught(lambda m=models: bx.algorithms.mle_ucb(BOX, m, noise_std=0.1, width=2.0))
        assert said == ([LengthscaleWarning] if odd else [])


# --- the scale of the prior -----------------------------------------------------------------------


def told(values, noise_variance=0.01, **options):
    """A study of so many Sobol points, and the warnings of each telling."""
    strategy = bx.algorithms.gp_ucb(
        BOX,
        matern(0.9, 0.3),
        noise_variance=noise_variance,
        width=2.0,
        num_initial=len(values),
        **options,
    )
    said = []
    for trial, value in zip(strategy.ask(len(values)), values, strict=True):
        said.append(caught(lambda t=trial, v=value: strategy.tell(t.id, v))[1])
    return strategy, said


def wave(scale, shift=0.0, num=20):
    return [shift + scale * math.sin(7.0 * i) for i in range(num)]


@pytest.mark.parametrize(
    ("values", "odd"),
    [
        (wave(1.0), False),
        (wave(0.2), False),
        (wave(2.5), False),
        (wave(9.0), True),
        (wave(0.01), True),
        (wave(1.0, 30.0), True),
    ],
)
def test_the_scale_of_a_prior_beside_the_data(values, odd):
    strategy, said = told(values)
    expected = [[]] * 20
    if odd:
        expected[7] = [PriorScaleWarning]
    assert said == expected
    assert len(strategy.report()["warnings"]) == odd


def test_a_mean_and_an_outputscale_mend_it():
    _, said = told(wave(1.0, 30.0), mean=lambda X: X.new_full(X.shape[:-1], 30.0))
    assert said == [[]] * 20


def test_misspecified_data_and_large_ridges_are_no_contradiction_of_scale():
    # Predictions fail by many of their standard deviations; values stay near the prior.
    _, said = told([1.5 * (-1) ** i for i in range(20)], noise_variance=1e-4)
    assert said == [[]] * 20
    _, said = told(wave(0.3), noise_variance=1.0)
    assert said == [[]] * 20


def test_false_alarms_are_as_rare_as_stated():
    """n times the mean square of residuals is chi-squared with n degrees."""
    alarms = sum(chi2.sf(9.0 * n, n) + chi2.cdf(0.01 * n, n) for n in LOOKS)
    assert alarms < 1e-6
    g, model = torch.Generator().manual_seed(0), bx.KernelGP(matern(0.9, 0.3), 0.05)
    for n in (8, 64):
        X = BOX.sample(n, seed=n)
        K = model.kernel_function(X, X) + 0.05 * torch.eye(n, dtype=torch.float64)
        draws = torch.linalg.cholesky(K) @ torch.randn(n, 200, generator=g, dtype=torch.float64)
        assert all(odd_scale(model, X, y) is None for y in draws.T)
        assert odd_scale(model, X, 40 * draws[:, 0]) is not None
