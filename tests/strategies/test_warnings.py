"""Numbers that make little sense beside the domain and the data are warned of, once, and others are
not."""

import math
import warnings

import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
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
from tests.helpers import matern, rbf
from tests.strategies.sessions import periodic, scaled

BOX = bx.Box([[2.0, -7.0], [5.0, -6.2]])
GRID = bx.FiniteSet(BOX.sample(40, seed=1))
both = pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "set"])
KNOWN = {"noise_variance": 0.01, "width": 2.0}


def caught(function):
    """What it returns, and the categories of its warnings."""
    with warnings.catch_warnings(record=True) as got:
        warnings.simplefilter("always")
        result = function()
    return result, [each.category for each in got if issubclass(each.category, BotorchExtWarning)]


def warns_of(function):
    return caught(function)[1]


def enlarged(domain, misspecification, **options):
    kernel = matern(0.9, 0.3)
    options = {**KNOWN, "misspecification": misspecification, **options}
    return bx.algorithms.ec_gp_ucb(domain, kernel, **options)


@both
@pytest.mark.parametrize("options", [{}, {"pending": "hallucinate", "inflate": True}])
def test_an_enlargement_of_three_widths_is_warned_of_once(domain, options):
    """eps sqrt(t / lambda) against 2: three times it with t = 4 and eps a little over .3."""
    strategy = enlarged(domain, 0.301, **options)
    said = [warns_of(strategy.ask) for _ in range(6)]
    assert said == [[], [], [], [EnlargementWarning], [], []]
    (message,) = strategy.report()["warnings"]
    assert message.startswith("misspecification adds 6.02 to a width of 2: ")
    again, events = enlarged(domain, 0.301, **options), strategy.events
    warns_of(lambda: again.replay(events))
    assert again.report() == strategy.report()
    assert warns_of(lambda: enlarged(domain, 0.299, **options).ask(4)) == []


def test_a_share_of_an_enlargement_and_one_of_fitted_noise_count():
    width = bx.widths.Scaled(bx.widths.Enlarged(2.0, 0.301), 0.5)
    strategy = bx.algorithms.gp_ucb(BOX, matern(0.9, 0.3), noise_variance=0.01, width=width)
    assert [warns_of(strategy.ask) for _ in range(4)] == [[], [], [], [EnlargementWarning]]
    fitted = {"width": 2.0, "misspecification": 100.0, "num_initial": 3}
    strategy = bx.algorithms.ec_gp_ucb(BOX, bx.Fitted(), **fitted)
    for trial in strategy.ask(3):
        strategy.tell(trial.id, float(trial.x.sum()))
    assert warns_of(strategy.ask) == [EnlargementWarning]


def test_an_acquisition_function_warns_of_its_enlargement():
    X = BOX.to_unit(BOX.sample(20, seed=0))
    model = SingleTaskGP(X, torch.linspace(-1.6, 1.6, 20)[:, None].double(), outcome_transform=None)

    def make(misspecification):
        return EnlargedUpperConfidenceBound(
            model, 2.0, misspecification, noise_variance=0.01, num_observations=24
        )

    assert warns_of(lambda: make(0.119)) == []  # .119 * 5 / .1 = 5.95
    acqf, said = caught(lambda: make(0.121))
    assert said == [EnlargementWarning]
    assert float(acqf.width) == pytest.approx(8.05)


@both
@pytest.mark.parametrize("of", [matern, rbf])
@pytest.mark.parametrize("column", [0, 1])
@pytest.mark.parametrize(
    ("share", "odd"), [(0.9 / 20, True), (1.2 / 20, False), (19.0, False), (23.0, True)]
)
def test_lengthscales_beside_the_sides_of_the_domain(domain, of, column, share, odd):
    sides = (3.0, 0.8)
    scales = [0.5 * side for side in sides]
    scales[column] = share * sides[column]
    kernel = scaled(of(*scales), 0.5)
    strategy, said = caught(lambda: bx.algorithms.gp_ucb(domain, kernel, **KNOWN))
    assert said == ([LengthscaleWarning] if odd else [])
    if odd:
        (message,) = strategy.report()["warnings"]
        assert message.startswith(f"lengthscale of column {column} is ")


def test_one_lengthscale_periods_and_columns_without_extent():
    assert "column 0" in odd_lengthscales([matern(0.1)], GRID.points)  # a thirtieth of its side
    assert odd_lengthscales([matern(0.5)], GRID.points) is None
    assert odd_lengthscales([periodic(1.0, 1000.0)], GRID.points) is None
    flat = GRID.points.clone()
    flat[:, 1] = 4.0
    assert odd_lengthscales([matern(0.9, 1e-9)], flat) is None


def test_contexts_are_looked_at_and_models_of_which_none_is_sensible():
    kernel = ActionContextKernel(matern(0.9, 0.3), matern(0.01), 2)
    for domain, said in ((bx.Box([[0.0], [1.0]]), [LengthscaleWarning]), (None, [])):
        options = {**KNOWN, "context_domain": domain}  # None: nobody knows how far they range
        assert warns_of(lambda o=options: bx.algorithms.cgp_ucb(BOX, kernel, **o)) == said
    for scales, said in (([0.001, 0.3, 90.0], []), ([0.001, 3e-4, 90.0], [LengthscaleWarning])):
        models = bx.CandidateModels.lengthscales(RBFKernel().double(), scales, 0.1)
        make = lambda m=models: bx.algorithms.mle_ucb(BOX, m, noise_std=0.1, width=2.0)  # noqa: E731
        assert warns_of(make) == said


def told(values, **options):
    """A study of so many Sobol points, and the warnings of each telling."""
    options = {**KNOWN, "num_initial": len(values), **options}
    strategy = bx.algorithms.gp_ucb(BOX, matern(0.9, 0.3), **options)
    trials = zip(strategy.ask(len(values)), values, strict=True)
    said = [warns_of(lambda t=trial, v=value: strategy.tell(t.id, v)) for trial, value in trials]
    return strategy, said


def wave(scale, shift=0.0):
    return [shift + scale * math.sin(7.0 * i) for i in range(20)]


@pytest.mark.parametrize(
    ("values", "options", "odd"),
    [
        (wave(1.0), {}, False),
        (wave(0.2), {}, False),
        (wave(2.5), {}, False),
        (wave(9.0), {}, True),
        (wave(0.01), {}, True),
        (wave(1.0, 30.0), {}, True),
        (wave(1.0, 30.0), {"mean": lambda X: X.new_full(X.shape[:-1], 30.0)}, False),
        # Predictions fail by many of their standard deviations; values stay near the prior.
        ([1.5 * (-1) ** i for i in range(20)], {"noise_variance": 1e-4}, False),
        (wave(0.3), {"noise_variance": 1.0}, False),
    ],
)
def test_the_scale_of_a_prior_beside_the_data(values, options, odd):
    strategy, said = told(values, **options)
    expected = [[]] * 20
    if odd:
        expected[7] = [PriorScaleWarning]
    assert said == expected
    assert len(strategy.report()["warnings"]) == odd


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
