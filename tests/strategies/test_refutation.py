"""Strategies tell when data refute what their width assumes, and it changes no decision."""

import warnings
from itertools import pairwise

import pytest
import torch

import botorch_ext as bx
from botorch_ext.analysis.estimates import rkhs_norm_lower_bound
from botorch_ext.exceptions import ModelRefutedWarning
from botorch_ext.problems import RKHSFunction
from botorch_ext.widths.composed import Assumptions, assumptions_of
from botorch_ext.widths.tight import RIDGES
from botorch_ext.widths.told_data import ToldData
from tests.helpers import drawn, rbf

POINTS = bx.FiniteSet(drawn(60, 1, seed=1))
BOX = bx.Box([[0.0], [1.0]])
KERNEL, RIDGE, SIGMA = rbf(0.3), 0.01, 0.1
TOLD = {"noise_variance": RIDGE, "rkhs_bound": 2.0, "noise_std": SIGMA}
FITTING = bx.CandidateModels.lengthscales(KERNEL, [0.3], RIDGE)


def function(norm, seed=0, domain=POINTS):
    return RKHSFunction.random(domain, KERNEL, norm=norm, seed=seed)


def play(strategy, f, steps, seed=0):
    """Plays and returns the warnings and, at each step, the report after it."""
    noise = torch.Generator().manual_seed(seed)
    reports = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelRefutedWarning)
        for _ in range(steps):
            trial = strategy.ask()
            xi = SIGMA * torch.randn((), generator=noise, dtype=torch.float64)
            strategy.tell(trial, float(f(trial.x.unsqueeze(0))[0] + xi))
            reports.append(strategy.report())
    return [each for each in caught if each.category is ModelRefutedWarning], reports


def told_model(strategy):
    """A model of the told data alone."""
    model = bx.KernelGP(KERNEL, RIDGE)
    model.add(*strategy.evaluated())
    return model


# --- when -----------------------------------------------------------------------------------------


def test_a_norm_of_twice_the_bound_is_refuted_once_and_a_right_one_is_not():
    for seed in range(3):
        wrong = bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD)
        said, reports = play(wrong, function(4.0, seed), 30, seed)
        (warning,) = said
        first = next(report["refuted_at"] for report in reports if report["refuted_at"])
        assert f"was refuted after {first} result" in str(warning.message)
        assert {report["refuted_at"] for report in reports[first - 1 :]} == {first}
        assert all(report["rkhs_norm_lower_bound"] <= 4 for report in reports)
        right = bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD)
        said, reports = play(right, function(2.0, seed), 40, seed)
        assert not said and {report["refuted_at"] for report in reports} == {None}
        assert all(report["rkhs_norm_lower_bound"] <= 2 for report in reports)


def test_it_is_a_function_of_the_history_and_changes_no_decision():
    f = function(4.0)
    strategy, silent = (bx.algorithms.gp_bucb(BOX, KERNEL, **TOLD) for _ in range(2))
    silent._alarm = None
    play(strategy, f, 12)
    play(silent, f, 12)
    asked = ([(t.x.tolist(), t.info) for t in each.history.trials] for each in (strategy, silent))
    assert next(asked) == next(asked)
    again = bx.algorithms.gp_bucb(BOX, KERNEL, **TOLD)
    with pytest.warns(ModelRefutedWarning):
        again.replay(strategy.events)
    assert again.report() == strategy.report()


def test_a_corrected_value_is_as_if_it_had_been_told():
    strategy, right = (bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD) for _ in range(2))
    for value in (9.0, 0.1):
        strategy.tell(strategy.ask(), value)
    assert strategy.report()["refuted_at"] == 1
    strategy.correct(0, 0.1)
    for trial in strategy.history.trials:
        right.attach(trial.x, 0.1)
    for key in ("refuted_at", "rkhs_norm_lower_bound"):
        assert strategy.report()[key] == right.report()[key]
    assert strategy.report()["refuted_at"] is None


@pytest.mark.parametrize("value", [0.3, 0.9])
def test_looks_are_rarer_the_further_the_norm_is_from_its_bound(value):
    strategy = bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD | {"rkhs_bound": 1.0})
    looked = []
    for n in range(1, 200):
        before = strategy._alarm._last
        strategy.attach(POINTS.points[0], value)
        if strategy._alarm._last != before:
            looked.append((n, strategy.report()["rkhs_norm_lower_bound"]))
    assert [n for n, _ in looked[:32]] == list(range(1, 33))
    for (before, bound), (n, _) in pairwise(looked[31:]):
        assert n - 1 < before * (1 + min(max(1 - bound**2, 1 / 16), 1 / 4)) <= n


# --- from which data ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"pending": "ignore"},
        {"pending": "hallucinate"},
        {"pending": "hallucinate", "inflate": True},
        {"pending": "censor", "minimum": -9.0},
        {"pending": "censor", "minimum": -9.0, "timeout": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("domain", [POINTS, BOX], ids=["set", "box"])
def test_only_told_values_enter(domain, options):
    model = bx.KernelGP(KERNEL, RIDGE)
    width = bx.widths.SelfNormalized(9.0, SIGMA, 0.1)
    strategy = bx.OptimisticStrategy(domain, model, width, **options)
    trials = [strategy.ask() for _ in range(4)]
    strategy.tell(trials[3], 1.0)
    strategy.abandon(trials[1])
    strategy.abandon(trials[0], failed=True)
    strategy.tell(trials[2], 0.5)
    strategy.ask()
    found = strategy.report()["rkhs_norm_lower_bound"]
    assert found == pytest.approx(float(rkhs_norm_lower_bound(told_model(strategy), SIGMA)))
    late = strategy.ask()
    for _ in range(3):
        strategy.ask()
    strategy.tell(late, 40.0)
    is_late = "timeout" in options
    assert (strategy.report()["rkhs_norm_lower_bound"] == pytest.approx(found)) == is_late


@pytest.mark.parametrize("minimize", [False, True])
def test_initial_data_and_the_data_of_the_model_enter_without_the_prior_mean(minimize):
    X, y = drawn(6, 1, seed=2), drawn(6, seed=3)
    model = bx.KernelGP(KERNEL, RIDGE, mean=5.0)
    model.add(X[:2], y[:2])
    width = bx.widths.SelfNormalized(9.0, SIGMA, 0.1)
    strategy = bx.OptimisticStrategy(BOX, model, width, initial=(X[2:5], y[2:5]), minimize=minimize)
    strategy.attach(X[5], float(y[5]))
    alone = bx.KernelGP(KERNEL, RIDGE, mean=5.0)
    alone.add(X, y)
    expected = float(rkhs_norm_lower_bound(alone, SIGMA))
    assert strategy.report()["rkhs_norm_lower_bound"] == pytest.approx(expected)
    with pytest.warns(ModelRefutedWarning, match="after 7 results"):
        strategy.attach([0.5], 40.0)
    assert strategy.report()["refuted_at"] == 7


# --- who has it -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gp_ucb", {}),
        ("igp_ucb", {}),
        ("gp_bucb", {}),
        ("gp_ucb_sdf", {"minimum": -3.0}),
        ("stable_opt", {"radius": 0.05}),
        ("phased_uncertainty_sampling", {"horizon": 20}),
        ("bpe", {"horizon": 20}),
        ("certified_bucb", {"horizon": 20}),
    ],
)
def test_methods_with_an_rkhs_bound_test_it(name, options):
    strategy = getattr(bx.algorithms, name)(POINTS, KERNEL, **TOLD, **options)
    assert strategy.report()["refuted_at"] is None
    assert strategy.report()["rkhs_norm_lower_bound"] == 0
    said, reports = play(strategy, function(4.0), 12)
    assert len(said) == 1 and reports[-1]["refuted_at"]
    bound = rkhs_norm_lower_bound(told_model(strategy), SIGMA, strategy._alarm.assumed.delta)
    assert reports[-1]["rkhs_norm_lower_bound"] == pytest.approx(float(bound))


def test_a_misspecification_that_is_told_widens_what_is_allowed():
    f = function(4.0)
    plain = bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD)
    wide = bx.algorithms.ec_gp_ucb(POINTS, KERNEL, **TOLD, misspecification=0.2)
    insured = bx.algorithms.insured_ucb(POINTS, KERNEL, **TOLD)
    reports = [play(each, f, 10)[1][-1] for each in (plain, wide, insured)]
    assert reports[1]["rkhs_norm_lower_bound"] < reports[0]["rkhs_norm_lower_bound"]
    bound = rkhs_norm_lower_bound(told_model(wide), SIGMA, misspecification=0.2)
    assert reports[1]["rkhs_norm_lower_bound"] == pytest.approx(float(bound))
    # The last level is B: little can refute it.
    assert reports[2]["refuted_at"] is None
    expected = [
        level
        for level, eps in enumerate(insured.levels)
        if rkhs_norm_lower_bound(told_model(insured), SIGMA, misspecification=eps) > 2
    ]
    assert reports[2]["refuted_by_norm"] == expected and expected[0] == 0


@pytest.mark.parametrize(
    ("model", "width"),
    [
        (bx.KernelGP(KERNEL, RIDGE), 2.0),
        (bx.KernelGP(KERNEL, RIDGE), bx.widths.SrinivasRKHS(2.0, 0.1)),
        (bx.KernelGP(KERNEL, RIDGE), bx.widths.BayesFinite(60, 0.1)),
        (bx.Fitted(), bx.widths.SelfNormalized(2.0, SIGMA, 0.1)),
        (
            bx.CandidateModels.lengthscales(KERNEL, [0.1, 0.3], RIDGE),
            bx.widths.SelfNormalized(2.0, SIGMA, 0.1),
        ),
    ],
)
def test_nothing_is_said_where_nothing_can_be_tested(model, width):
    strategy = bx.strategies.BoundsStrategy(BOX, model, width, num_initial=2)
    strategy.tell(strategy.ask(), 99.0)
    assert not {"refuted_at", "rkhs_norm_lower_bound"} & strategy.report().keys()


def test_what_widths_assume():
    inner = bx.widths.ChowdhuryGopalan(2.0, 0.1, 0.05)
    nested = bx.widths.Scaled(bx.widths.Enlarged(bx.widths.Scaled(inner, 0.5), 0.3), 2.0)
    assert assumptions_of(inner) == Assumptions(2.0, 0.1, 0.05)
    assert assumptions_of(nested) == Assumptions(2.0, 0.1, 0.05, 0.3)
    assert assumptions_of(bx.widths.Scaled(2.0, 0.5)) is None
    strategy = bx.algorithms.gp_ucb(POINTS, KERNEL, **TOLD, width=nested)
    assert strategy._alarm.assumed == Assumptions(2.0, 0.1, 0.05, 0.3, RIDGES)


# --- several models -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["he_gp_ucb", "he_stable_opt"])
def test_models_are_eliminated_by_their_norms_if_asked(method):
    models = bx.CandidateModels.lengthscales(KERNEL, [1.5, 0.3], RIDGE)
    given = {"noise_std": SIGMA, "rkhs_bound": 2.0}
    given |= {"radius": 0.05} if method == "he_stable_opt" else {}
    make, f = getattr(bx.algorithms, method), function(2.0, seed=3)
    strategies = [make(POINTS, models, **given, alarm=alarm) for alarm in (False, True)]
    plain, alarmed = (play(strategy, f, 12)[1][-1]["models"] for strategy in strategies)
    assert [model["rejected_at"] is None for model in plain] == [True, True]
    assert [model["rejected_at"] is None for model in alarmed] == [False, True]
    rejected_at = alarmed[0]["rejected_at"]
    for num in (rejected_at - 1, rejected_at):
        model = bx.KernelGP(rbf(1.5), RIDGE)
        X, y = strategies[1].evaluated()
        model.add(X[:num], y[:num])
        data = ToldData.of(model)
        assert data.refute(Assumptions(2.0, SIGMA, 0.05)) == (num == rejected_at)
    again = make(POINTS, models, **given, alarm=True)
    again.replay(strategies[1].events)
    assert again.report() == strategies[1].report()


def test_alarms_need_widths_that_can_be_tested():
    given = {"noise_std": SIGMA, "alarm": True}
    for options in ({"setting": "bayesian"}, {"width": 2.0}):
        with pytest.raises(ValueError, match="alarm must be False"):
            bx.algorithms.he_gp_ucb(POINTS, FITTING, **given, **options)
    with pytest.raises(ValueError, match="alarm must be False"):
        bx.strategies.StableStrategy(POINTS, FITTING, 2.0, radius=0.1, alarm=True)
