"""Rounds that close by arrival, against their description in plain loops and dense algebra."""

import math
import threading
from collections import Counter
from functools import cache

import pytest
import torch

from botorch_ext import PhasedElimination, Region, algorithms, delays, rounds, simulate
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Abandoned, Asked, Told
from botorch_ext.strategies.fixed_design.arrivals import Arrivals
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design.phased_sessions import (
    DELTA,
    LAMBDA,
    SIGMA,
    B,
    make,
    play,
    points,
    rkhs,
)
from tests.strategies.sessions import both_domains, box, finite, kernel, plain, slow_on_a_box

HORIZON = 130
SIXTH = math.sqrt(6)
KAPPA = math.sqrt(2)
# name: the arguments, and the delays; None for feedback in any order, some of it lost.
CASES = {
    "at once": ({"width": SIXTH}, delays.Fixed(0)),
    "late": ({"width": 1.0}, delays.Poisson(5.0)),
    "later": ({"width": 1.0}, delays.Fixed(20)),
    "heavy": ({"width": 1.0, "kappa": KAPPA}, delays.LogNormal(2.0, 1.5)),
    "published": ({}, delays.Poisson(5.0)),
    "in any order": ({"width": 1.0, "kappa": 1.1}, None),
}


def by_arrival(domain, horizon=HORIZON, **options):
    # The allowance of the other sessions has no part in it.
    return make("bpe_delay", domain, horizon, delay="unknown", closing="arrival", **options)


@cache
def played(case):
    """A session of a case; nobody may change it."""
    options, delay = CASES[case]
    problem = rkhs(finite())
    strategy = by_arrival(problem.domain, **options)
    if delay is None:
        play(strategy, problem, seed=11)
    else:
        simulate(strategy, problem, HORIZON, delay=delay, seed=4)
    return strategy


def follow(events, kappa=1.0, width=None, horizon=HORIZON):
    """Replays the decisions of a history on the finite set; counts what was in it."""
    P = finite().points
    with torch.no_grad():
        K = kernel()(P).to_dense()
    q = [1]
    while sum(q[1:]) < horizon:
        q.append(math.ceil(math.sqrt(horizon * q[-1]) - 1e-12))
    share = DELTA / (4 * (len(q) - 1) * len(P))
    w = (
        B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / share))
        if width is None
        else width
    )

    def moments(rows, values=None):
        if not rows:
            return K.new_zeros(len(P)), K.diag().sqrt()
        ridge = LAMBDA * torch.eye(len(rows), dtype=K.dtype)
        weights = torch.linalg.solve(K[rows][:, rows] + ridge, K[rows])
        variance = K.diag() - (weights * K[rows]).sum(dim=0)
        mean = weights.mT @ K.new_tensor([0.0] * len(rows) if values is None else values)
        return mean, variance.clamp_min(0).sqrt()

    alive, r, first, plays_mean = torch.ones(len(P), dtype=torch.bool), 1, 0, False
    row, y, promise, seen = {}, {}, math.nan, Counter()
    for event in events:
        match event:
            case Told(id, value):
                y[id] = value
            case Abandoned(id):
                seen["abandoned"] += 1
        if not isinstance(event, Asked):
            continue
        id, info = event.trial.id, event.trial.info
        opens = id == 0
        if id - first >= q[r] and not plays_mean:
            arrived = [i for i in range(first, id) if i in y]
            mean, std = moments([row[i] for i in arrived], [y[i] for i in arrived])
            opens = float(std[alive].max()) <= kappa * promise + 1e-9
            if opens:
                threshold = float((mean - w * std)[alive].max())
                assert info["opening"]["threshold"] == pytest.approx(threshold, abs=1e-9)
                alive &= mean + w * std >= threshold - 1e-12
                seen["closed"] += 1
                seen["waited"] += id - first - q[r]
                seen["closed without all"] += len(arrived) < id - first
                r, first = r + 1, id
                plays_mean = horizon - id <= q[r]
        assert opens == ("opening" in info)
        if opens:
            record = info["opening"]
            assert record["volume"] == pytest.approx(float(alive.double().mean()))
            assert len(record["plan"]) == (0 if plays_mean else min(q[r], horizon - id))
            if not plays_mean:
                promise = float(moments(record["plan"])[1][alive].max())
                assert record["promise"] == pytest.approx(promise, abs=1e-8)
        assert info["round"] == r
        row[id] = info["index"]
        assert alive[row[id]]
        if plays_mean:
            seen["mean"] += 1
            told = list(y)
            mean, _ = moments([row[i] for i in told], [y[i] for i in told])
            assert mean[alive].max() - mean[row[id]] <= 1e-7
        else:
            _, std = moments([row[i] for i in range(first, id)])
            assert std[alive].max() - std[row[id]] <= 1e-7
            assert info["std"] == pytest.approx(std[row[id]].item(), abs=1e-7)
    return seen, alive


@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_description(case):
    strategy = played(case)
    seen, alive = follow(strategy.events, **CASES[case][0])
    survivors = torch.zeros(54, dtype=torch.bool)
    survivors[strategy.rounds[-1].survivors] = True
    assert torch.equal(alive, survivors)
    if case != "published":
        assert 0 < alive.sum() < 54
    if case not in ("later", "in any order"):
        assert seen["mean"] >= 5
    lengths = [round["length"] for round in strategy.report()["rounds"]]
    assert [round["asked"] for round in strategy.report()["rounds"]] == lengths
    assert sum(lengths) == HORIZON


def test_the_cases_have_everything_in_them():
    seen = Counter()
    for case in CASES:
        seen += follow(played(case).events, **CASES[case][0])[0]
    for what in ("closed", "waited", "closed without all", "mean", "abandoned"):
        assert seen[what] > 0, what


def test_all_survivors_decide_whether_enough_has_arrived():
    round = played("at once").rounds[0]
    P, length, decisive = finite().points, len(round.points), 0
    for missing in range(length):
        arrived = [k for k in range(length) if k != missing]
        X = round.points[arrived]
        _, covariance = dense_posterior(kernel(), X, X[:, 0], P, LAMBDA)
        std = covariance.diag().sqrt()
        ratio = float(std.max()) / round.promise
        for kappa, enough in ((0.999 * ratio, False), (1.001 * ratio, True)):
            arrivals = Arrivals(finite(), KernelGP(kernel(), LAMBDA), kappa)
            assert arrivals.suffice(round, arrived, length, seed=0) == enough
        row = int(finite().index(round.points[missing]))
        decisive += bool(std[row] < 0.998 * std.max())  # others are known less
    assert decisive > 0


def test_a_round_that_would_end_with_the_horizon_plays_the_mean():
    problem, horizon = rkhs(finite()), 96
    strategy = by_arrival(problem.domain, horizon, width=1.0)
    simulate(strategy, problem, horizon, seed=1)
    assert [len(round.points) for round in strategy.rounds] == [10, 31, 55]
    assert strategy.round_lengths.design_length(3) == 55
    assert follow(strategy.events, width=1.0, horizon=horizon)[0]["mean"] == 55


@pytest.mark.slow
def test_the_mean_is_played_alike_after_a_replay_on_a_box():
    """The posterior of all told data grows with the same events: its last digits are the same."""
    problem = rkhs(box())
    strategy = by_arrival(problem.domain, 40, width=1.0)
    simulate(strategy, problem, 40, delay=delays.Poisson(3.0), seed=1)
    round = strategy.rounds[-1]
    assert round.plays_mean and len(round.points) > 3
    for id in list(round.ids)[1:]:
        events = strategy.events
        place = next(k for k, e in enumerate(events) if isinstance(e, Asked) and e.trial.id == id)
        fresh = by_arrival(problem.domain, 40, width=1.0)
        fresh.replay(events[:place])
        assert torch.equal(fresh.ask().x, strategy.history.trials[id].x)


def test_prompt_rounds_are_those_of_bpe():
    problem = rkhs(finite())
    waiting = make("bpe", problem.domain, HORIZON, width=1.0)
    strategy = by_arrival(problem.domain, width=1.0)
    for one in (waiting, strategy):
        simulate(one, problem, HORIZON, seed=1)
    last = waiting.rounds[-1].first
    assert strategy.rounds[-1].first == last
    assert torch.equal(points(waiting, range(last)), points(strategy, range(last)))


# --- the fold -------------------------------------------------------------------------------------


def state(strategy):
    return [plain(event) for event in strategy.events], strategy.report(), strategy.pending


@slow_on_a_box
def test_a_replay_plans_nothing(domain, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a replay plans nothing")

    problem, reports, horizon = rkhs(domain()), {}, 60
    strategy = by_arrival(problem.domain, horizon, width=1.0, kappa=1.5)
    play(strategy, problem, seed=7, reports=reports)
    infos = [trial.info for trial in strategy.history.trials]
    assert {"opening", "more"} <= {name for info in infos for name in info}
    assert strategy.rounds[-1].plays_mean
    monkeypatch.setattr("botorch_ext.strategies.fixed_design.survivors.plan", forbidden)
    monkeypatch.setattr("botorch_ext.search.box.maximize_on_box", forbidden)
    monkeypatch.setattr(Region, "population", forbidden)
    monkeypatch.setattr(Region, "maximize", forbidden)
    fresh = by_arrival(domain(), horizon, width=1.0, kappa=1.5)
    for count, event in enumerate(strategy.events, start=1):
        fresh.replay([event])
        assert fresh.report() == reports[count]
    assert state(fresh) == state(strategy)


UNREAD = "info of trial .* must be what PhasedElimination records, got"
WRONG = {
    "no promise": ("opening", lambda info: info["opening"].pop("promise"), UNREAD),
    "NaN promise": (
        "opening",
        lambda info: info["opening"].update(promise=math.nan),
        "promise must be non-negative and finite, got nan",
    ),
    "no more": ("more", lambda info: info.pop("more"), UNREAD),
    "short more": ("more", lambda info: info["more"].update(plan=[]), "std must be 0 numbers, got"),
    "more of text": ("more", lambda info: info.update(more="all"), UNREAD),
}


@cache
def late_session(domain):
    """With all kinds of trials; nobody may change it."""
    problem = rkhs(domain())
    strategy = by_arrival(problem.domain, 60, width=1.0)
    simulate(strategy, problem, 60, delay=delays.Fixed(2), seed=1)
    return strategy


@pytest.mark.parametrize("case", WRONG)
@both_domains
def test_a_replay_is_refused_as_a_whole(domain, case):
    kind, change, message = WRONG[case]
    strategy, horizon = late_session(domain), 60
    events = list(strategy.events)
    at = next(i for i, e in enumerate(events) if isinstance(e, Asked) and kind in e.trial.info)
    change(events[at].trial.info)
    fresh = by_arrival(domain(), horizon, width=1.0)
    fresh.replay(strategy.events[: at // 2])
    before = state(fresh)
    with pytest.raises(ValueError, match=message):
        fresh.replay(events[at // 2 : at + 1])
    assert state(fresh) == before
    fresh.replay(strategy.events[at // 2 :])
    assert state(fresh) == state(strategy)


# --- on a box -------------------------------------------------------------------------------------


def test_on_a_box_the_last_round_plays_the_highest_mean():
    problem, horizon = rkhs(box(), seed=1), 60
    strategy = by_arrival(problem.domain, horizon, width=1.0)
    trace = simulate(strategy, problem, horizon, delay=delays.Poisson(3.0), seed=4)
    last = strategy.rounds[-1]
    assert last.plays_mean
    assert len(last.points) > 5
    assert all(bool(round.survivors.contains(round.points).all()) for round in strategy.rounds)
    Z = box().sample(500, seed=3)
    Z = Z[last.survivors.contains(Z)]
    told, known = 0, []
    for event in strategy.events:
        if isinstance(event, Told):
            known.append(event.id)
        if isinstance(event, Asked) and event.trial.id in last.ids:
            X = torch.cat([event.trial.x[None], Z])
            mean, _ = dense_posterior(
                kernel(), points(strategy, known), trace.observations[known], X, LAMBDA
            )
            assert mean[0] >= mean.max() - 1e-6
            told += 1
    assert told == len(last.points)


# --- arguments ------------------------------------------------------------------------------------


def test_the_allowance_and_the_arrival_exclude_each_other():
    given = {"noise_variance": LAMBDA, "width": 1.0, "horizon": 30}
    with pytest.raises(ValueError, match=r"^bpe_delay\(\): delay must be given unless closing"):
        algorithms.bpe_delay(finite(), kernel(), **given)
    with pytest.raises(ValueError, match=r"^bpe_delay\(\): delay must not be given with closing"):
        algorithms.bpe_delay(finite(), kernel(), **given, closing="arrival", delay=3)
    with pytest.raises(ValueError, match="closing must be"):
        algorithms.bpe_delay(finite(), kernel(), **given, closing="at once", delay=3)
    with pytest.raises(ValueError, match="kappa must be at least 1"):
        algorithms.bpe_delay(finite(), kernel(), **given, closing="arrival", kappa=0.5)
    model = KernelGP(kernel(), LAMBDA)
    for schedule, waits in (
        (rounds.SquareRoot(30), True),
        (rounds.DelayAware(rounds.SquareRoot(30), 3), False),
    ):
        with pytest.raises(ValueError, match='closing must be "allowance" with rounds that wait'):
            PhasedElimination(finite(), model, 1.0, schedule, waits=waits, closing="arrival")


def test_the_mean_of_the_last_round_is_exact():
    problem = rkhs(finite())
    strategy = by_arrival(problem.domain, width=1.0)
    simulate(strategy, problem, HORIZON, delay=delays.Poisson(4.0), seed=1)
    ids = list(strategy.history.values)
    y = torch.tensor([strategy.history.values[id] for id in ids], dtype=torch.float64)
    mean, _ = dense_posterior(kernel(), points(strategy, ids), y, problem.domain.points, LAMBDA)
    told = strategy._arrivals.told(*strategy.evaluated(), strategy._told).posterior
    torch.testing.assert_close(told.mean, mean, **tolerance(torch.float64))


def test_a_prior_mean_that_can_not_be_copied_is_never_copied():
    class Locked:
        def __init__(self):
            self.lock = threading.Lock()

        def __call__(self, X):
            return 0.1 * X[..., 0]

    strategy = by_arrival(finite(), width=1.0, mean=Locked())
    again = by_arrival(finite(), width=1.0, mean=Locked())
    for step in range(HORIZON):
        trial = strategy.ask()
        strategy.tell(trial.id, math.sin(step))
        strategy.clone()
    again.replay(strategy.events)
    assert again.report() == strategy.report()
