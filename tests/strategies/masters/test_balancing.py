"""Regret balancing: what changes nothing, the published instance, its events and its report."""

import math

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import Box, FiniteSet, RegretBalancing, algorithms
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.information_gain import max_information_gain
from botorch_ext.strategies import Asked, RandomSearch, Told, Trial
from tests.helpers import devices, pairwise
from tests.oracles.balancing import published_bound
from tests.strategies.masters.balancing_sessions import (
    BOLD,
    GAMMA,
    SIGMA,
    B,
    drive,
    make,
    snapshot,
)
from tests.strategies.sessions import LAMBDA, box, f, finite, kernel, script

# --- what changes nothing -------------------------------------------------------------------------


# In other units the kernel is too small for the rewards.
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.PriorScaleWarning")
@pytest.mark.parametrize("published", [False, True])
def test_the_units_of_the_rewards_change_nothing(published):
    # A power of two, so that rounding is the same.
    def play(scale):
        changed = {"levels": None} if published else {"levels": [scale * e for e in (0.4, 0.05)]}
        strategy = make(
            finite(),
            rkhs_bound=scale * B,
            noise_std=scale * SIGMA,
            reward_range=(-2.5 * scale, 1.5 * scale),
            max_information_gain=0.7 if published else GAMMA,
            **BOLD,
            **changed,
        )
        actions = [(kind, share, scale * noise) for kind, share, noise in script(120, seed=21)]
        drive(strategy, actions, value=lambda x: scale * f(x))
        trials = strategy.history.trials
        return strategy, [(trial.info["base"], trial.info["index"]) for trial in trials]

    (small, plays), (large, same) = play(1.0), play(8.0)
    assert plays == same
    assert small.eliminated == large.eliminated != {}
    assert small.tests == large.tests
    if published:
        assert len(small.bases) == 6  # ceil(1 + 1/2 log2(200 / 0.49))
    for one, other in zip(small.report()["bases"], large.report()["bases"], strict=True):
        for name in ("mean_reward", "bound", "upper", "lower"):
            assert other[name] == 8 * one[name]


def test_the_largest_misspecification_comes_first():
    strategy = make(finite(), levels=torch.tensor([0.1, 0.4, 0.0, 0.2]))
    told = [base.width.misspecification for base in strategy.bases]
    assert told == pytest.approx([0.4, 0.2, 0.1, 0.0])
    assert [bound.misspecification for bound in strategy.bounds] == told
    assert strategy.ask().info["base"] == 0


def test_one_base_is_ec_gp_ucb():
    options = {"rkhs_bound": B, "noise_std": SIGMA, "noise_variance": LAMBDA, "seed": 5}
    alone = algorithms.ec_gp_ucb(finite(), kernel(), misspecification=0.2, **options)
    master = make(finite(), levels=[0.2])
    for strategy in (alone, master):
        drive(strategy, script(60, seed=22))
    for ours, theirs in zip(master.history.trials, alone.history.trials, strict=True):
        assert ours.info["decision"] == theirs.info
        assert torch.equal(ours.x, theirs.x)
    assert master.best()[0].tolist() == alone.best()[0].tolist()
    assert master.active == [0]


# --- the published instance -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "gamma", "count"),
    [
        (1000, 60.0, 1),
        (1000, 20.0, 2),
        (1000, 15.0, 3),
        (1000, 31.7, 1),
        (100, 3.0, 3),
        (4, 1.0, 2),
        (1, 1.0, 1),
    ],
)
def test_the_published_bases(horizon, gamma, count):
    strategy = make(
        finite(),
        levels=None,
        horizon=horizon,
        max_information_gain=gamma,
        reward_range=(-1.0, 3.0),
        c1=0.7,
        c2=1.3,
    )
    assert count == max(1, math.ceil(1 + math.log2(math.sqrt(horizon) / gamma)))
    levels = [4 * 2.0 ** (1 - i) / math.sqrt(gamma) for i in range(1, count + 1)]
    assert [base.width.misspecification for base in strategy.bases] == pytest.approx(levels)
    assert [base.seed for base in strategy.bases] == list(range(5, 5 + count))
    for eps, bound in zip(levels, strategy.bounds, strict=True):
        for n in (0, 1, 7, 500, 40_000):
            expected = published_bound(n, eps, B, gamma, 0.7, 1.3, -1.0, 3.0)
            assert bound(n) == pytest.approx(expected, rel=1e-12)


def test_the_first_published_bound_is_the_trivial_one():
    # eps_1 sqrt(gamma) n is n.
    strategy = make(finite(), levels=None, max_information_gain=2.0, horizon=50)
    assert len(strategy.bases) > 1
    assert [strategy.bounds[0](n) for n in range(40)] == pytest.approx([4 * n for n in range(40)])


@pytest.mark.parametrize("domain", [finite(), box()], ids=["finite", "box"])
def test_gamma_is_the_upper_end_of_the_greedy_gain(domain):
    strategy = make(domain, max_information_gain=None, horizon=40)
    gamma = strategy.bounds[0].max_information_gain
    upper = max_information_gain(kernel(), domain, 40, LAMBDA, upper=True)
    assert gamma == pytest.approx(upper, rel=1e-12 if isinstance(domain, FiniteSet) else 5e-3)


CONTEXTS = {
    "finite": FiniteSet([[0.2], [0.9], [1.7]]),
    "box": Box([[0.2], [1.7]]),
}


@pytest.mark.parametrize("domain", [finite(), box()], ids=["finite", "box"])
@pytest.mark.parametrize("contexts", CONTEXTS)
def test_gamma_of_actions_and_contexts_is_that_of_the_pairs(domain, contexts):
    joint_kernel = RBFKernel(ard_num_dims=3).double()
    joint_kernel.lengthscale = torch.tensor([0.9, 0.5, 0.8], dtype=torch.float64)
    options = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA}
    strategy = algorithms.regret_balancing(
        domain, joint_kernel, horizon=30, context_domain=CONTEXTS[contexts], **options
    )
    sides = [domain, CONTEXTS[contexts]]
    grids = [side.points if isinstance(side, FiniteSet) else side.sample(60, 0) for side in sides]
    pairs = torch.stack([torch.cat([a, z]) for a in grids[0] for z in grids[1]])
    upper = max_information_gain(joint_kernel, FiniteSet(pairs), 30, LAMBDA, upper=True)
    gamma = strategy.bounds[0].max_information_gain
    is_finite = isinstance(domain, FiniteSet) and contexts == "finite"
    assert gamma >= upper * (1 - 1e-12)
    assert gamma <= upper * (1 + (1e-12 if is_finite else 0.15))


def test_contexts_reach_the_bases():
    joint_kernel = RBFKernel(ard_num_dims=3).double()
    strategy = algorithms.regret_balancing(
        finite(),
        joint_kernel,
        noise_variance=LAMBDA,
        rkhs_bound=B,
        noise_std=SIGMA,
        horizon=30,
        reward_range=(-2.5, 1.5),
        misspecifications=[0.2, 0.05],
        max_information_gain=GAMMA,
        context_domain=ContextSpace(dim=1),
    )
    for step in range(6):
        trial = strategy.ask(context=[0.3 * step])
        strategy.tell(trial.id, f(trial.x) + 0.1 * step)
    shapes = [base.history.trials[0].point.shape for base in strategy.bases]
    assert shapes == [(3,), (3,)]
    x, mean = strategy.best(context=[0.5])
    assert mean == max(base.best(context=[0.5])[1] for base in strategy.bases)
    assert x.shape == (2,)


@pairwise(make_domain=[finite, box], dtype=[torch.float64, torch.float32], device=devices())
def test_everything_follows_the_domain(make_domain, dtype, device):
    domain = make_domain(dtype=dtype, device=device)
    k = kernel().to(device=device, dtype=dtype)
    options = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "horizon": 20}
    strategy = algorithms.regret_balancing(
        domain, k, misspecifications=[0.1, 0.2], reward_range=(-3.0, 2.0), **options
    )
    for step in range(6):
        trial = strategy.ask(actions=domain.sample(5, step) if step % 2 else None)
        assert (trial.x.dtype, trial.x.device.type) == (dtype, device.type)
        strategy.tell(trial.id, f(trial.x))
    assert strategy.best()[0].device.type == device.type
    assert [base["told"] for base in strategy.report()["bases"]] == [3, 3]


# --- events ---------------------------------------------------------------------------------------


def test_the_report_says_how_every_base_stands():
    strategy = make(finite(), **BOLD)
    drive(strategy, script(200, seed=2))
    report = strategy.report()
    trials, told = strategy.history.trials, strategy.history.values
    assert report["strategy"] == "RegretBalancing"
    assert report["num_told"] == len(told)
    assert report["active"] == strategy.active
    assert report["eliminated"] == {str(base): t for base, t in strategy.eliminated.items()}
    low, high = strategy.reward_range
    for base, own in enumerate(report["bases"]):
        ids = [trial.id for trial in trials if trial.info["base"] == base]
        values = [told[id] for id in ids if id in told]
        assert own["plays"] == len([id for id in ids if id not in strategy.history.abandoned])
        assert own["told"] == len(values)
        assert own["mean_reward"] == pytest.approx(sum(values) / len(values))
        assert own["bound"] == pytest.approx(strategy.bounds[base](own["plays"]))
        test = next(
            t
            for t in reversed(strategy.tests)
            if t.base == base and t.fails == (base in strategy.eliminated)
        )
        assert own["eliminated_at"] == strategy.eliminated.get(base)
        assert own["status"] == ("eliminated" if test.fails else "active")
        if test.count == own["told"]:
            assert own["upper"] == pytest.approx(low + (high - low) * test.upper)
            assert own["lower"] == pytest.approx(low + (high - low) * test.lower)
    fresh = make(finite()).report()["bases"][0]
    assert [fresh[name] for name in ("mean_reward", "upper", "lower")] == [None] * 3


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


def test_a_bound_that_falls_later_is_refused_when_it_is_reached():
    def late(n):
        return 0.0 if n == 1003 else 0.0001 * n

    # Of the bases the first plays once, then the second alone.
    bases = [RandomSearch(box()), RandomSearch(box(), seed=1)]
    strategy = RegretBalancing(bases, [lambda n: float(n), late], reward_range=(-9.0, 9.0))
    strategy.ask(1002)
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
    strategy.abandon(trial.id)  # makes room
    assert strategy.ask().info["base"] == 1


def test_a_recorded_trial_of_no_base_is_refused():
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
    again, message = fresh(), "base in the info of trial 30 must be one of 3, got 3"
    with pytest.raises(ValueError, match=message):
        again.replay([*events, asked(30, 3)])
    assert snapshot(again) == snapshot(fresh())
    again.replay(events)
    with pytest.raises(ValueError, match=message):
        again.replay([asked(30, 3)])
    assert snapshot(again) == before


def asked(id, base):
    info = {"base": base, "decision": {"index": 3}, "index": 3}
    return Asked(Trial(id, finite().points[3], None, info))
