"""Attached results that are taken back, and notes that are kept with trials."""

from typing import Any

import pytest
import torch

from botorch_ext import ContextwiseStrategy, algorithms
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.strategies import (
    Abandoned,
    Attached,
    Corrected,
    Failed,
    Noted,
    Told,
    Withdrawn,
)
from botorch_ext.testing.states import question, state
from botorch_ext.testing.subjects import others
from tests.laws.registry import entry_of
from tests.laws.scenarios import quietly, value_of
from tests.strategies import sessions
from tests.strategies.test_results import every_method, made_on_set, some_data

pytestmark = quietly


def attach(strategy, place, value=None):
    X, Y = some_data()
    value = float(Y[place]) if value is None else value
    return strategy.attach(X[place], value, outcomes=others(strategy, value)).id


@every_method
@pytest.mark.parametrize("failed", [False, True])
def test_a_withdrawn_result_is_as_if_it_had_never_been_attached(method, failed):
    strategy, never = made_on_set(method), made_on_set(method)
    attach(strategy, 0)
    if failed:
        wrong = strategy.attach(some_data()[0][1], failed=True).id
    else:
        wrong = attach(strategy, 1, 7.5)
        strategy.correct(wrong, 9.5, others(strategy, 9.5))
    attach(strategy, 2)
    report = strategy.report()
    assert report["failed"] == report["abandoned"] == [wrong] * failed
    assert report["attached"] == [0, *[wrong] * (not failed), 2]
    strategy.withdraw(wrong)
    assert strategy.report()["failed"] == strategy.report()["abandoned"] == []
    for place in (0, 2):
        attach(never, place)
    assert strategy.report()["withdrawn"] == [1] and strategy.report()["attached"] == [0, 2]
    assert strategy.history.num_told == strategy.history.num_asked == 0
    for one, other in zip(strategy.evaluated(), never.evaluated(), strict=True):
        assert torch.equal(one, other)
    # A withdrawn trial is a step, and with the steps grow the candidates.
    if method == "random" or method.endswith("growing"):
        return
    if not entry_of(method).refits_after_correction:
        means = strategy.evaluated_means(), never.evaluated_means()
        torch.testing.assert_close(*means, rtol=0, atol=1e-9)
        if not entry_of(method).depends_on_trial_number:
            asked, expected = question(strategy, {}), question(never, {})
            assert asked["x"] == expected["x"]
            for name in ("mean", "std"):
                if name in expected["info"]:
                    assert asked["info"][name] == pytest.approx(expected["info"][name], abs=1e-9)


@pytest.mark.parametrize("method", ["gp_ucb", "he_gp_ucb", "integrated_ei"])
def test_a_study_goes_on_from_the_events_of_a_withdrawn_result(method):
    strategy = made_on_set(method)
    first = strategy.ask()
    wrong = attach(strategy, 1, 7.5)
    for trial in (first, *(strategy.ask() for _ in range(4))):
        value = value_of(trial.x, None)
        strategy.tell(trial, value, others(strategy, value))
    strategy.note(wrong, "of another batch")
    strategy.withdraw(wrong)
    question(strategy, {})
    strategy.note(0, "dull")
    assert strategy.history.notes == {0: "dull", wrong: "of another batch"}
    assert wrong not in strategy.history.values and len(strategy.evaluated()[0]) == 5
    known: Any = strategy
    for play in getattr(known, "plays", []):
        assert play.t <= known.num_data == 5
    again, bit_by_bit = made_on_set(method), made_on_set(method)
    again.replay(strategy.events)
    for event in strategy.events:
        bit_by_bit.replay([event])
    assert state(again) == state(bit_by_bit) == state(strategy)
    assert question(again, {}) == question(strategy, {})


@every_method
def test_a_withdrawn_failure_is_as_if_the_trial_had_not_failed(method):
    strategy, never = made_on_set(method), made_on_set(method)
    for own, failed in ((strategy, True), (never, False)):
        for step in range(4):
            trial = own.ask()
            value = value_of(trial.x, None)
            if step == 1:
                own.abandon(trial, failed=failed)
                own.withdraw(trial) if failed else None
            else:
                own.tell(trial, value, others(own, value))
    assert strategy.report()["failed"] == [] and strategy.report()["abandoned"] == [1]
    assert strategy.history.trials[-1].x.equal(never.history.trials[-1].x)
    for one, other in zip(strategy.evaluated(), never.evaluated(), strict=True):
        assert torch.equal(one, other)
    again = made_on_set(method)
    again.replay(strategy.events)
    assert state(again) == state(strategy)
    asked = question(strategy, {})
    assert question(again, {}) == asked
    if not entry_of(method).refits_after_correction:
        assert asked["x"] == question(never, {})["x"]


def test_particles_that_were_fewer_for_more_results_are_replayed(monkeypatch):
    monkeypatch.setattr("botorch_ext.hyperparameters.particles._FEWER_FROM", (8,))
    strategy = algorithms.integrated_ei(sessions.box())
    fresh, sizes = strategy.clone(), []
    for number, x in enumerate(sessions.box().sample(9, seed=2)):
        strategy.attach(x, sessions.f(x))
        if number >= 7:
            sizes.append(len(strategy.ask().info["particles"]["values"]))
    strategy.withdraw(strategy.history.attached[-1])
    fresh.replay(strategy.events)
    assert state(fresh) == state(strategy)
    assert sizes[1] < sizes[0]


def test_models_choose_no_longer_once_too_few_results_are_left():
    """The trials that they chose are replayed as such, and the next one is a first point again."""
    strategy = algorithms.integrated_ei(sessions.box())
    fresh = strategy.clone()
    X = sessions.box().sample(strategy.least_initial, seed=2)
    for x in X:
        strategy.attach(x, sessions.f(x))
    chosen = strategy.ask()
    assert "initial" not in chosen.info
    for id in (0, 1):  # the pending trial counts for one of them
        strategy.withdraw(id)
    assert "initial" in strategy.ask().info
    strategy.tell(chosen, 0.4)
    fresh.replay(strategy.events)
    assert state(fresh) == state(strategy)
    assert "initial" not in strategy.ask().info


def test_a_context_has_a_model_that_forgets_too():
    def made():
        bases = [sessions.make(sessions.box()) for _ in range(2)]
        return ContextwiseStrategy(bases, lambda z: int(z[0] > 3.0), context_domain=sessions.box())

    strategy, never = made(), made()
    first, second = [2.5, -2.0], [4.0, -2.0]
    x, y = sessions.box().sample(2, seed=1)
    for own in (strategy, never):
        own.attach(x, 0.3, first)
    wrong = strategy.attach(y, 9.0, second)
    for own in (strategy, never):
        own.attach(y, 0.2, second)
    strategy.ask(context=second)
    strategy.withdraw(wrong)
    assert torch.equal(strategy.evaluated()[1], never.evaluated()[1])
    means = strategy.evaluated_means(), never.evaluated_means()
    torch.testing.assert_close(*means, rtol=0, atol=1e-9)
    assert [base["num_told"] for base in strategy.report()["bases"]] == [0, 0]
    again = made()
    again.replay(strategy.events)
    assert state(again) == state(strategy)
    asked = [question(own, {"context": second}) for own in (again, strategy)]
    assert asked[0] == asked[1]


@pytest.mark.parametrize("num_failed", [0, 3, 5])
def test_a_base_counts_failures_as_the_method_alone(num_failed):
    alone = algorithms.integrated_ei(sessions.box(), context_domain=1)
    bases = [algorithms.integrated_ei(sessions.box(), context_domain=1) for _ in range(2)]
    master = ContextwiseStrategy(bases, lambda z: 0, context_domain=1)
    for own in (alone, master):
        for x in sessions.box().sample(num_failed, seed=1):
            own.attach(x, context=[0.5], failed=True)
    history = master.bases[0].history
    assert history.failed == history.abandoned == alone.history.failed
    asked = [[own.ask(context=[0.5]) for _ in range(7)] for own in (alone, master)]
    firsts = [trial.info.get("initial", False) for trial in asked[0]]
    assert firsts == [trial.info["decision"].get("initial", False) for trial in asked[1]]


def test_what_cannot_be_withdrawn_or_noted_is_refused_as_a_whole():
    strategy = sessions.make(sessions.box())
    x = sessions.box().sample(1, seed=0)[0]
    told, pending, gone = strategy.ask(3)
    strategy.tell(told, 0.3)
    strategy.abandon(gone)
    withdrawn = strategy.attach(x, 0.1)
    strategy.withdraw(withdrawn)
    before = state(strategy)
    for id, why in (
        (told.id, r"already told \(0.3\); correct changes a value"),
        (pending.id, "pending; abandon gives it up"),
        (gone.id, "abandoned"),
        (withdrawn.id, "withdrawn"),
        (99, "never asked"),
        (-1, "never asked"),
    ):
        for event in (Withdrawn(id), Noted(99, "x")):
            with pytest.raises(UnknownTrialError, match=r"id must be one of the (attached|trials)"):
                strategy.replay([event])
        with pytest.raises(
            UnknownTrialError, match=f"attached results or failed trials, got {id}: {why}"
        ):
            strategy.withdraw(id)
    with pytest.raises(UnknownTrialError, match="withdrawn; attach adds its result"):
        strategy.correct(withdrawn, 0.3)
    with pytest.raises(UnknownTrialError, match="pending trials, got 3: withdrawn"):
        strategy.tell(withdrawn, 0.3)
    wrong: Any
    for given in ({"value": 0.1}, {"std": 0.1}, {"outcomes": {}}):
        with pytest.raises(ValueError, match="must be None for an evaluation that failed"):
            strategy.attach(x, failed=True, **given)
    with pytest.raises(ValueError, match="value must be one number, got None for trial 4"):
        strategy.attach(x)
    for wrong in (None, 3, "\ud800"):
        with pytest.raises(ValueError, match=r"text must be a text, got .* for trial 0"):
            strategy.note(0, wrong)
    assert state(strategy) == before
    trial = strategy.history.trials[withdrawn.id]
    fresh = sessions.make(sessions.box())
    start = list(strategy.events[:5])
    for wrong in (
        [*start, Attached(trial, float("nan")), Withdrawn(3)],
        [*start, Attached(trial, 0.1), Withdrawn(3), Withdrawn(3)],
        [*start, Attached(trial, 0.1), Withdrawn(3), Corrected(3, 0.2)],
        [*start, Withdrawn(3), Attached(trial, 0.1)],
    ):
        with pytest.raises(ValueError, match=r"value must be finite|id must be one of the"):
            fresh.replay(wrong)
    trial = strategy.history.trials[withdrawn.id]
    for wrong in (
        [*start, Failed(trial), Corrected(3, 0.2)],
        [*start, Failed(trial), Corrected(3, 0.2), Withdrawn(3)],
        [*start, Failed(trial), Withdrawn(3), Withdrawn(3)],
        [*start, Withdrawn(3), Failed(trial)],
        [*start, Failed(trial), Told(3, 0.2)],
        [*start, Failed(trial), Abandoned(3)],
        [*start, Failed(strategy.history.trials[0])],
    ):
        with pytest.raises(ValueError, match=r"id must be|info of trial 0 must be"):
            fresh.replay(wrong)
    failed = Abandoned(pending.id, failed=True)
    for wrong in (
        [*start, Withdrawn(pending.id), failed],
        [*start, failed, Withdrawn(pending.id), Withdrawn(pending.id)],
        [*start, failed, Corrected(pending.id, 0.2), Withdrawn(pending.id)],
    ):
        with pytest.raises(UnknownTrialError, match="id must be one of the"):
            fresh.replay(wrong)
    assert fresh.events == ()
    fresh.replay([*start, Attached(trial, 0.1), Corrected(3, 0.2), Withdrawn(3)])
    assert fresh.history.withdrawn == fresh.history.corrected == {3}


def test_notes_replace_each_other_and_change_nothing_else():
    strategy = sessions.make(sessions.box())
    strategy.tell(strategy.ask(), 0.3)
    before = strategy.report(), question(strategy.clone(), {})
    strategy.note(0, "dull")
    strategy.note(0, "dull, at pH 7\n=1+1")
    assert strategy.history.notes == {0: "dull, at pH 7\n=1+1"}
    strategy.correct(0, 0.3)
    assert strategy.history.notes == {0: "dull, at pH 7\n=1+1"}
    strategy.note(0, "")
    assert strategy.history.notes == {}
    assert question(strategy, {}) == before[1]
