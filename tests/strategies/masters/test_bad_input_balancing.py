"""Bad input to regret balancing: an error that names it, before anything has changed."""

import math

import pytest
from gpytorch.kernels import RBFKernel

from botorch_ext import RegretBalancing
from botorch_ext.algorithms import regret_balancing
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.strategies import Asked, CandidateBound, RandomSearch, Told, Trial
from tests.strategies.masters.balancing_sessions import BOLD, drive, make, snapshot
from tests.strategies.sessions import box, finite, script


@pytest.mark.parametrize("value", [-2.51, 1.5000001, 40.0])
def test_a_reward_outside_the_range_is_refused_before_anything_changes(value):
    strategy, twin = make(finite(), **BOLD), make(finite(), **BOLD)
    for s in (strategy, twin):
        drive(s, script(40, seed=31))
    id, before = strategy.pending[0], snapshot(strategy)
    message = rf"value must be in reward_range, from -2.5 to 1.5, got {value} for trial {id}"
    with pytest.raises(ValueError, match=message):
        strategy.tell(id, value)
    assert snapshot(strategy) == before
    with pytest.raises(ValueError, match="value must be in reward_range"):
        strategy.replay([Told(strategy.pending[1], 0.1), Told(id, value)])
    assert snapshot(strategy) == before
    for s in (strategy, twin):
        s.tell(id, 1.5)  # the ends are allowed
        s.ask()
    assert snapshot(strategy) == snapshot(twin)


def linear(n):
    return 0.1 * n


BOUNDS = {
    "falling": (lambda n: 5.0 - n, r"bound of base 1 must never decrease, got 4.0 for n = 1"),
    "falling late": (lambda n: min(n, 500) - (n > 700), "never decrease, got 499.0 for n = 701"),
    "negative": (lambda n: n - 0.5, "bound of base 1 must be non-negative .* n = 0, got -0.5"),
    "infinite": (lambda n: math.inf, "bound of base 1 must be .*finite at n = 0, got inf"),
    "not a number": (lambda n: math.nan if n == 3 else 1.0, "finite at n = 3, got nan"),
    "words": (lambda n: "low", "bound of base 1 must be one number, got 'low' for n = 0"),
    "no function": (3.0, "bounds must be callables, got 3.0 at 1"),
}


@pytest.mark.parametrize("case", BOUNDS)
def test_impossible_candidate_bounds_are_refused(case):
    bound, message = BOUNDS[case]
    with pytest.raises(ValueError, match=message):
        RegretBalancing([RandomSearch(finite()), RandomSearch(finite())], [linear, bound])


def test_a_bound_that_falls_later_is_refused_when_it_is_reached():
    def late(n):
        return 0.0 if n == 1003 else 0.0001 * n

    # Of the bases the first plays once, then the second alone.
    bases = [RandomSearch(box()), RandomSearch(box(), seed=1)]
    strategy = RegretBalancing(bases, [lambda n: float(n), late], reward_range=(-9.0, 9.0))
    strategy.ask(1002)
    events = strategy.events
    with pytest.raises(ValueError, match="bound of base 1 must never decrease"):
        strategy.ask(2)  # the first of them would do
    assert len(strategy.events) == 1002
    assert [base.history.trials[-1].id for base in strategy.bases] == [0, 1000]
    trial = strategy.ask()
    assert trial.info["base"] == 1
    before = snapshot(strategy)
    message = "bound of base 1 must never decrease, got 0.0 for n = 1003 after 0.1002"
    for batch in (None, 5):
        with pytest.raises(ValueError, match=message):
            strategy.ask(batch)
        assert snapshot(strategy) == before
    again = RegretBalancing(bases, [lambda n: float(n), late], reward_range=(-9.0, 9.0))
    again.replay([*events, Asked(trial)])
    beyond = Asked(Trial(1003, trial.x, None, {"base": 1, "decision": {}}))
    with pytest.raises(ValueError, match=message):
        again.replay([beyond])
    assert snapshot(again) == before
    strategy.abandon(trial.id)  # makes room
    assert strategy.ask().info["base"] == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reward_range": (1.0, 1.0)}, r"reward_range must be finite with low < high, got \(1.0"),
        ({"reward_range": (0.0, math.inf)}, "reward_range must be finite with low < high"),
        ({"reward_range": (math.nan, 1.0)}, "reward_range must be finite with low < high"),
        ({"reward_range": 1.0}, r"reward_range must be a pair \(low, high\), got 1.0"),
        ({"reward_range": (0.0, 1.0, 2.0)}, "reward_range must be a pair"),
        ({"reward_range": ("0", 1.0)}, "reward_range must be one number, got '0'"),
        ({"delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ({"delta": 1.0}, r"delta must be in \(0, 1\), got 1.0"),
        ({"c": -0.1}, "c must be non-negative and finite, got -0.1"),
        ({"c": math.nan}, "c must be non-negative and finite, got nan"),
        ({"c": None}, "c must be one number, got None"),
        ({"c1": -1.0}, "c1 must be non-negative and finite, got -1.0"),
        ({"c2": math.inf}, "c2 must be non-negative and finite, got inf"),
        ({"rkhs_bound": -1.0}, "rkhs_bound must be non-negative and finite, got -1.0"),
        ({"rkhs_bound": None}, "rkhs_bound must be one number, got None"),
        ({"noise_std": 0.0}, "noise_std must be positive and finite, got 0.0"),
        ({"noise_variance": 0.0}, "noise_variance must be positive and finite, got 0.0"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizon": 10.5}, "horizon must be a whole number, got 10.5"),
        ({"max_information_gain": 0.0}, "max_information_gain must be positive and finite, got 0"),
        ({"max_information_gain": "5"}, "max_information_gain must be one number, got '5'"),
        ({"misspecifications": []}, "misspecifications must hold at least one, got none"),
        ({"misspecifications": [0.1, -0.1]}, "misspecifications must be non-negative .*got -0.1"),
        ({"misspecifications": [0.1, math.nan]}, "misspecifications must be .*got nan"),
        ({"misspecifications": 0.1}, "misspecifications must be a sequence, got 0.1"),
        ({"misspecifications": "0.1"}, "misspecifications must be a sequence, got '0.1'"),
        ({"seed": 0.5}, "seed must be a whole number, got 0.5"),
        ({"pending": "wait"}, "pending must be .*got 'wait'"),
        (
            {"context_domain": 2, "max_information_gain": None},
            "max_information_gain must be given where context_domain is no Box or FiniteSet",
        ),
    ],
)
def test_impossible_arguments_are_named(changed, message):
    with pytest.raises(ValueError, match=message):
        make(finite(), **changed)


def test_unknown_keywords_are_refused():
    with pytest.raises(TypeError, match="unexpected keyword arguments: noise_sd"):
        make(finite(), noise_sd=0.1)


def test_as_many_bounds_as_bases():
    for bounds in ([], [linear], [linear] * 3, linear):
        with pytest.raises(ValueError, match="bounds must be one for each of 2 bases, got"):
            RegretBalancing([RandomSearch(box()), RandomSearch(box())], bounds)


def test_a_recorded_trial_of_the_wrong_base_is_refused():
    def fresh():
        bases = [RandomSearch(finite(), seed=seed) for seed in range(3)]
        bounds = [linear, linear, lambda n: 0.5 * linear(n)]
        return RegretBalancing(bases, bounds, reward_range=(0.0, 1.0), c=0.1)

    strategy = fresh()
    for _ in range(30):
        trial = strategy.ask()
        strategy.tell(trial.id, 1.0 if trial.info["base"] else 0.0)
    assert strategy.eliminated.keys() == {0}
    events, before = strategy.events, snapshot(strategy)
    turn = strategy.ask().info["base"]
    for base, message in [
        (0, r"base of trial 30 must be active, one of \[1, 2\], got 0"),
        (3 - turn, f"base of trial 30 must be {turn}, whose regret bound is least, got {3 - turn}"),
        (3, "base in the info of trial 30 must be one of 3, got 3"),
    ]:
        again = fresh()
        with pytest.raises(ValueError, match=message):
            again.replay([*events, asked(30, base)])
        assert snapshot(again) == snapshot(fresh())
        again.replay(events)
        with pytest.raises(ValueError, match=message):
            again.replay([asked(30, base)])
        assert snapshot(again) == before


def asked(id, base):
    info = {"base": base, "decision": {"index": 3}, "index": 3}
    return Asked(Trial(id, finite().points[3], None, info))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rkhs_bound": -0.1}, "rkhs_bound must be non-negative and finite, got -0.1"),
        ({"misspecification": math.nan}, "misspecification must be non-negative .*got nan"),
        ({"max_information_gain": 0.0}, "max_information_gain must be positive .*got 0.0"),
        ({"scale": 0.0}, "scale must be positive and finite, got 0.0"),
        ({"c1": -1.0}, "c1 must be non-negative and finite, got -1.0"),
        ({"c2": math.inf}, "c2 must be non-negative and finite, got inf"),
    ],
)
def test_impossible_numbers_of_a_candidate_bound(changed, message):
    numbers = {"rkhs_bound": 1.0, "misspecification": 0.1, "max_information_gain": 3.0}
    with pytest.raises(ValueError, match=message):
        CandidateBound(**{**numbers, **changed})


def test_a_joint_kernel_needs_a_context_domain():
    kernel = ActionContextKernel(RBFKernel(), RBFKernel(), 2)
    numbers = {"noise_variance": 0.01, "rkhs_bound": 1.0, "noise_std": 0.1, "horizon": 10}
    with pytest.raises(
        ValueError, match="context_domain must be given with an ActionContextKernel"
    ):
        regret_balancing(finite(), kernel, **numbers)
