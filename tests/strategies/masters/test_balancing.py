"""Regret balancing against plain loops: every base that plays, every pick, every elimination."""

import math

import pytest
import torch

from botorch_ext import Box, FiniteSet, RegretBalancing, algorithms
from botorch_ext.analysis.information_gain import max_information_gain
from botorch_ext.strategies import RandomSearch, Told
from botorch_ext.testing.states import question
from tests.helpers import rbf
from tests.laws.scenarios import quietly
from tests.oracles.balancing import MasterOracle, published_bound
from tests.strategies.sessions import LAMBDA, box, finite, kernel, play

B, SIGMA, GAMMA = 1.5, 0.1, 6.0
KNOWN = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA}
CENSOR = {"pending": "censor", "minimum": -2.5, "timeout": 3}
# What makes eliminations happen in so few steps.
BOLD = {"c": 0.02, "c1": 0.003, "c2": 0.02}


def make(domain, levels=(0.4, 0.2, 0.1, 0.05), policy="hallucinate", **changed):
    options = {"horizon": 200, "reward_range": (-2.5, 1.5), "max_information_gain": GAMMA}
    options |= {"misspecifications": levels, "seed": 5, **KNOWN}
    options |= CENSOR if policy == "timeout" else {"pending": policy}
    return algorithms.regret_balancing(domain, kernel(), **options | changed)


# The domain, the number of actions, what differs from `make`.
INSTANCES = {
    "late": (finite, 130, BOLD),
    "other constants": (
        finite,
        130,
        {"c": 0.03, "c1": 0.002, "c2": 0.04, "delta": 0.03, "levels": (0.5, 0.0)},
    ),
    "ignored": (finite, 90, {**BOLD, "policy": "ignore"}),
    "censored": (finite, 120, {**BOLD, "policy": "timeout"}),
    "box": (box, 60, {**BOLD, "levels": (0.6, 0.05)}),
    "published constants": (finite, 90, {"levels": (0.3, 0.1)}),
}


@quietly
@pytest.mark.parametrize("name", INSTANCES)
def test_every_decision_is_that_of_plain_loops(name):
    make_domain, num_actions, changed = INSTANCES[name]
    domain = make_domain()
    strategy = make(domain, **changed)
    play(strategy, changed.get("policy", "hallucinate"), None, num_actions, 2 + len(name))
    options = {"levels": (0.4, 0.2, 0.1, 0.05), "policy": "hallucinate", "delta": 0.1, **changed}
    low, high = strategy.reward_range
    constants = {c: options.get(c, 1.0) for c in ("c1", "c2")}

    def bound(eps):
        return lambda n: published_bound(n, eps, B=B, gamma=GAMMA, low=low, high=high, **constants)

    levels = sorted(options["levels"], reverse=True)
    bounds = [bound(eps) for eps in levels]
    master = MasterOracle(bounds, low, high, options["delta"], options.get("c", 1.0))
    master.follow(strategy.events)
    # Each base is EC-GP-UCB: it asks what one that was told the same would ask.
    for number, (eps, base) in enumerate(zip(levels, strategy.bases, strict=True)):
        given = CENSOR if options["policy"] == "timeout" else {"pending": options["policy"]}
        given = {**given, **KNOWN, "delta": options["delta"], "seed": 5 + number}
        twin = algorithms.ec_gp_ucb(domain, kernel(), misspecification=eps, **given)
        twin.replay(base.events)
        assert question(twin, {}) == question(base.clone(), {})
    assert (strategy.eliminated, strategy.active) == (master.eliminated, master.active)
    assert bool(strategy.eliminated) == (name != "published constants")
    # Not only who goes: every number of every test.
    tests = [(t, base, end) for t, e in enumerate(master.ends, 1) for base, end in e.items()]
    for test, (t, base, ends) in zip(strategy.tests, tests, strict=True):
        assert (test.t, test.base) == (t, base)
        assert (test.lower, test.upper) == pytest.approx(ends, rel=1e-8)
    check_report(strategy, master)


def check_report(strategy, master):
    """How every base stands, in units of the rewards."""
    history, (low, high) = strategy.history, strategy.reward_range
    for base, own in enumerate(strategy.report()["bases"]):
        ids = [trial.id for trial in history.trials if trial.info["base"] == base]
        values = [history.values[id] for id in ids if id in history.values]
        assert own["plays"] == len([id for id in ids if id not in history.abandoned])
        assert own["told"] == len(values)
        assert own["bound"] == pytest.approx(strategy.bounds[base](own["plays"]))
        assert own["eliminated_at"] == strategy.eliminated.get(base)
        assert own["status"] == ("eliminated" if base in strategy.eliminated else "active")
        if not values:
            assert [own[name] for name in ("mean_reward", "upper", "lower")] == [None] * 3
            continue
        assert own["mean_reward"] == pytest.approx(sum(values) / len(values))
        last = [ends[base] for ends in master.ends if base in ends][-1]
        if base in strategy.active:
            expected = [low + (high - low) * end for end in last]
            assert [own["lower"], own["upper"]] == pytest.approx(expected)


def test_any_strategies_with_any_bounds():
    # Not capped at the length of the range: that is the master's.
    low, high = -2.5, 1.5
    bounds = [lambda n: 9.0 * n, lambda n: 2.0 * math.sqrt(n), lambda n: 0.3 * n, lambda n: 3 + n]
    bases = [RandomSearch(box(), seed=seed) for seed in range(4)]
    strategy = RegretBalancing(bases, bounds, reward_range=(low, high), delta=0.2, c=0.3)
    oracle = MasterOracle(bounds, low, high, delta=0.2, c=0.3)
    for _ in range(150):
        trial, expected = strategy.ask(), oracle.turn()
        assert trial.info["base"] == expected
        oracle.owner[trial.id] = expected
        value = (low, -1.0, 0.5, high)[expected]  # the ends are allowed
        strategy.tell(trial.id, value)
        oracle.tell(trial.id, value)
        assert strategy.eliminated == oracle.eliminated
    assert set(strategy.eliminated) == {1}


@pytest.mark.parametrize(
    ("horizon", "gamma", "count"),
    [(1000, 60.0, 1), (1000, 20.0, 2), (1000, 15.0, 3), (100, 3.0, 3), (4, 1.0, 2), (1, 1.0, 1)],
)
def test_the_published_bases(horizon, gamma, count):
    numbers = {"horizon": horizon, "max_information_gain": gamma, "c1": 0.7, "c2": 1.3}
    strategy = make(finite(), levels=None, reward_range=(-1.0, 3.0), **numbers)
    levels = [4 * 2.0 ** (1 - i) / math.sqrt(gamma) for i in range(1, count + 1)]
    assert [base.width.misspecification for base in strategy.bases] == pytest.approx(levels)
    assert [base.seed for base in strategy.bases] == list(range(5, 5 + count))
    for eps, bound in zip(levels, strategy.bounds, strict=True):
        for n in (0, 1, 7, 500, 40_000):
            expected = published_bound(n, eps, B, gamma, 0.7, 1.3, -1.0, 3.0)
            assert bound(n) == pytest.approx(expected, rel=1e-12)


CONTEXTS = {"none": None, "set": FiniteSet([[0.2], [0.9], [1.7]]), "box": Box([[0.2], [1.7]])}


@pytest.mark.parametrize("domain", [finite(), box()], ids=["finite", "box"])
@pytest.mark.parametrize("contexts", CONTEXTS)
def test_gamma_is_the_upper_end_of_the_greedy_gain(domain, contexts):
    space, exact = CONTEXTS[contexts], isinstance(domain, FiniteSet) and contexts != "box"
    joint = kernel() if space is None else rbf(0.9, 0.5, 0.8)
    sides = [domain] if space is None else [domain, space]
    grids = [side.points if isinstance(side, FiniteSet) else side.sample(60, 0) for side in sides]
    rows = grids[0]
    if space is not None:
        rows = torch.stack([torch.cat([a, z]) for a in rows for z in grids[1]])
    strategy = algorithms.regret_balancing(domain, joint, horizon=20, context_domain=space, **KNOWN)
    upper = max_information_gain(joint, FiniteSet(rows), 20, LAMBDA, upper=True)
    gamma = strategy.bounds[0].max_information_gain
    assert upper * (1 - 1e-9) <= gamma <= upper * (1 + (1e-9 if exact else 0.15))


@pytest.mark.parametrize("value", [-2.51, 1.5000001])
def test_a_reward_outside_the_range_is_refused_before_anything_changes(value):
    strategy = make(finite(), **BOLD)
    strategy.ask(3)
    strategy.tell(2, 0.2)
    for call in (
        lambda: strategy.tell(0, value),
        lambda: strategy.replay([Told(1, 0.1), Told(0, value)]),
        lambda: strategy.correct(2, value),
    ):
        with pytest.raises(ValueError, match="value must be in reward_range"):
            call()
    assert len(strategy.events) == 4


def test_a_bound_that_falls_is_refused_when_it_is_reached():
    def late(n):
        return 0.0 if n == 1003 else 0.0001 * n

    # Of the bases the first plays once, then the second alone.
    bases = [RandomSearch(box()), RandomSearch(box(), seed=1)]
    strategy = RegretBalancing(bases, [lambda n: float(n), late], reward_range=(-9.0, 9.0))
    strategy.ask(1002)
    with pytest.raises(ValueError, match="bound of base 1 must never decrease"):
        strategy.ask(2)  # the first of them would do
    trial = strategy.ask()
    with pytest.raises(ValueError, match="bound of base 1 must never decrease"):
        strategy.ask()
    assert len(strategy.events) == 1003
    strategy.abandon(trial.id)  # makes room
    assert strategy.ask().info["base"] == 1
