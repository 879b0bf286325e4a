"""What is asked and recommended in a space has the digits that can be set, and records say so."""

import math

import pytest
import torch

import botorch_ext as bx
from botorch_ext import algorithms
from tests.helpers import rbf

NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1, "noise_variance": 0.01}
BALANCING = {"horizon": 40, "misspecifications": [0.1, 0.3], "reward_range": (-3.0, 2.0)}
SPACE = bx.Space(
    dose=bx.Real(1e-4, 1e-1, log=True),
    speed=bx.Real(0.5, 8.0, significant=2),
    heat=bx.Real(0, 1),
    constraints=["heat + speed <= 6.1"],
)
AS_IT_WAS = {"dose": 0.012345678, "speed": 1.2345678, "heat": 0.5}
# The digits after the first one.
DIGITS = {"dose": 2, "speed": 1}
KERNEL = rbf(0.05, 3.0, 0.5)
MODELS = bx.CandidateModels.lengthscales(rbf(1.0, 1.0, 1.0), [0.2, 1.0], 0.01)


METHODS = {
    "random": lambda **more: bx.strategies.RandomSearch(SPACE, **more),
    "integrated_ei": lambda **more: algorithms.integrated_ei(SPACE, bx.Particles(8), **more),
    "credible_ucb": lambda **more: algorithms.credible_ucb(SPACE, bx.Particles(8), **more),
    "gp_bucb": lambda **more: algorithms.gp_bucb(SPACE, KERNEL, **NUMBERS, **more),
    "mle_ucb": lambda **more: algorithms.mle_ucb(SPACE, MODELS, width=2.0, **more),
    "fitted": lambda **more: algorithms.gp_ucb(SPACE, bx.Fitted(), width=2.0, **more),
    "he_gp_ucb": lambda **more: algorithms.he_gp_ucb(
        SPACE, MODELS, rkhs_bound=1.0, noise_std=0.1, **more
    ),
    "thompson_sampling": lambda **more: algorithms.thompson_sampling(SPACE, MODELS, **more),
    "insured_ucb": lambda **more: algorithms.insured_ucb(SPACE, KERNEL, **NUMBERS, **more),
    "regret_balancing": lambda: algorithms.regret_balancing(SPACE, KERNEL, **NUMBERS, **BALANCING),
}

pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.PriorScaleWarning")


def f(params):
    return 10 * params["dose"] + math.cos(params["speed"])


def is_settable(params):
    return all(params[name] == float(f"{params[name]:.{k}e}") for name, k in DIGITS.items())


@pytest.mark.parametrize("method", METHODS)
def test_asked_points_can_be_set_and_replays_ask_the_same(method):
    strategy = METHODS[method]()
    if not strategy.refuses_attached:
        strategy.attach(AS_IT_WAS, 0.1)
        assert strategy.history.trials[0].params == AS_IT_WAS
    for step in range(8):
        trial = strategy.ask()
        assert is_settable(trial.params), trial.params
        assert bool(SPACE.contains(trial.x))
        strategy.tell(trial, f(trial.params))
        if step % 4 == 3:
            again = METHODS[method]()
            again.replay(strategy.events)
            batch = zip(again.ask(2), strategy.clone().ask(2), strict=True)
            assert all(torch.equal(a.x, b.x) and a.info == b.info for a, b in batch)
    if hasattr(strategy, "recommend"):
        assert is_settable(strategy.recommended().params)


@pytest.mark.parametrize("method", ["gp_bucb", "integrated_ei"])
def test_what_is_recorded_of_a_trial_is_said_of_the_point_that_can_be_set(method):
    strategy = METHODS[method](num_initial=8)
    for trial in strategy.ask(8):
        strategy.tell(trial, f(trial.params))
    before = strategy.clone()
    trial = strategy.ask()
    assert is_settable(trial.params)
    mean = float(before.means_at(trial.x.unsqueeze(0)))
    assert trial.info["mean"] == pytest.approx(mean, rel=1e-6, abs=1e-6)


def test_all_points_may_be_asked_among_actions():
    strategy = METHODS["gp_bucb"]()
    x = SPACE.point(AS_IT_WAS)
    assert torch.equal(strategy.ask(actions=x.unsqueeze(0)).x, x)


def test_methods_that_know_plain_boxes_only_refuse_digits():
    space = bx.Space(a=bx.Real(0, 1, significant=2), b=bx.Real(0, 1))
    with pytest.raises(ValueError, match="nothing but bounds"):
        algorithms.bpe(space, rbf(1.0), **NUMBERS, horizon=9)
    all_digits = bx.Space(a=bx.Real(0, 1, significant=17), b=bx.Real(0, 1))
    algorithms.bpe(all_digits, rbf(1.0), **NUMBERS, horizon=9)


def test_many_first_points_near_the_middle_can_be_set():
    space = bx.Space({f"a{i}": bx.Real(1e-3, 1.0, log=True) for i in range(21)})
    strategy = algorithms.integrated_ei(space, bx.Particles(4))
    for trial in strategy.ask(9):
        assert all(value == float(f"{value:.2e}") for value in trial.params.values())
        strategy.tell(trial, sum(trial.params.values()))
    for trial in strategy.ask(2):
        assert all(value == float(f"{value:.2e}") for value in trial.params.values())
