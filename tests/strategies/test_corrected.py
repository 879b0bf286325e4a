"""Values that were wrong, and what is computed again once they are right."""

import math

import pytest
import torch

from botorch_ext import ContextwiseStrategy, Fitted, algorithms
from botorch_ext.exceptions import HorizonReached, UnknownTrialError, WaitingForObservations
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Asked, Corrected, Told
from botorch_ext.testing.nearness import assert_near
from botorch_ext.testing.sessions import plain, question
from botorch_ext.testing.states import state
from botorch_ext.widths import SelfNormalized
from tests.laws.registry import DELTA, LAMBDA, METHODS, SIGMA, B, entry_of
from tests.laws.scenarios import SCENARIOS, rbf, value_of
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import LAMBDA as OWN_LAMBDA
from tests.strategies.sessions import all_policies, both_domains, box, data, f, make
from tests.strategies.sessions import kernel as a_kernel

pytestmark = quietly

WRONG = {"regret_balancing": -2.4}
EXACT = [name for name in METHODS if entry_of(name).make().refits_after_correction is None]
FITTED = [name for name in METHODS if name not in EXACT]
every_exact_method = pytest.mark.parametrize("method", EXACT)


def made(method, seed=3):
    return entry_of(method).make(seed)


def offer(strategy):
    scenario = SCENARIOS["set, contexts" if strategy.context_space else "set"]
    return scenario.offer(len(strategy.history.trials), 3)


def steps(strategy, number, values=None):
    """Asks and tells; every fourth trial pends for a while."""
    for _ in range(number):
        try:
            trial = strategy.ask(**offer(strategy))
        except WaitingForObservations as waits:
            for id in waits.ids:
                tell(strategy, id, values)
            trial = strategy.ask(**offer(strategy))
        except HorizonReached:
            return
        if trial.id % 4 != 2:
            tell(strategy, trial.id, values)
        for id in strategy.pending:
            if len(strategy.history.trials) - id > 3:
                tell(strategy, id, values)


def tell(strategy, id, values=None):
    trial = strategy.history.trials[id]
    strategy.tell(id, (values or {}).get(id, value_of(trial.x, trial.context)))


def shown(strategy):
    """All that shows but how it came about."""
    of = state(strategy)
    for part in (of, *of.get("bases", [])):
        del part["events"]
        del part["report"]["corrected"]
    return of


def assert_same(one, other):
    assert_near(shown(one), shown(other))
    assert_near(question(one, offer(one)), question(other, offer(other)))


@pytest.mark.slow
@every_exact_method
def test_what_was_corrected_is_as_if_told_right(method):
    wrong, right = made(method), made(method)
    for strategy in (wrong, right):
        steps(strategy, 7)
    id = right.pending[0] if right.pending else right.ask(**offer(right)).id
    if not wrong.pending:
        wrong.ask(**offer(wrong))
    tell(right, id)
    wrong.tell(id, WRONG.get(method, -40.0))
    wrong.correct(id, right.history.values[id])
    assert_same(wrong, right)
    for strategy in (wrong, right):
        steps(strategy, 4)
    assert_same(wrong, right)
    # There and back: what was asked was chosen by right values, so all records are right again.
    ids = list(right.history.values)[1:9:3]
    for id in ids:
        wrong.correct(id, WRONG.get(method, 30.0))
    for id in ids:
        wrong.correct(id, right.history.values[id])
    assert set(ids) <= set(wrong.report()["corrected"])
    assert_same(wrong, right)


@both_domains
@all_policies
def test_the_posterior_is_that_of_the_right_values(domain, policy):
    X, Y = data(domain(), 3)
    strategy = make(domain(), policy, initial=(X, Y))
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
    model = KernelGP(a_kernel(), OWN_LAMBDA)
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
    refuted_by_it = set(strategy.rejected)
    assert refuted_by_it
    strategy.correct(1, value_of(strategy.history.trials[1].x, None))
    errors, bounds = {}, {}
    trials, known, data_when_asked = strategy.history.trials, [], {}
    for event in strategy.events:
        if isinstance(event, Asked):
            data_when_asked[event.trial.id] = list(known)
        elif isinstance(event, Told):
            known.append(event.id)
    for id, value in strategy.history.values.items():
        u = trials[id].info["model"]
        model = KernelGP(
            rbf((2.5, 1.0, 0.4)[u]), LAMBDA, mean=lambda X: X.new_full(X.shape[:-1], 0.7)
        )
        for before in data_when_asked[id]:
            y = strategy.history.values[before]
            model.add(trials[before].x[None], trials[before].x.new_tensor([y]))
        mean, std = model.mean_and_std(trials[id].x[None])
        n = model.num_observations
        width = float(SelfNormalized(B, SIGMA, DELTA / 2)(n + 1, model))
        enlargement = 0.05 * math.sqrt((n + 1) / LAMBDA)
        errors[u] = errors.get(u, 0.0) + value - float(mean)
        half = (width + enlargement) * float(std) + 0.05
        bounds[u] = bounds.get(u, 0.0) + half
    latest = {test.model: test for test in strategy.tests if test.model not in strategy.rejected}
    assert set(strategy.rejected) != refuted_by_it
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
    assert report["level"] > 0
    assert report["refuted"]
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
        first = own.ask(_round_length(own))
        for trial in first:
            own.tell(trial.id, value_of(trial.x, None))
    strategy.correct(0, 500.0)
    for own in (strategy, right):
        own.ask()
    assert len(strategy.rounds[1].survivors) < len(right.rounds[1].survivors)
    strategy.correct(0, right.history.values[0])
    assert torch.equal(strategy.rounds[1].survivors, right.rounds[1].survivors)
    assert strategy.rounds[0].closing.threshold == right.rounds[0].closing.threshold


def _round_length(strategy):
    probe = strategy.clone()
    probe.ask()
    return probe.rounds[0].length


@both_domains
def test_what_has_no_value_cannot_be_corrected(domain):
    strategy = make(domain())
    strategy.ask(4)
    strategy.tell(0, 0.5)
    strategy.abandon(1)
    strategy.abandon(2, failed=True)
    attached = strategy.attach(domain().sample(1, seed=0)[0], 7.0).id
    before = state(strategy)
    with pytest.raises(UnknownTrialError, match="trials that have a value, got 3: pending"):
        strategy.correct(3, 0.1)
    for value in (float("nan"), float("inf"), None, "1.5", torch.zeros(2)):
        with pytest.raises(ValueError, match="value must be"):
            strategy.replay([Corrected(0, value)])
    assert state(strategy) == before
    strategy.correct(attached, 0.7)
    assert strategy.evaluated()[1].tolist() == [0.5, 0.7]


def test_a_correction_out_of_range_is_refused():
    strategy = made("regret_balancing")
    trial = strategy.ask()
    strategy.tell(trial.id, 0.2)
    before = [plain(event) for event in strategy.events]
    with pytest.raises(ValueError, match="value must be in reward_range"):
        strategy.correct(trial.id, 99.0)
    assert [plain(event) for event in strategy.events] == before


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
        return algorithms.gp_ucb(box(), Fitted(), width=2.0, seed=seed)

    def master(bases):
        return ContextwiseStrategy(bases, lambda z: int(z[0] > 3.0), context_domain=box())

    strategy = master([base(0), master([base(1), base(2)])])
    one, two = lambda: strategy.bases[0].refits, lambda: strategy.bases[1].bases[1].refits
    for step in range(16):
        trial = strategy.ask(context=[[2.5, -2.0], [4.0, -2.0]][step % 2])
        strategy.tell(trial.id, f(trial.x) + {4: 50.0, 5: 40.0}.get(step, 0.0))
    assert one().num_fits and two().num_fits
    for id in (4, 5):
        strategy.correct(id, f(strategy.history.trials[id].x))
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
