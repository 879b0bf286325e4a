"""Regret balancing against plain loops: every base that plays, every pick, every elimination."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import FiniteSet, RegretBalancing
from botorch_ext.strategies import RandomSearch
from tests.helpers import tolerance
from tests.oracles.balancing import MasterOracle, Replay, one_of, published_bound
from tests.strategies.masters.balancing_sessions import (
    GAMMA,
    INSTANCES,
    SIGMA,
    B,
    choices_of,
    drive,
    make,
    some_points,
)
from tests.strategies.sessions import box

TOL = tolerance(torch.float64)
# Those in which somebody goes.
ELIMINATING = set(INSTANCES) - {"published constants"}


def replayed(strategy, domain, varying, changed):
    """The oracle, and what it says of each ask."""
    options = {"levels": (0.4, 0.2, 0.1, 0.05), "policy": "hallucinate", "delta": 0.1, **changed}
    low, high = strategy.reward_range
    constants = {name: options.get(name, 1.0) for name in ("c1", "c2")}

    def bound(eps):
        return lambda n: published_bound(n, eps, B=B, gamma=GAMMA, low=low, high=high, **constants)

    levels = sorted(options["levels"], reverse=True)
    master = MasterOracle(
        [bound(eps) for eps in levels], low, high, options["delta"], options.get("c", 1.0)
    )
    trials, choices = strategy.history.trials, choices_of(domain, varying)
    if isinstance(domain, FiniteSet):
        points = domain.points

        def there(trial):
            return range(len(points)) if not varying else varying["rows"](trial.id).tolist()

    else:
        grid = [domain.sample(400, seed=1)] if not varying else []
        grid = [choices(trial.id) for trial in trials] if varying else grid
        points = torch.cat([torch.stack([trial.x for trial in trials]), *grid])
        size, start = len(some_points(0)), len(trials)

        def there(trial):
            if not varying:
                return range(start, len(points))
            return range(start + size * trial.id, start + size * (trial.id + 1))

    replay = Replay(
        points,
        master,
        levels,
        options["policy"],
        row=lambda trial: one_of(points, trial.x),
        choices=lambda trial: list(there(trial)),
        B=B,
        sigma=SIGMA,
    )
    return master, replay.regrets_of(strategy.events)


@pytest.mark.parametrize("name", INSTANCES)
def test_every_decision_is_that_of_plain_loops(name):
    make_domain, actions, varying, changed = INSTANCES[name]
    domain = make_domain()
    strategy = make(domain, **changed)
    drive(strategy, actions, choices_of(domain, varying))
    master, decisions = replayed(strategy, domain, varying, changed)
    for turn, played, missing in decisions:
        assert turn == played
        assert missing <= 1e-7
    assert strategy.eliminated == master.eliminated
    assert strategy.active == master.active
    assert bool(strategy.eliminated) == (name in ELIMINATING)
    if "prompt" not in name and name != "box":
        assert strategy.history.abandoned
        told = list(strategy.history.values)
        assert told != sorted(told)
    # Not only who goes: every number of every test.
    tests = iter(strategy.tests)
    for ends in master.ends:
        for base, (lower, upper) in ends.items():
            test = next(tests)
            assert test.base == base
            assert_close(
                *(
                    torch.tensor(pair, dtype=torch.float64)
                    for pair in ((test.lower, test.upper), (lower, upper))
                ),
                **TOL,
            )
    assert next(tests, None) is None


def test_any_strategies_with_any_bounds():
    # Not capped at the length of the range: that is the master's.
    low, high = -2.5, 1.5
    bounds = [lambda n: 9.0 * n, lambda n: 2.0 * math.sqrt(n), lambda n: 0.3 * n, lambda n: 3 + n]
    bases = [RandomSearch(box(), seed=seed) for seed in range(4)]
    strategy = RegretBalancing(bases, bounds, reward_range=(low, high), delta=0.2, c=0.3)
    oracle = MasterOracle(bounds, low, high, delta=0.2, c=0.3)
    for _ in range(150):
        expected = oracle.turn()
        trial = strategy.ask()
        assert trial.info["base"] == expected
        oracle.owner[trial.id] = expected
        value = (low, -1.0, 0.5, high)[expected]
        strategy.tell(trial.id, value)
        oracle.tell(trial.id, value)
        assert strategy.eliminated == oracle.eliminated
    assert set(strategy.eliminated) == {1}
    for test in strategy.tests:
        lower, upper = oracle.ends[test.t - 1][test.base]
        assert (test.lower, test.upper) == pytest.approx((lower, upper), rel=1e-12)
