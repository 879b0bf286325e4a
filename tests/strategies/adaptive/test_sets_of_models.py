"""How sets of models are checked, and what happens when all of the models are wrong."""

import math
import warnings

import pytest
import torch

from botorch_ext import CandidateModels, algorithms
from botorch_ext.exceptions import BotorchExtWarning, KernelBoundWarning
from tests.strategies.adaptive.model_sessions import (
    NUMBERS,
    make_models,
    matern,
    play_promptly,
    rbf,
    scaled,
    snapshot,
)
from tests.strategies.sessions import LAMBDA, both_domains, box, data, finite, play, script

# Methods that take any set of models.
of_any_models = pytest.mark.parametrize(
    "method", ["he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb"]
)


def build(method, domain, models=None, **changed):
    models = make_models(method) if models is None else models
    return getattr(algorithms, method)(domain, models, **{**NUMBERS, **changed})


@of_any_models
@both_domains
def test_a_kernel_above_1_is_warned_of_once_whatever_the_number_of_models(method, domain):
    large = scaled(matern(0.7), 1.2)
    models = CandidateModels([rbf(0.5), large, rbf(0.9)], LAMBDA)
    with pytest.warns(KernelBoundWarning, match=r"k\(x, x\) <= 1.*got 1.2") as caught:
        strategy = build(method, domain(), models)
    assert len(caught) == 1
    (line,) = strategy.report()["warnings"]
    assert "1.2" in line
    strategy.tell(strategy.ask().id, 0.5)  # a warning, no more
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(method, domain(), CandidateModels([rbf(0.5), scaled(matern(0.7), 1.0)], LAMBDA))


def infinite_at_a_corner(X):
    """Where the first coordinate of the box is lowest and the second highest."""
    corner = torch.stack([box().lower[0], box().upper[1]])
    return 1 / (X - corner).abs().sum(dim=-1)


def test_all_corners_of_a_box_are_looked_at():
    models = CandidateModels(rbf(0.5), LAMBDA, [infinite_at_a_corner], names=["odd one"])
    with pytest.raises(ValueError, match=r"odd one.*finite"):
        build("he_gp_ucb", box(), models)


def test_refused_models_stay_as_they_are():
    models = CandidateModels([rbf(0.5), matern(0.5)], LAMBDA)
    X, Y = data(finite(), 3)
    models.add(X, Y)
    with pytest.raises(ValueError, match="num_initial"):
        build("he_gp_ucb", finite(), models, num_initial=-1)
    strategy = build("he_gp_ucb", finite(), models, initial=data(finite(), 4, seed=3))
    play(strategy, script(12, seed=51))
    assert models.num_observations == 3
    assert models.num_models == 2


def test_the_bayesian_width_of_a_finite_set_needs_no_norm():
    build("he_gp_ucb", finite(), rkhs_bound=None, setting="bayesian").ask()


def test_the_bayesian_width_of_a_box_is_that_of_its_constants():
    strategy = build("he_gp_ucb", box(), setting="bayesian", a=1.5, b=2.0)
    strategy.tell(strategy.ask().id, -0.5)
    # d = 2, r = 3 (the longer side), t = 2, delta / 2 = 0.05.
    grid = 4 * 2 * 2.0 * 3.0 * math.sqrt(math.log(4 * 2 * 1.5 / 0.05))
    expected = math.sqrt(2 * math.log(2 * math.pi**2 * 4 / (3 * 0.05)) + 2 * 2 * math.log(grid))
    assert strategy.ask().info["width"] == pytest.approx(expected, rel=1e-12)


@of_any_models
def test_models_join_later(method):
    strategy = build(method, finite(), make_models("lb_gp_ucb"), width=0.5)
    play_promptly(strategy, 6)
    assert len(strategy.names) > 2


# --- every model is wrong -------------------------------------------------------------------------


@both_domains
@pytest.mark.parametrize("num_models", [1, 3])
def test_the_last_model_stays_with_one_warning_and_a_line_in_the_report(domain, num_models):
    scales = [0.4, 0.8, 1.6][:num_models]
    strategy = build("he_gp_ucb", domain(), CandidateModels(list(map(rbf, scales)), LAMBDA))
    caught = []
    for step in range(5 + num_models):
        trial = strategy.ask()
        with warnings.catch_warnings(record=True) as now:
            warnings.simplefilter("always")
            strategy.tell(trial.id, trial.info["mean"] - 50.0)  # no model allows that
        caught += now
        assert len(strategy.alive) == max(num_models - step - 1, 1)
    assert len(caught) == 1
    assert issubclass(caught[0].category, BotorchExtWarning)
    assert caught[0].filename == __file__
    (line,) = strategy.report()["warnings"]
    assert line == str(caught[0].message)
    assert len(strategy.alive) == 1
    lines = strategy.report()["models"]
    assert [entry["status"] for entry in lines].count("alive") == 1
    (last,) = (entry for entry in lines if entry["status"] == "alive")
    assert last["name"] in line
    assert last["margin"] < 0
    assert last["rejected_at"] is None
    assert len(strategy.rejected) == num_models - 1


@both_domains
def test_a_warning_made_an_error_leaves_the_observation_told(domain):
    # `python -W error`: the state is that after the event, or that before it.
    strategy, twin = (
        build("he_gp_ucb", domain(), CandidateModels(rbf(0.5), LAMBDA)) for _ in range(2)
    )
    for s in (strategy, twin):
        s.ask()
    before = snapshot(strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BotorchExtWarning):
            strategy.tell(0, -50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin.tell(0, -50.0)
    assert snapshot(strategy) in (before, snapshot(twin))


def test_a_late_answer_to_a_rejected_model_rejects_nobody():
    models = CandidateModels(list(map(rbf, [0.4, 0.8])), LAMBDA)
    strategy = build("he_gp_ucb", finite(), models)
    first, second = strategy.ask(2)
    assert first.info["model"] == second.info["model"]
    strategy.tell(second.id, -50.0)
    alive = list(strategy.alive)
    assert len(alive) == 1
    strategy.tell(first.id, -50.0)
    assert strategy.alive == alive
    assert strategy.report()["warnings"] == []
    assert len(strategy.rejected) == 1


def test_code_without_a_name_is_warned_as_well():
    # Such as what `exec` runs.
    models = CandidateModels(scaled(rbf(0.5), 3.0), LAMBDA)
    names = {"build": algorithms.mle_ucb, "domain": finite(), "models": models}
    with pytest.warns(KernelBoundWarning):
        exec("build(domain, models, width=2.0)", names)
