"""Regret balancing against plain loops: every base that plays, every pick, every elimination."""

import json
import math

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet, RegretBalancing, algorithms
from botorch_ext.contexts import ContextSpace
from botorch_ext.information_gain import max_information_gain
from botorch_ext.strategies import Asked, CandidateBound, RandomSearch, Told, Trial
from tests.helpers import tolerance
from tests.strategies.balancing_oracle import MasterOracle, Replay, one_of, published_bound
from tests.strategies.sessions import LAMBDA, Action, box, f, finite, kernel, plain, script

B, SIGMA, GAMMA = 1.5, 0.1, 6.0
TOL = tolerance(torch.float64)


def make(domain, levels=(0.4, 0.2, 0.1, 0.05), policy="hallucinate", **changed):
    policies = {"censor": {"pending": "censor", "minimum": -2.5}, "timeout": {"timeout": 3}}
    policies["timeout"] |= policies["censor"]
    options = {
        "noise_variance": LAMBDA,
        "rkhs_bound": B,
        "noise_std": SIGMA,
        "horizon": 200,
        "reward_range": (-2.5, 1.5),
        "misspecifications": levels,
        "max_information_gain": GAMMA,
        "seed": 5,
        **policies.get(policy, {"pending": policy}),
        **changed,
    }
    return algorithms.regret_balancing(domain, kernel(), **options)


def drive(strategy, actions: list[Action], choices=lambda step: None, value=f):
    """Plays a script; ``choices`` gives the actions of each ask."""
    for kind, share, noise in actions:
        if kind.startswith("ask") or not strategy.pending:
            for _ in range(3 if kind == "ask three" else 1):
                strategy.ask(actions=choices(len(strategy.history.trials)))
            continue
        id = strategy.pending[int(share * len(strategy.pending))]
        if kind == "tell":
            strategy.tell(id, value(strategy.history.trials[id].x) + noise)
        else:
            strategy.abandon(id)


def prompt(num_steps, seed):
    """A script in which every question is answered before the next."""
    noise = 0.1 * torch.randn(num_steps, generator=torch.Generator().manual_seed(seed))
    return [step for e in noise.tolist() for step in (("ask", 0.0, 0.0), ("tell", 0.0, e))]


def some_rows(step):
    g = torch.Generator().manual_seed(700 + step)
    return torch.randperm(54, generator=g)[:7]


def some_points(step):
    return box().sample(9, seed=300 + step)


# What makes eliminations happen in so few steps.
BOLD = {"c": 0.02, "c1": 0.003, "c2": 0.02}
INSTANCES = {
    "prompt": (finite, prompt(60, seed=1), {}, {**BOLD}),
    "late": (finite, script(130, seed=2), {}, {**BOLD}),
    "late, other constants": (
        finite,
        script(130, seed=3),
        {},
        {"c": 0.03, "c1": 0.002, "c2": 0.04, "delta": 0.03, "levels": (0.5, 0.0)},
    ),
    "late, ignored": (finite, script(110, seed=4), {}, {**BOLD, "policy": "ignore"}),
    "late, censored": (finite, script(120, seed=5), {}, {**BOLD, "policy": "timeout"}),
    "action sets": (finite, script(140, seed=6), {"rows": some_rows}, {**BOLD}),
    "box": (box, prompt(25, seed=7), {}, {**BOLD, "levels": (0.6, 0.05)}),
    "box, late": (box, script(60, seed=8), {}, {**BOLD, "levels": (0.6, 0.05)}),
    "box, action sets": (box, script(90, seed=9), {"points": some_points}, {**BOLD}),
    "published constants": (finite, script(90, seed=10), {}, {"levels": (0.3, 0.1)}),
}
# Those in which somebody goes.
ELIMINATING = set(INSTANCES) - {"published constants"}


def choices_of(domain, varying):
    if "rows" in varying:
        return lambda step: domain.points[varying["rows"](step)]
    return varying.get("points", lambda step: None)


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


def snapshot(strategy):
    return (
        [plain(event) for event in strategy.events],
        strategy.report(),
        strategy.active,
        strategy.tests,
        [[plain(event) for event in base.events] for base in strategy.bases],
    )


# --- what changes nothing -------------------------------------------------------------------------


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


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["late, censored", "action sets", "box, late"])
def test_replayed_events_give_the_same_state_and_the_same_question(name):
    make_domain, actions, varying, changed = INSTANCES[name]
    choices = choices_of(make_domain(), varying)
    played = make(make_domain(), **changed)
    cuts = []
    for done, action in enumerate(actions):
        if done in (9,):
            cuts.append((done, played.events))
        drive(played, [action], choices)
    assert played.eliminated
    replayed = make(make_domain(), **changed)
    replayed.replay(played.events)
    assert snapshot(replayed) == snapshot(played)
    for done, events in cuts:
        resumed = make(make_domain(), **changed)
        resumed.replay(events[:5])
        resumed.replay(events[5:])
        drive(resumed, actions[done:], choices)
        assert snapshot(resumed) == snapshot(played)
    for _ in range(3):
        a, b = (s.ask(actions=choices(len(s.history.trials))) for s in (played, replayed))
        assert plain(Asked(a)) == plain(Asked(b))
    json.dumps(played.report())


def test_the_report_says_how_every_base_stands():
    strategy = make(finite(), **BOLD)
    drive(strategy, script(200, seed=2))
    report = strategy.report()
    trials, told = strategy.history.trials, strategy.history.values
    assert report["strategy"] == "RegretBalancing"
    assert report["num_told"] == len(told)
    assert report["active"] == strategy.active
    assert report["eliminated"] == strategy.eliminated
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


# --- bad input ------------------------------------------------------------------------------------


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
