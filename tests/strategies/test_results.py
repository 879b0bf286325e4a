"""Results that were not asked for, evaluations that failed, and values that were wrong."""

import math
from collections import Counter

import pytest
import torch

from botorch_ext import ContextwiseStrategy, Fitted, algorithms
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Asked, Attached, Corrected, Told, Trial
from botorch_ext.strategies.adaptive.particle_strategy import ParticleStrategy
from botorch_ext.testing.states import question, state
from botorch_ext.testing.subjects import others
from botorch_ext.widths import SelfNormalized
from tests.laws.registry import DELTA, METHODS, POLICIES, SIGMA, B, entry_of
from tests.laws.registry import LAMBDA as ITS_LAMBDA
from tests.laws.scenarios import SCENARIOS, quietly, rbf, value_of
from tests.strategies import sessions

pytestmark = quietly


# On a plain set; those of contexts are below.
TAKING = [
    name
    for name in METHODS
    if entry_of(name).scenario_name == "set" and entry_of(name).make().refuses_attached is None
]
# Initial data have no outcomes.
TAKING_INITIAL = [name for name in TAKING if not entry_of(name).make().outcome_names]

FITTED = [name for name in METHODS if entry_of(name).refits_after_correction]
every_method = pytest.mark.parametrize(
    "method", [pytest.param(m, marks=pytest.mark.slow if m in FITTED else ()) for m in TAKING]
)


def made_on_set(method, **options):
    """A strategy on a finite set; with a policy where the method takes one."""
    return METHODS[method](
        SCENARIOS["set"], seed=3, **POLICIES.get(entry_of(method).policy, {}) | options
    )


def some_data(num_points=4):
    X = SCENARIOS["set"].domain().sample(num_points, seed=9)
    return X, X.new_tensor([value_of(x, None) for x in X])


@pytest.mark.parametrize("method", TAKING_INITIAL)
def test_attached_data_is_known_as_initial_data_is(method):
    X, Y = some_data()
    given, attached = made_on_set(method, initial=(X, Y)), made_on_set(method)
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
    if not entry_of(method).depends_on_trial_number:
        asked, expected = question(attached, {}), question(given, {})
        assert asked["x"] == expected["x"]
        for name in ("mean", "std", "width", "offset"):
            if name in expected["info"]:
                assert asked["info"][name] == pytest.approx(expected["info"][name], abs=1e-9)


@every_method
def test_what_is_attached_in_between_is_an_observation_and_no_play(method):
    strategy, X, told = made_on_set(method), some_data()[0], []
    for step in range(8):
        trial = strategy.ask()
        if step % 3 == 1:
            strategy.attach(X[step % 4], 0.3, outcomes=others(strategy, 0.3))
        if step % 4 != 3:
            value = value_of(trial.x, None)
            strategy.tell(trial.id, value, others(strategy, value))
            told.append(trial.id)
    assert len(strategy.evaluated()[0]) == len(told) + 3
    if hasattr(strategy, "times_played"):
        assert sum(strategy.times_played()) == 8
        assert [play.trial for play in strategy.plays] == told
        assert strategy.plays[-1].t <= strategy.num_data == len(told) + 3
    assert {test.trial for test in getattr(strategy, "tests", [])} <= set(told)


def test_first_points_and_the_horizon_count_what_is_asked():
    plain_one, strategy = made_on_set("gp_ucb", num_initial=3), made_on_set("gp_ucb", num_initial=3)
    for number, first in enumerate(plain_one.ask(4)):
        strategy.attach(some_data()[0][number], 0.2)
        trial = strategy.ask()
        assert ("initial" in trial.info) == (number < 3)
        assert torch.equal(trial.x, first.x) or number == 3
    strategy = made_on_set("certified_bucb")
    for _ in range(strategy.horizon):
        strategy.attach(some_data()[0][0], 0.2)
        strategy.tell(strategy.ask().id, 0.3)


@sessions.both_domains
def test_impossible_events_of_results_are_refused_as_a_whole(domain):
    strategy = sessions.make(domain())
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
    with pytest.raises(ValueError, match="context of trial 0 must be a tensor"):
        strategy.replay([Asked(Trial(0, x, [0.1], {}))])
    assert strategy.events == ()
    with pytest.raises(UnknownTrialError, match="attached"):
        good.tell(0, 0.2)
    before = state(good)
    for value in (float("nan"), None, "1.5", torch.zeros(2)):
        with pytest.raises(ValueError, match="value must be"):
            good.replay([Corrected(0, value)])
    assert state(good) == before


@sessions.both_domains
def test_what_is_attached_makes_no_pending_trial_late(domain):
    strategy = sessions.make(domain(), "timeout")
    strategy.ask(2)
    for x in domain().sample(8, seed=2):
        strategy.attach(x, sessions.f(x))
    strategy.ask(2)
    strategy.tell(0, 0.5)  # three are asked since, itself included, of four that may be
    assert strategy.report()["told_too_late"] == []
    assert 0.5 in strategy.posterior.factor.y.tolist()
    strategy.ask(2)
    strategy.tell(1, 0.5)
    assert strategy.report()["told_too_late"] == [1]


def made(method, seed=3):
    return entry_of(method).make(seed)


def offer(strategy):
    scenario = SCENARIOS["set, contexts" if strategy.context_space else "set"]
    return scenario.offer(len(strategy.history.trials), 3)


def steps(strategy, number, values=None):
    """Asks and tells; every fourth trial pends for a while."""
    for _ in range(number):
        last = strategy.ask(**offer(strategy)).id
        for id in strategy.pending:
            if id % 4 != 2 or last - id > 2:
                trial = strategy.history.trials[id]
                strategy.tell(id, (values or {}).get(id, value_of(trial.x, trial.context)))


@sessions.both_domains
@sessions.all_policies
def test_the_posterior_is_that_of_the_right_values(domain, policy):
    X, Y = sessions.data(domain(), 3)
    strategy = sessions.make(domain(), policy, initial=(X, Y))
    values = {0: 25.0, 2: 0.3, 3: -0.2, 1: -11.0}
    for id, value in values.items():
        while len(strategy.history.trials) <= id:
            strategy.ask()
        strategy.tell(id, value)
    strategy.correct(0, 0.25)
    strategy.correct(1, -0.1)
    right = {**values, 0: 0.25, 1: -0.1}
    late = strategy.report()["told_too_late"]
    assert list(strategy.history.values.items()) == list(right.items())
    assert strategy.evaluated()[1].tolist() == [*Y.tolist(), *right.values()]
    model = KernelGP(sessions.kernel(), sessions.LAMBDA)
    model.add(X, Y)
    for trial in strategy.history.trials:
        value = -2.5 if trial.id in late else right[trial.id]
        model.add(trial.x[None], Y.new_tensor([value]))
    at = domain().sample(10, seed=4)
    mean, std = model.mean_and_std(at)
    own_mean, half = strategy.bands(at)
    assert torch.allclose(own_mean[0], mean, atol=1e-9)
    ratio = half[0] / std
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), atol=1e-9, rtol=1e-7)


def test_models_that_a_wrong_value_refuted_are_tested_again():
    """By sums made here, of predictions that every model would have made of right values."""
    strategy = made("he_gp_ucb, misspecified")
    steps(strategy, 5, {1: 60.0})
    steps(strategy, 8)
    refuted_by_it, trials = set(strategy.rejected), strategy.history.trials
    strategy.correct(1, value_of(trials[1].x, None))
    errors, bounds, known, known_then = Counter(), Counter(), [], {}
    for event in strategy.events:
        if isinstance(event, Asked):
            known_then[event.trial.id] = list(known)
        elif isinstance(event, Told):
            known.append(event.id)
    for id, value in strategy.history.values.items():
        u, x = trials[id].info["model"], trials[id].x
        mean = lambda X: X.new_full(X.shape[:-1], 0.7)  # noqa: E731
        model = KernelGP(rbf((2.5, 1.0, 0.4)[u]), ITS_LAMBDA, mean=mean)
        for before in known_then[id]:
            model.add(trials[before].x[None], x.new_tensor([strategy.history.values[before]]))
        mean, std = model.mean_and_std(x[None])
        t = model.num_observations + 1
        width = float(SelfNormalized(B, SIGMA, DELTA / 2)(t, model))
        errors[u] += value - float(mean)
        bounds[u] += (width + 0.05 * math.sqrt(t / ITS_LAMBDA)) * float(std) + 0.05
    latest = {test.model: test for test in strategy.tests if test.model not in strategy.rejected}
    assert refuted_by_it and set(strategy.rejected) != refuted_by_it
    assert sum(test.count for test in latest.values()) > 3
    for u, test in latest.items():
        assert test.error == pytest.approx(errors[u], abs=1e-9)
        assert test.width_bound == pytest.approx(bounds[u], rel=1e-9)


@pytest.mark.parametrize("method", ["insured_ucb", "safe_ucb"])
def test_levels_that_a_wrong_value_refuted_are_held_again(method):
    strategy, right = made(method), made(method)
    for own in (strategy, right):
        steps(own, 3)
        own.ask(2)
    id = right.pending[-1]
    strategy.tell(id, 400.0)
    strategy.ask(3)  # chosen by a level that only this value refutes
    report = strategy.report()
    assert report["level"] > 0 and report["refuted"]
    value = value_of(strategy.history.trials[id].x, None)
    strategy.correct(id, value)
    right.tell(id, value)
    right.ask(3)
    for name in ("level", "misspecification", "refuted"):
        assert strategy.report()[name] == right.report()[name], name
    assert strategy.report()["level"] == 0
    assert torch.allclose(strategy.evaluated_means(), right.evaluated_means(), atol=1e-9)


@pytest.mark.parametrize("method", ["bpe", "phased_uncertainty_sampling"])
def test_what_a_wrong_value_eliminated_survives_again(method):
    strategy, right = made(method), made(method)
    for own in (strategy, right):
        probe = own.clone()
        probe.ask()
        for trial in own.ask(len(probe.rounds[0].points)):
            own.tell(trial.id, value_of(trial.x, None))
    strategy.correct(0, 500.0)
    for own in (strategy, right):
        own.ask()
    assert len(strategy.rounds[1].survivors) < len(right.rounds[1].survivors)
    strategy.correct(0, right.history.values[0])
    assert torch.equal(strategy.rounds[1].survivors, right.rounds[1].survivors)
    assert strategy.rounds[0].closing.threshold == right.rounds[0].closing.threshold


@pytest.mark.parametrize("method", FITTED)
def test_what_is_fitted_is_fitted_anew(method):
    wrong, right = made(method), made(method)
    for strategy in (wrong, right):
        steps(strategy, 5)
    id = list(right.history.values)[2]
    value = right.history.values[id]
    wrong.correct(id, 50.0)
    wrong.correct(id, value)
    assert torch.equal(wrong.evaluated()[1], right.evaluated()[1])
    info = question(wrong, offer(wrong))["info"]
    assert "fit" in info or "particles" in info
    scale = right.evaluated()[1].std()
    means = wrong.evaluated_means()
    assert float((means - right.evaluated()[1]).abs().max()) < 4 * float(scale)


@pytest.mark.slow
def test_every_base_that_was_corrected_forgets_its_fits():
    def base(seed):
        return algorithms.gp_ucb(sessions.box(), Fitted(), width=2.0, seed=seed)

    def master(bases):
        return ContextwiseStrategy(bases, lambda z: int(z[0] > 3.0), context_domain=sessions.box())

    strategy = master([base(0), master([base(1), base(2)])])
    one, two = lambda: strategy.bases[0].refits, lambda: strategy.bases[1].bases[1].refits
    for step in range(16):
        trial = strategy.ask(context=[[2.5, -2.0], [4.0, -2.0]][step % 2])
        strategy.tell(trial.id, sessions.f(trial.x) + {4: 50.0, 5: 40.0}.get(step, 0.0))
    assert one().num_fits and two().num_fits
    for id in (4, 5):
        strategy.correct(id, sessions.f(strategy.history.trials[id].x))
    assert one().num_fits == two().num_fits == 0
    # A fit to right values is kept when another base is corrected.
    strategy.ask(context=[2.5, -2.0])
    fit = one().current
    strategy.correct(7, 0.2)
    assert (one().num_fits, one().current) == (1, fit)
    assert two().num_fits == 0
    again = master([base(0), master([base(1), base(2)])])
    again.replay(strategy.events)
    assert state(again) == state(strategy)
