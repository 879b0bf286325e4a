"""Spaces that are widened while a study goes on."""

import math
import pickle
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import algorithms, strategies
from botorch_ext.parameters import Fixed, Ordered
from botorch_ext.strategies import Asked, Attached, Widened
from botorch_ext.testing.machine import put_through
from botorch_ext.testing.states import question, state
from botorch_ext.testing.subjects import Subject
from tests.laws.scenarios import quietly
from tests.oracles.particles import model_of

pytestmark = quietly

OLD: dict[str, Any] = {
    "temperature": bx.Real(20, 80, unit="°C", digits=1),
    "solvent": bx.Choice(["water", "ethanol"]),
    "rinses": bx.Integer(1, 3),
}
NEW: dict[str, Any] = OLD | {
    "temperature": bx.Real(20, 120, unit="°C", digits=1),
    "solvent": bx.Choice(["water", "ethanol", "dmso"]),
}
FEW = bx.Particles(8)


def made(parameters=None, **options):
    return algorithms.integrated_ei(bx.Space(parameters or OLD), FEW, **options)


def wider(strategy, *names):
    strategy.widen({name: NEW[name] for name in names or ("temperature", "solvent")})


def value(params):
    return params["temperature"] / 100 + 0.2 * (params["solvent"] == "dmso") - params["rinses"] / 9


def told(strategy, num=1):
    for trial in strategy.ask(num):
        strategy.tell(trial, value(trial.params))


def attached(strategy, num, seed=0):
    """Results at points of the old space."""
    space = bx.Space(OLD)
    for x in space.sample(num, seed=seed):
        params = space.params(x)
        strategy.attach(params, value(params) + 0.1 * math.sin(7 * float(x[0])))


def test_a_widened_strategy_is_one_of_the_wider_space_with_the_same_results():
    strategy, of_wide = made(), made(NEW)
    attached(strategy, 9)
    strategy.report()  # particles are known
    wider(strategy)
    attached(of_wide, 9)
    for own in (strategy, of_wide):
        own.attach({"temperature": 119.5, "solvent": "dmso", "rinses": 2}, 1.1)
    X = of_wide.domain.sample(20, seed=3)
    assert torch.equal(strategy.predict(X).mean, of_wide.predict(X).mean)
    assert torch.equal(strategy.recommended().x, of_wide.recommended().x)
    first = [own.importance(num_samples=64).first_order for own in (strategy, of_wide)]
    assert torch.equal(*first)
    assert question(strategy, {}) == question(of_wide, {})
    assert strategy.num_first_points == of_wide.num_first_points


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_contexts_and_constraints_stay(dtype):
    def made_of(parameters):
        space = bx.Space(parameters, constraints=([[1.0, 20.0, 0.0]], [130.0]), dtype=dtype)
        return algorithms.integrated_ei(space, FEW, context_domain=bx.Box([(0, 1)], dtype=dtype))

    strategy, of_wide = made_of(OLD), made_of(NEW)
    for own in (strategy, of_wide):
        for z, x in enumerate(bx.Space(OLD).sample(8, seed=1)):
            own.attach(bx.Space(OLD).params(x), float(x[0]) / 50, [z / 8])
    strategy.widen(NEW)
    asked = [question(own, {"context": [0.25]}) for own in (strategy, of_wide)]
    assert asked[0] == asked[1]
    at = {"temperature": 119.0, "rinses": 1}
    for own in (strategy, of_wide):
        assert own.domain.contains([at | {"solvent": "water"}]).item()
        assert not own.domain.contains([at | {"solvent": "ethanol"}]).item()
    assert strategy.domain.dtype == dtype and repr(strategy.domain) == repr(of_wide.domain)


def test_the_posterior_after_widening_is_that_of_dense_algebra():
    """Features are in sides of the wider space; a choice has an entry for each value."""
    strategy = made({"a": bx.Real(0, 2), "b": bx.Choice(["x", "y"])})
    for a, b, y in zip([0.1, 0.6, 1.1, 1.9, 1.5], "xyxxy", [0.3, 0.2, 0.9, -0.4, 0.5], strict=True):
        strategy.attach({"a": a, "b": b}, y)
    strategy.posterior  # noqa: B018 - keeps models of the old space
    strategy.widen(a=bx.Real(-1, 3), b=bx.Choice(["x", "y", "z"]))
    X = strategy.evaluated()[0]
    at = torch.tensor([[2.5, 2.0], [0.6, 1.0], [-0.7, 0.0]], dtype=torch.float64)

    def features(X):
        codes = torch.nn.functional.one_hot(X[:, 1].long(), 3) * math.sqrt(0.5)
        return torch.cat([(X[:, :1] + 1) / 4, codes], dim=-1)

    ensemble, means = strategy.posterior, []
    y = ensemble.outcomes.values
    for particle in ensemble.parameters:
        kernel, noise = model_of(particle[[0, 1, 1, 1, 2, 3]])
        U, V = features(X), features(at)
        K = (kernel(U, U) + noise * torch.eye(len(X))).inverse()
        constant = (K @ y).sum() / K.sum()
        means.append(constant + kernel(V, U) @ K @ (y - constant))
    dense = ensemble.outcomes.untransformed(torch.stack(means)).mean(dim=0)
    assert_close(strategy.means_at(at), dense, rtol=0, atol=1e-9)


def test_results_that_lay_outside_count_as_inside():
    strategy = made(minimize=True)
    attached(strategy, 3)
    hot = {"temperature": 95.5, "solvent": "water", "rinses": 2}
    hotter, between = hot | {"temperature": 130.0}, hot | {"temperature": 61.55}
    for params, cost in ((hot, -5.0), (hotter, -7.0), (between, -6.0), (hot, -9.0)):
        strategy.attach(params, cost, outside=True)
    strategy.withdraw(6)
    assert strategy.history.outside == {3, 4, 5, 6} and strategy.report()["best"]["mean"] > -3
    wider(strategy, "temperature")
    event: Any = strategy.events[-1]
    assert event == Widened(7, {"temperature": NEW["temperature"]}, (3, 6))
    assert strategy.history.outside == {4, 5}
    assert strategy.report()["best_observation"] == -5.0
    trials = strategy.history.trials
    assert [trial.params for trial in trials][3:] == [hot, hotter, between, hot]
    assert [trial.info for trial in trials][3:5] == [
        {"attached": True},
        {"attached": True, "outside": True},
    ]
    strategy.widen(temperature=replace(NEW["temperature"], high=140.0))
    assert strategy.history.outside == {5}
    strategy.correct(3, -5.5)
    assert strategy.history.outside == {5} and strategy.report()["best_observation"] == -7.0
    strategy.withdraw(4)
    assert strategy.history.outside == {5} and strategy.report()["best_observation"] == -5.5
    again = made(minimize=True)
    again.replay(strategy.events)
    assert state(again) == state(strategy)


@pytest.mark.parametrize("of_results", [False, True])
def test_events_are_replayed_bit_for_bit(of_results):
    """Also one by one, after a correction and a withdrawal, and after two widenings."""
    strategy = made(num_initial=2)
    fresh, one_by_one = made(num_initial=2), made(num_initial=2)
    attached(strategy, 8)
    first, *_ = strategy.ask(3)
    wider(strategy, "temperature")
    assert strategy.pending == [8, 9, 10]
    strategy.tell(first, 0.4)
    strategy.ask(2)
    if of_results:
        strategy.correct(1, 0.7)
    wider(strategy, "solvent")
    strategy.ask()
    if of_results:
        strategy.withdraw(2)
        told(strategy)
        strategy.correct(first, 0.5)
    strategy.note(0, "dull")
    asked = question(strategy.clone(), {})
    fresh.replay(pickle.loads(pickle.dumps(strategy.events)))
    for event in strategy.events:
        one_by_one.replay([event])
    assert state(fresh) == state(one_by_one) == state(strategy)
    for own in (fresh, one_by_one, strategy.clone(), pickle.loads(pickle.dumps(strategy))):
        assert own.domain.parameters == {**OLD, **NEW}
        assert question(own, {}) == asked
    before = state(strategy)
    after = strategy.after(Widened(len(strategy.history.trials), {"rinses": bx.Integer(0, 4)}))
    assert after.domain.parameters["rinses"].high == 4 and state(strategy) == before


def test_laws_hold_in_a_session_with_several_widenings():
    kinds = ["attach"] * 8 + [
        *("ask", "widen", "ask", "tell", "interrupt", "widen", "consider", "correct", "withdraw"),
        *("ask", "widen", "replay", "fail", "ask", "tell"),
    ]
    subject = Subject(
        lambda seed: made(seed=seed, num_initial=0), is_random=True, refits_after_correction=True
    )
    session = [(kind, 0.37 * place % 1.0, 0.1) for place, kind in enumerate(kinds)]
    machine = put_through(subject, session)
    assert machine.strategy.domain.parameters["temperature"].high == pytest.approx(80.3)


def test_points_in_the_new_part_are_asked():
    strategy = made()
    attached(strategy, 8)
    told(strategy)
    wider(strategy)
    found = []
    for _ in range(4):
        (trial,) = strategy.ask(1)
        found.append(trial.params)
        strategy.tell(trial, value(trial.params))
    assert max(params["temperature"] for params in found) > 110
    assert any(params["solvent"] == "dmso" for params in found)


@pytest.mark.parametrize("method", ["integrated_ei", "random", "credible"])
def test_first_points_that_were_not_asked_are_those_of_the_wider_space(method):
    def make(parameters):
        space = bx.Space(parameters)
        if method == "random":
            return strategies.RandomSearch(space, num_initial=5)
        if method == "credible":
            return strategies.CredibleParticles(space, FEW, num_initial=5)
        return algorithms.integrated_ei(space, FEW, num_initial=5)

    strategy, old, new = make(OLD), make(OLD), make(NEW)
    asked = strategy.ask(2)
    wider(strategy)
    asked += strategy.ask(3)
    expected = [*old.ask(5)[:2], *new.ask(5)[2:]]
    assert [trial.params for trial in asked] == [trial.params for trial in expected]
    assert strategy.num_first_points == 5
    for trial in asked:
        strategy.tell(trial, value(trial.params))
    asked = question(strategy, {})
    fresh = make(OLD)
    fresh.replay(strategy.events[:-1])
    assert question(fresh, {}) == asked


def test_finite_lists_have_the_new_points():
    old = {"a": bx.Real(0, 1, step=0.5), "b": bx.Choice(["x", "y"])}
    strategy = made(old, deterministic=True)
    for trial in strategy.ask(6):
        strategy.tell(trial, trial.params["a"])
    with pytest.raises(bx.exceptions.HorizonReached):
        strategy.ask()
    strategy.widen(a=bx.Real(-0.5, 1.5, step=0.5))
    assert strategy.ask().params["a"] == 1.5
    assert {trial.params["a"] for trial in strategy.ask(3)} == {-0.5, 1.5}


def test_points_keep_their_features_where_a_parameter_does_not_count():
    old = {"model": bx.Choice(["linear", "forest"]), "depth": bx.Integer(1, 9)}
    deep = {"depth": bx.Integer(1, 99)}

    def made_of(parameters):
        space = bx.Space(parameters, conditions={"depth": ("model", ["forest"])})
        return algorithms.integrated_ei(space, FEW)

    strategy, of_wide = made_of(old), made_of(old | deep)
    rows = [{"model": "forest", "depth": depth} for depth in (2, 5, 9)] + [{"model": "linear"}] * 2
    for row, params in enumerate(rows):
        strategy.attach(params, row / 7)
        of_wide.attach(params, row / 7)
    strategy.widen(deep)
    X = of_wide.domain.sample(9, seed=1)
    assert_close(strategy.predict(X).mean, of_wide.predict(X).mean, rtol=0, atol=1e-12)


CONTINUOUS = bx.Real(0.5, 8)
# Its steps have decimals that are too long to be counted exactly.
THIRDS = bx.Real(0, 2, step=1 / 3)


@pytest.mark.parametrize(
    ("old", "new", "growth"),
    [
        (CONTINUOUS, bx.Real(1, 9), "a lower low or a higher high"),
        (CONTINUOUS, bx.Real(0, 7.9), "a lower low or a higher high"),
        (CONTINUOUS, bx.Real(0, 9, digits=1), "on the same steps"),
        (CONTINUOUS, bx.Real(0.1, 9, log=True), ""),
        (CONTINUOUS, bx.Real(0, 9, unit="g"), ""),
        (CONTINUOUS, bx.Real(0, 9, significant=3), ""),
        (CONTINUOUS, bx.Integer(0, 9), ""),
        (bx.Real(0, 1, step=0.5), bx.Real(-0.2, 1, step=0.5), "on the same steps"),
        (THIRDS, bx.Real(-1, 2, step=1 / 3), "on the same steps"),
        (bx.Integer(0, 10, step=5), bx.Integer(-1, 10, step=5), "on the same steps"),
        (bx.Integer(0, 10), bx.Real(0, 11), ""),
        (bx.Choice(["a", "b"]), bx.Choice(["b", "a", "c"]), "further values at the end"),
        (bx.Choice(["a", "b"]), bx.Choice(["a", "c"]), "further values at the end"),
        (bx.Choice(["a", "b"]), bx.Choice(["a"]), "further values at the end"),
        (bx.Choice([1, 0]), bx.Choice([True, False, 3]), "further values at the end"),
        (bx.Choice(["a", "b"]), Ordered(["a", "b", "c"]), ""),
        (bx.Choice(["a", "b"]), bx.Choice({"a": 1, "b": 2, "c": 3}), ""),
        (bx.Choice({"a": 1, "b": 2}), bx.Choice({"a": 1, "b": 3, "c": 2}), ""),
        (Ordered([1, 2]), Ordered([0, 1, 2]), "further values at the end"),
        (Fixed("a"), bx.Choice(["a", "b"]), "single value has no column"),
        (bx.Real(1, 1), bx.Real(1, 2), "single value has no column"),
    ],
)
def test_what_would_change_points_is_refused(old, new, growth):
    strategy = made({"p q": old, "r": bx.Real(0, 1)})
    before = state(strategy)
    for change in (
        lambda: strategy.widen({"p q": new, "r": bx.Real(0, 2)}),
        lambda: strategy.replay([Widened(0, {"p q": new})]),
    ):
        with pytest.raises(ValueError, match=r"p q must (be|stay) .*, got ") as error:
            change()
        assert growth in str(error.value) and repr(old) in str(error.value)
    assert state(strategy) == before


def test_wrong_calls_are_refused_by_name_and_change_nothing():
    strategy, more = made(), {"temperature": NEW["temperature"]}
    attached(strategy, 2)
    before, wrong = state(strategy), strategy.widen
    for call, match in (
        (lambda: wrong(), "parameters must have one that is wider"),
        (lambda: wrong(OLD), "parameters must have one that is wider"),
        (
            lambda: wrong(temprature=bx.Real(0, 1)),
            "parameters must only have names of .*temperature",
        ),
        (lambda: wrong(temperature=(20, 120)), "temperature must be a bx.Real"),
        (lambda: wrong([NEW]), "parameters must be a dict"),
        (lambda: wrong(more, **more), "only once, got 'temperature' twice"),
        (lambda: strategy.replay([Widened(1, more)]), "id must be 2, the next one, got 1"),
        (lambda: strategy.replay([Widened(2, more, (1,))]), "inside must be ids of outside"),
        (lambda: strategy.replay([Widened(2, [NEW])]), "parameters must be a dict"),
        (lambda: strategy.replay([Widened("2", more)]), "id must be"),
        (lambda: strategy.replay([Widened(2, more, None)]), "inside must be ids"),
        (lambda: strategy.replay([Widened(2, more), Widened(2, more)]), "one that is wider"),
    ):
        with pytest.raises(ValueError, match=match):
            call()
        assert state(strategy) == before


def test_points_of_the_wider_space_are_refused_before_it_was_widened():
    strategy = made()
    wider(strategy)
    trial = strategy.attach({"temperature": 110.0, "solvent": "dmso", "rinses": 1}, 1.0)
    asked = strategy.ask()
    widened, attachment, question = strategy.events
    assert isinstance(attachment, Attached) and isinstance(question, Asked)
    fresh = made()
    with pytest.raises(ValueError, match="x of trial 0"):
        fresh.replay([attachment])
    fresh.replay([widened, attachment, question])
    assert fresh.history.trials[0].params == trial.params
    assert fresh.history.trials[1].params == asked.params


def test_methods_of_one_domain_refuse():
    space = bx.Space(OLD)
    for strategy in (
        algorithms.gp_bucb(space, bx.Fitted(), width=2.0, num_initial=2),
        strategies.ContextwiseStrategy([made(), made()], lambda z: 0, context_domain=1),
    ):
        before, who = state(strategy), type(strategy).__name__
        with pytest.raises(ValueError, match=f"{who} cannot be widened: its analysis is for one"):
            wider(strategy)
        with pytest.raises(ValueError, match="its analysis is for one domain"):
            strategy.replay([Widened(0, {"temperature": NEW["temperature"]})])
        assert state(strategy) == before
    for domain in (space.without_names(), bx.FiniteSet(space.sample(9, seed=0))):
        with pytest.raises(ValueError, match="must have a Space to be widened"):
            wider(algorithms.integrated_ei(domain, FEW))
