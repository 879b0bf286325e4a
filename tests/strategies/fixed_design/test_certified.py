"""Certified elimination as a strategy: its fold, lost feedback, rules of the user's, bad input.

test_certified_replay.py checks what it decides.
"""

import math
from functools import cache

import pytest
import torch
from gpytorch.kernels import RBFKernel

from botorch_ext import FiniteSet, Region, algorithms, delays, simulate
from botorch_ext.exceptions import HorizonReached
from botorch_ext.strategies import Asked, Trial
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design.certified_sessions import PUBLISHED, make
from tests.strategies.fixed_design.phased_sessions import LAMBDA, play, points, rkhs
from tests.strategies.sessions import both_domains, box, f, finite, kernel, plain, slow_on_a_box

# Long enough for two blocks in a box, one of which is bought again.
SHORT = 44
ALWAYS = {"width": 1.0, "buy": "always"}


def state(strategy):
    return [plain(event) for event in strategy.events], strategy.report(), strategy.pending


def told(strategy, id):
    strategy.tell(id, f(strategy.history.trials[id].x))


def decided(strategy):
    """What the trials decided besides their points."""
    return [
        (trial.id, name)
        for trial in strategy.history.trials
        for name in ("closing", "cut", "plan")
        if name in trial.info
    ]


@pytest.fixture
def no_search(monkeypatch):
    """A switch after which nothing can be planned, sampled or maximised."""

    def forbidden(*args, **kwargs):
        raise AssertionError("a replay searches nothing")

    def switch():
        monkeypatch.setattr("botorch_ext.strategies.fixed_design.survivors.plan", forbidden)
        monkeypatch.setattr("botorch_ext.search.box.maximize_on_box", forbidden)
        monkeypatch.setattr(Region, "population", forbidden)
        monkeypatch.setattr(Region, "maximize", forbidden)

    return switch


@slow_on_a_box
def test_events_are_a_checkpoint_and_a_replay_searches_nothing(domain, no_search):
    problem, reports = rkhs(domain()), {}
    strategy = make(problem.domain, SHORT, **ALWAYS)
    play(strategy, problem, seed=7, reports=reports)
    names = {name for _, name in decided(strategy)}
    assert names == {"closing", "cut", "plan"}
    no_search()
    fresh = make(domain(), SHORT, **ALWAYS)
    assert fresh.report() == reports[0]
    for count, event in enumerate(strategy.events, start=1):
        fresh.replay([event])
        assert fresh.report() == reports[count]
    assert state(fresh) == state(strategy)


# --- what is refused ------------------------------------------------------------------------------


def in_info(name, **changed):
    """Changes what a trial decided under a name; None takes an entry away."""

    def change(trial):
        for key, value in changed.items():
            record = trial.info[name]
            if value is None:
                del record[key]
            else:
                record[key] = value(record[key]) if callable(value) else value

    return change


def without(name):
    return lambda trial: trial.info.pop(name)


UNREAD = "info of trial .* must be what CertifiedElimination records, got"
# From a name to what the trial has decided, how it is changed, and what is said.
WRONG = {
    "no closing": ("closing", without("closing"), UNREAD),
    "no cut": ("cut", without("cut"), UNREAD),
    "no plan": ("plan", without("plan"), UNREAD),
    "high threshold": (
        "cut",
        in_info("cut", threshold=100.0),
        "threshold .*leave points|points must .*region",
    ),
    "NaN threshold": (
        "cut",
        in_info("cut", threshold=math.nan),
        "threshold of the cut must be fin",
    ),
    "no argmax": ("cut", in_info("cut", argmax=None), UNREAD),
    "argmax elsewhere": ("cut", in_info("cut", argmax=[9.0, 9.0]), "argmax of the cut must"),
    "negative certificate": (
        "cut",
        in_info("cut", certificate=-1.0),
        "certificate of the cut must",
    ),
    "volume": ("closing", in_info("closing", volume="all"), "volume of the closing must be one"),
    "put off, a word": ("plan", in_info("cut", put_off="no"), "put_off of the cut"),
    "short plan": ("plan", in_info("plan", plan=lambda p: p[:-1]), "std must be 0 numbers, got 1"),
    "promise": ("plan", in_info("plan", promise="all"), "promise must be one number"),
    "no promise": ("plan", in_info("plan", promise=None), UNREAD),
    "NaN promise": ("plan", in_info("plan", promise=math.nan), "promise must be non-negative"),
    "negative promise": ("plan", in_info("plan", promise=-1.0), "promise must be non-negative"),
    "infinite promise": ("plan", in_info("plan", promise=math.inf), "promise must be non-negative"),
}


@cache
def late_session(domain):
    """With all kinds of trials; nobody may change it."""
    problem = rkhs(domain())
    strategy = make(problem.domain, SHORT, **ALWAYS)
    simulate(strategy, problem, 26, delay=delays.Fixed(2), seed=1)
    return strategy


@pytest.mark.parametrize("case", WRONG)
@both_domains
def test_a_replay_is_refused_as_a_whole(domain, case):
    kind, change, message = WRONG[case]
    strategy = late_session(domain)
    events = list(strategy.events)
    at = next(i for i, e in enumerate(events) if isinstance(e, Asked) and kind in e.trial.info)
    change(events[at].trial)
    fresh = make(domain(), SHORT, **ALWAYS)
    fresh.replay(strategy.events[: at // 2])
    before = state(fresh)
    with pytest.raises(ValueError, match=message):
        fresh.replay(events[at // 2 : at + 1])
    assert state(fresh) == before
    fresh.replay(strategy.events[at // 2 :])
    assert state(fresh) == state(strategy)


def test_nothing_is_asked_beyond_the_horizon():
    strategy = make(finite(), 20, width=1.0)
    before = state(strategy)
    with pytest.raises(HorizonReached, match=r"at most 20, .*got 21"):
        strategy.ask(21)
    assert state(strategy) == before
    trials = strategy.ask(20)
    with pytest.raises(HorizonReached, match="at most 0"):
        strategy.ask()
    beyond = Asked(Trial(20, trials[0].x, None, trials[0].info))
    with pytest.raises(ValueError, match="id must be less than the horizon of 20"):
        strategy.replay([beyond])


NUMBERS = {"noise_variance": LAMBDA, "horizon": 30}


# --- rules of the user's --------------------------------------------------------------------------


@both_domains
def test_a_rule_is_given_what_is_told_and_where_it_may_ask(domain):
    seen = []

    def rule(model, region, pending, seed):
        X = region.points if domain is finite else region.population(16, seed).points
        seen.append((model, region, pending, seed))
        return X[seed % len(X)].tolist()

    problem = rkhs(domain())
    strategy = make(problem.domain, SHORT, **ALWAYS, free=rule)
    simulate(strategy, problem, SHORT, delay=delays.Fixed(2), seed=1)
    assert len({seed for *_, seed in seen}) == len(seen)
    model, region, pending, _ = seen[-1]
    trials = strategy.history.trials
    assert torch.equal(pending, torch.stack([trial.x for trial in trials[-3:-1]]))
    X = points(strategy, range(SHORT - 3))
    y = X.new_tensor([strategy.history.values[id] for id in range(SHORT - 3)])
    Z = problem.domain.sample(5, seed=3)
    mean, _ = dense_posterior(kernel(), X, y, Z, LAMBDA)
    torch.testing.assert_close(model.mean_at(Z), mean, **tolerance(Z.dtype))
    where = region.points if domain is finite else region
    whole = 54 if domain is finite else None
    assert len(where) < whole if domain is finite else region.constraints


@both_domains
@pytest.mark.parametrize("answer", [[9.0, 9.0], [2.0], [math.nan, -2.0], None, "here"])
def test_a_rule_that_leaves_the_region_is_named(domain, answer):
    strategy = make(domain(), SHORT, **ALWAYS, free=lambda *_: answer)
    before = state(strategy)
    with pytest.raises(ValueError, match="free must return a point of the region"):
        strategy.ask()
    assert state(strategy) == before


def test_a_rule_may_not_ask_what_was_eliminated():
    problem = rkhs(finite())
    worst = problem.domain.points[problem(problem.domain.points).argmin()]

    def rule(model, region, pending, seed):
        return region.points[seed % len(region.points)] if model.num_observations < 25 else worst

    strategy = make(problem.domain, SHORT, width=0.5, free=rule)
    with pytest.raises(ValueError, match="free must return a point of the region"):
        simulate(strategy, problem, SHORT, seed=1)
    assert int(problem.domain.index(worst)) not in strategy.survivors


# --- lost feedback --------------------------------------------------------------------------------


def test_what_is_abandoned_of_a_block_is_bought_again_after_a_round_of_waiting():
    problem = rkhs(finite())
    strategy = make(problem.domain, 60, width=1.0, buy="always", share=0.5)
    length, bought = strategy.schedule.length(1), strategy.schedule.num_bought(1)
    assert (length, bought) == (8, 4)
    phases = []
    for _ in range(22):
        trial = strategy.ask()
        phases.append(trial.info["phase"])
        if phases[-1] == "block" and phases.count("block") == 1:
            strategy.abandon(trial.id)
        else:
            told(strategy, trial.id)
    assert phases == ["free"] * 4 + ["block"] * 4 + ["wait"] * 8 + ["block"] * 4 + ["free"] * 2
    assert [name for _, name in decided(strategy)] == ["cut", "plan", "plan", "closing"]
    assert strategy.history.trials[20].info["round"] == 2


# --- on a box -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "delay"),
    [
        ({"width": 2.0, "buy": "always"}, delays.Fixed(0)),
        ({"width": 1.0, "share": 0.25, "buy": "always", "kappa": 1.4}, delays.Poisson(4.0)),
        (PUBLISHED, delays.Poisson(4.0)),
    ],
    ids=["prompt", "late", "published"],
)
def test_on_a_box_what_is_asked_lies_in_the_region_and_is_certified(options, delay):
    problem, horizon = rkhs(box(), seed=1), 60
    strategy = make(problem.domain, horizon, **options)
    trace = simulate(strategy, problem, horizon, delay=delay, seed=4)
    grid, certificate = box().sample(400, seed=3), math.inf
    at_grid = problem(grid)
    alive, rounds = torch.ones(400, dtype=torch.bool), []
    fresh = make(problem.domain, horizon, **options)
    region = fresh.survivors
    for event in strategy.events:
        fresh.follow([event])
        if not isinstance(event, Asked):
            continue
        trial = event.trial
        if fresh.survivors is not region:
            region = fresh.survivors
            inside = region.contains(grid)
            assert not bool((inside & ~alive).any())  # never grows
            assert any(name in trial.info for name in ("closing", "cut"))
            alive = inside
        assert bool(region.contains(trial.x).all())
        assert fresh.certificate <= certificate
        certificate = fresh.certificate
        assert float(trace.regret[trial.id]) <= certificate + 1e-9
        # Of every point of the region, not of the asked ones alone.
        assert problem.optimal_value - float(at_grid[alive].min()) <= certificate + 1e-6
        rounds.append(trial.info["round"])
    assert rounds == sorted(rounds)
    assert max(rounds) > 2
    assert bool(region.contains(problem.optimizer).all())
    if "width" in options:
        assert alive.double().mean() < 0.7


@pytest.mark.slow
def test_on_a_box_free_steps_and_blocks_are_maxima():
    problem, horizon, late = rkhs(box(), seed=1), 60, 3
    options = {"width": 1.0, "buy": "always", "share": 0.25, "free_width": 1.5}
    strategy = make(problem.domain, horizon, **options)
    y = simulate(strategy, problem, horizon, delay=delays.Fixed(late), seed=4).observations
    grid, fresh = box().sample(1000, seed=5), make(problem.domain, horizon, **options)
    bought, counts = [], {"free": 0, "block": 0, "wait": 0}

    def moments(ids, Z):
        if not ids:
            return Z.new_zeros(len(Z)), Z.new_ones(len(Z))
        mean, covariance = dense_posterior(kernel(), points(strategy, ids), y[ids], Z, LAMBDA)
        return mean, covariance.diag().clamp_min(0).sqrt()

    for event in strategy.events:
        fresh.follow([event])
        if not isinstance(event, Asked):
            continue
        trial, before = event.trial, list(range(event.trial.id))
        Z = torch.cat([trial.x[None], grid[fresh.survivors.contains(grid)]])
        phase = trial.info["phase"]
        if phase == "block":
            bought = [] if "plan" in trial.info else bought
            score, short = moments(bought, Z)[1], 0.05  # the best of a few climbers
            bought = [*bought, trial.id]
        else:
            told = before[:-late]
            score, short = moments(told, Z)[0] + 1.5 * moments(before, Z)[1], 1e-3
        counts[phase] += 1
        assert score[0] >= score.max() - short * (score.max() - score.min()) - 1e-9
    assert min(counts.values()) >= 3


def test_a_free_rule_may_climb_by_gradients():
    domain = FiniteSet(torch.linspace(0, 1, 12, dtype=torch.float64).unsqueeze(-1))

    def rule(model, region, pending, seed):
        x = torch.tensor([[0.4]], dtype=torch.float64, requires_grad=True)
        (-(x - 0.9).square()).sum().backward()
        aim = (x + 0.5 * x.grad).detach()
        return region.points[(region.points - aim).abs().argmin()].requires_grad_()

    options = {"noise_variance": 0.01, "horizon": 12, "width": 1.0, "free": rule}
    strategy = algorithms.certified_bucb(domain, RBFKernel().double(), **options)
    for _ in range(12):
        trial = strategy.ask()
        assert not trial.x.requires_grad
        strategy.tell(trial.id, float(trial.x))
    assert torch.is_grad_enabled()
