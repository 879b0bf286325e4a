"""Results that were not asked for, and evaluations that failed."""

import pytest
import torch

from botorch_ext import algorithms
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Abandoned, Asked, Attached, Told, Trial
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy
from botorch_ext.testing.sessions import plain, question
from tests.laws.registry import METHODS, POLICIES, entry_of
from tests.laws.scenarios import SCENARIOS, value_of
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import (
    LAMBDA,
    all_policies,
    both_domains,
    box,
    data,
    f,
    finite,
    make,
)
from tests.strategies.sessions import kernel as a_kernel

pytestmark = quietly

# On a plain set; those of contexts are below.
TAKING = [
    name
    for name in METHODS
    if entry_of(name).scenario_name == "set" and entry_of(name).make().refuses_attached is None
]


def made(method, **options):
    """A strategy on a finite set; with a policy where the method takes one."""
    return METHODS[method](
        SCENARIOS["set"], seed=3, **POLICIES.get(entry_of(method).policy, {}) | options
    )


def some_data(num_points=4):
    X = SCENARIOS["set"].domain().sample(num_points, seed=9)
    return X, X.new_tensor([value_of(x, None) for x in X])


@pytest.mark.parametrize("method", TAKING)
def test_attached_data_is_known_as_initial_data_is(method):
    X, Y = some_data()
    given, attached = made(method, initial=(X, Y)), made(method)
    for x, y in zip(X, Y.tolist(), strict=True):
        attached.attach(x, y)
    for one, other in zip(given.evaluated(), attached.evaluated(), strict=True):
        assert torch.equal(one, other)
    if method == "random":
        return
    if not isinstance(given, ParticleStrategy):
        assert torch.allclose(given.evaluated_means(), attached.evaluated_means(), atol=1e-9)
        assert given.best()[1] == pytest.approx(attached.best()[1], abs=1e-9)
    else:  # drawn with the same seed, from the same data
        particles, fresh = attached.posterior, given.posterior
        assert torch.equal(particles.joint, fresh.joint)
        assert torch.equal(particles.outcomes.values, fresh.outcomes.values)
    if given.depends_on_trial_number is None:
        asked, expected = question(attached, {}), question(given, {})
        assert asked["x"] == expected["x"]
        for name in ("mean", "std", "width", "offset"):
            if name in expected["info"]:
                assert asked["info"][name] == pytest.approx(expected["info"][name], abs=1e-9)


@pytest.mark.parametrize("method", TAKING)
def test_what_is_attached_in_between_is_an_observation_and_no_play(method):
    strategy, X = made(method), some_data()[0]
    told = 0
    for step in range(8):
        trial = strategy.ask()
        if step % 3 == 1:
            attached = strategy.attach(X[step % 4], 0.3)
            assert attached.info == {
                "attached": True,
                "index": int(strategy.domain.index(X[step % 4])),
            }
        if step % 4 != 3:
            strategy.tell(trial.id, value_of(trial.x, None))
            told += 1
    report = strategy.report()
    assert (report["num_asked"], report["num_told"]) == (8, told)
    assert len(report["attached"]) == 3
    assert report["pending"] == [id for id in strategy.pending if id not in report["attached"]]
    assert len(strategy.evaluated()[0]) == told + 3
    if hasattr(strategy, "times_played"):
        assert sum(strategy.times_played()) == 8
        assert len(strategy.plays) == told
        assert [play.trial for play in strategy.plays] == [
            event.id for event in strategy.events if isinstance(event, Told)
        ]
        assert strategy.num_data == told + 3
        assert strategy.plays[-1].t <= strategy.num_data
    for test in getattr(strategy, "tests", []):
        assert test.trial not in report["attached"]


@pytest.mark.parametrize(
    "method", [name for name in METHODS if entry_of(name).make().refuses_attached is not None]
)
def test_who_cannot_use_it_says_why(method):
    strategy = entry_of(method).make(3)
    x, context = strategy.domain.sample(1, seed=0)[0], entry_of(method).scenario.offer(0, 3)
    assert not context
    with pytest.raises(ValueError, match=r"takes no attached results: .* (alone|learns)"):
        strategy.attach(x, 0.1)
    assert strategy.events == ()


def test_a_context_says_whose_result_it_is():
    scenario = SCENARIOS["set, contexts"]
    strategy = METHODS["contextwise"](scenario, seed=3, **POLICIES["hallucinate"])
    x = scenario.domain().sample(1, seed=0)[0]
    values = [[] for _ in strategy.bases]
    for value, z in enumerate(scenario.contexts().sample(6, seed=0)):
        trial = strategy.attach(x, value, z)
        values[strategy.key(z)].append(float(value))
        assert trial.info["base"] == strategy.key(z)
    assert all(values)
    assert [base.evaluated()[1].tolist() for base in strategy.bases] == values
    strategy.correct(0, 9.0)
    assert sorted(strategy.evaluated()[1].tolist()) == [1.0, 2.0, 3.0, 4.0, 5.0, 9.0]


def test_the_first_points_are_all_asked():
    plain_one, strategy = made("gp_ucb", num_initial=3), made("gp_ucb", num_initial=3)
    first = [trial.x.tolist() for trial in plain_one.ask(4)][:3]
    strategy.attach(some_data()[0][0], 0.2)
    asked = []
    for _ in range(3):
        trial = strategy.ask()
        assert trial.info["initial"]
        asked.append(trial.x.tolist())
        strategy.attach(some_data()[0][1], 0.1)
    assert asked == first
    assert "initial" not in strategy.ask().info


def test_the_horizon_counts_what_is_asked():
    strategy = made("certified_bucb")
    for _ in range(5):
        strategy.attach(some_data()[0][0], 0.2)
    for _ in range(strategy.horizon):
        trial = strategy.ask()
        strategy.tell(trial.id, value_of(trial.x, None))
    strategy.attach(some_data()[0][0], 0.2)
    again = made("certified_bucb")
    again.replay(strategy.events)
    assert again.report() == strategy.report()


def test_contexts_are_needed_where_there_are_some():
    scenario = SCENARIOS["line, contexts"]
    strategy = METHODS["gp_ucb"](scenario, seed=1, **POLICIES["hallucinate"])
    x, z = scenario.domain().sample(1, seed=0)[0], scenario.contexts().sample(1, seed=0)[0]
    with pytest.raises(ValueError, match="context must be given"):
        strategy.attach(x, 0.2)
    strategy.attach(x, 0.2, z)
    assert strategy.evaluated()[0].tolist() == [[*x.tolist(), *z.tolist()]]


@both_domains
def test_impossible_events_of_results_are_refused_as_a_whole(domain):
    strategy = make(domain())
    x = domain().sample(1, seed=0)[0]
    for info in ({}, {"attached": True, "model": 0}, {"attached": False}, {"index": 0}):
        with pytest.raises(ValueError, match=r"info of trial 0 must be|point of its index"):
            strategy.replay([Attached(Trial(0, x, None, info), 0.1)])
    good = strategy.clone()
    good.attach(x, 0.1)
    for id in (-1, 1, None):
        trial = Trial(id, x, None, good.events[0].trial.info)
        with pytest.raises(ValueError, match="id must be 0"):
            strategy.replay([Attached(trial, 0.1)])
    assert strategy.events == ()
    with pytest.raises(UnknownTrialError, match="attached"):
        good.tell(0, 0.2)


# --- evaluations that failed ----------------------------------------------------------------------


@both_domains
@all_policies
def test_a_failed_point_stays_in_the_deviations_as_a_pending_one(domain, policy):
    # Ignored is ignored; a timeout leaves it censored, as it does a pending one.
    initial = data(domain(), 5)
    failed, waiting = (
        make(domain(), policy, initial=initial),
        make(domain(), policy, initial=initial),
    )
    for strategy in (failed, waiting):
        strategy.ask(2)
        strategy.tell(1, 0.2)
    failed.abandon(0, failed=True)
    assert failed.pending == []
    assert failed.report()["failed"] == failed.report()["abandoned"] == [0]
    X = domain().sample(20, seed=4)
    for one, other in zip(failed.bands(X), waiting.bands(X), strict=True):
        assert torch.equal(one, other)
    assert len(failed.evaluated()[0]) == 6
    for _ in range(6):
        trials = [strategy.ask() for strategy in (failed, waiting)]
        assert plain(Asked(trials[0])) == plain(Asked(trials[1]))
        for strategy, trial in zip((failed, waiting), trials, strict=True):
            strategy.tell(trial.id, 0.1)


@both_domains
def test_the_deviation_at_a_failed_point_is_that_of_one_more_observation(domain):
    X, Y = data(domain(), 5)
    strategy = make(domain(), initial=(X, Y))
    failed = strategy.ask().x
    strategy.abandon(0, failed=True)
    model = KernelGP(a_kernel(), LAMBDA)
    model.add(X, Y)
    mean = model.mean_and_std(failed[None])[0]
    model.add(failed[None], None)
    std = model.mean_and_std(failed[None])[1]
    shown = strategy.posterior
    if domain is finite:
        row = int(strategy.domain.index(failed))
        assert float(shown.std[row]) == pytest.approx(float(std), abs=1e-9)
        assert float(shown.mean[row]) == pytest.approx(float(mean), abs=1e-9)
    else:
        own = shown.mean_and_std(failed[None])
        assert float(own[1]) == pytest.approx(float(std), abs=1e-9)
        assert float(own[0]) == pytest.approx(float(mean), abs=1e-9)


def asked_where_half_fails(failed):
    """Of 20 trials, how many can be evaluated, and at which points the others fail."""
    strategy = algorithms.gp_bucb(box(), a_kernel(), noise_variance=LAMBDA, width=2.0, seed=2)
    told, gone = 0, set()
    for _ in range(20):
        trial = strategy.ask()
        if float(trial.x[0]) > 3.5:
            strategy.abandon(trial.id, failed=failed)
            gone.add(tuple(trial.x.tolist()))
        else:
            strategy.tell(trial.id, float(torch.sin(2 * trial.x[0])))
            told += 1
    return told, gone


def test_a_failing_region_is_left():
    told, gone = asked_where_half_fails(failed=True)
    assert told >= 6
    assert len(gone) == 20 - told
    assert asked_where_half_fails(failed=False)[0] < told / 2


@both_domains
def test_a_plain_abandoned_event_is_what_it_was(domain):
    strategy = make(domain())
    strategy.ask(2)
    strategy.abandon(0)
    assert strategy.events[-1] == Abandoned(0) == Abandoned(0, failed=False)
    # As events were written before there were failures.
    old = Abandoned.__new__(Abandoned)
    vars(old)["id"] = 0
    again = make(domain())
    again.replay([*strategy.events[:-1], old])
    assert again.events[-1] == Abandoned(0)
    assert again.report() == strategy.report()
    for failed in (None, 1, "yes"):
        with pytest.raises(ValueError, match="failed must be True or False"):
            strategy.abandon(1, failed=failed)
    with pytest.raises(UnknownTrialError):
        strategy.abandon(0, failed=True)


@both_domains
def test_what_is_attached_makes_no_pending_trial_late(domain):
    strategy = make(domain(), "timeout")
    strategy.ask(2)
    for x in domain().sample(8, seed=2):
        strategy.attach(x, f(x))
    strategy.ask(2)
    strategy.tell(0, 0.5)  # three are asked since, itself included, of four that may be
    assert strategy.report()["told_too_late"] == []
    assert 0.5 in strategy.posterior.factor.y.tolist()
    strategy.ask(2)
    strategy.tell(1, 0.5)
    assert strategy.report()["told_too_late"] == [1]


@pytest.mark.slow
def test_what_is_attached_is_no_center_of_a_search():
    def centers(strategy):
        return strategy._incumbents()[min(len(strategy.evaluated()[0]), 8) :]

    made = [
        algorithms.stable_opt(
            box(), a_kernel(), noise_variance=LAMBDA, width=2.0, radius=0.1, num_initial=2
        )
        for _ in range(2)
    ]
    X = box().sample(6, seed=2)
    for scenario, strategy in enumerate(made):
        for step in range(4):
            if scenario:
                strategy.attach(X[step], 0.3)
            trial = strategy.ask()
            strategy.tell(trial.id, f(trial.x))
        if scenario:
            strategy.attach(X[5], 0.3)
    plain_one, attached = made
    assert len(centers(plain_one)) == len(centers(attached)) == 2
    plays = [trial for trial in attached.history.trials if "center" in trial.info]
    assert centers(attached).tolist() == [trial.info["center"] for trial in plays]
