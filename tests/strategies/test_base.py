"""Ask, tell and abandon as a fold over events."""

import pytest
import torch

from botorch_ext.exceptions import (
    HorizonReached,
    NoObservationsError,
    UnknownTrialError,
    WaitingForObservations,
)
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Abandoned, Asked, OptimisticStrategy, Told, Trial
from botorch_ext.strategies.adaptive.searches import Highest
from botorch_ext.testing.states import state
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import (
    LAMBDA,
    InRounds,
    all_policies,
    both_domains,
    box,
    data,
    finite,
    kernel,
    make,
    plain,
    play,
    script,
    snapshot,
)

# --- asking and telling ---------------------------------------------------------------------------


@both_domains
def test_trials_are_numbered_answered_in_any_order_and_given_up(domain):
    strategy = make(domain())
    first = strategy.ask()
    batch = strategy.ask(4)
    assert isinstance(first, Trial)
    assert [type(trial) for trial in batch] == [Trial] * 4
    assert [first.id, *(trial.id for trial in batch)] == [0, 1, 2, 3, 4]
    assert all(trial.context is None for trial in batch)
    assert bool(strategy.domain.contains(torch.stack([t.x for t in batch])).all())
    assert strategy.pending == [0, 1, 2, 3, 4]
    strategy.tell(3, 0.5)
    strategy.abandon(1)
    strategy.tell(0, torch.tensor(-0.25, dtype=torch.float64))
    assert strategy.pending == [2, 4]
    assert [t.id for t in strategy.ask(1)] == [5]  # a list of one
    strategy.tell(4, 1)
    assert strategy.pending == [2, 5]
    expected = [("asked", i) for i in range(5)]
    expected += [Told(3, 0.5), Abandoned(1), Told(0, -0.25), ("asked", 5), Told(4, 1.0)]
    assert [e if not isinstance(e, Asked) else ("asked", e.trial.id) for e in strategy.events] == (
        expected
    )
    X, Y = strategy.history.told_points(strategy.domain.like)
    trials = strategy.history.trials
    assert torch.equal(X, torch.stack([trials[3].x, trials[0].x, trials[4].x]))
    assert Y.tolist() == [0.5, -0.25, 1.0]


@both_domains
def test_hallucination_spreads_a_list(domain):
    strategy = make(domain())
    strategy.tell(strategy.ask().id, 0.3)
    assert len({tuple(trial.x.tolist()) for trial in strategy.ask(5)}) == 5


def test_a_method_that_waits_or_ends_refuses_a_batch_as_a_whole():
    strategy = InRounds(finite(), size=3, horizon=5)
    strategy.ask(2)
    before = strategy.events
    with pytest.raises(WaitingForObservations, match="1 trials can be asked, got 2") as waits:
        strategy.ask(2)
    assert (waits.value.ids, waits.value.available) == ([0, 1], 1)
    assert [plain(e) for e in strategy.events] == [plain(e) for e in before]
    assert strategy.ask().id == 2
    with pytest.raises(WaitingForObservations):
        strategy.ask()
    for id in range(3):
        strategy.tell(id, 0.1)
    with pytest.raises(HorizonReached, match="2 trials are left") as ends:
        strategy.ask(3)
    assert ends.value.horizon == 5
    assert [trial.id for trial in strategy.ask(2)] == [3, 4]
    with pytest.raises(HorizonReached):
        strategy.ask()


def test_no_context_is_no_context():
    one, other = make(finite()), make(finite())
    assert plain(Asked(one.ask(context=None))) == plain(Asked(other.ask()))
    assert [trial.id for trial in one.ask(2, context=None)] == [1, 2]


# --- the record cannot be spoilt from outside -----------------------------------------------------


@both_domains
def test_given_data_is_copied(domain):
    X, Y = data(domain(), 5)
    kept, changed = make(domain(), initial=(X.clone(), Y.clone())), make(domain(), initial=(X, Y))
    X.fill_(3.0)
    Y.fill_(7.0)
    assert kept.best()[0].tolist() == changed.best()[0].tolist()
    assert plain(Asked(kept.ask())) == plain(Asked(changed.ask()))
    assert snapshot(kept) == snapshot(changed)


# --- replay ---------------------------------------------------------------------------------------


@all_policies
def test_a_replay_that_grows_all_buffers_gives_the_same_state_and_the_same_question(policy):
    def fresh():
        return make(finite(), policy, initial=data(finite(), 5), num_initial=3)

    played = fresh()
    play(played, script(190, seed=11))
    assert len(played.pending) > 3
    assert played.history.abandoned
    assert len(played.history.trials) > 70
    report = played.report()
    assert (report["num_initial"], report["num_initial_data"]) == (3, 5)
    if policy == "timeout":
        assert played.report()["told_too_late"]
    replayed = fresh()
    replayed.replay(played.events)
    assert snapshot(replayed) == snapshot(played)
    for _ in range(3):
        a, b = played.ask(), replayed.ask()
        assert torch.equal(a.x, b.x)
        assert (a.id, a.info) == (b.id, b.info)
    assert snapshot(replayed) == snapshot(played)


def asked(id, x, **info):
    return Asked(Trial(id, torch.tensor(x, dtype=torch.float64), None, info))


@pytest.mark.parametrize(
    ("domain", "event", "message"),
    [
        (box, Told(17, 1.0), "id must be one of the pending trials, got 17: never asked"),
        (box, Told(0, 1.0), "got 0: already told"),
        (box, Abandoned(0), "got 0: already told"),
        (box, Told(1, 1.0), "got 1: abandoned"),
        (box, Abandoned(1), "got 1: abandoned"),
        (box, Told(2, float("nan")), "value must be finite, got nan for trial 2"),
        (box, asked(2, [3.0, -2.0]), "id must be 3, the next one, got 2"),
        (box, asked(5, [3.0, -2.0]), "id must be 3, the next one, got 5"),
        (box, asked(3, [3.0, -1.0]), "x of trial 3 must lie in the box"),
        (box, asked(3, [3.0]), r"x of trial 3 must have shape \(n, 2\)"),
        (box, asked(3, [3.0, float("inf")]), "x of trial 3 must be finite"),
        (finite, asked(3, [3.1, -2.0], index=0), "x of trial 3 must be one of the 54 points"),
        (finite, asked(3, [2.0, -3.0], index=1), "x of trial 3 .*index, got index 1"),
        (finite, asked(3, [2.0, -3.0], index=-54), "x of trial 3 .*index, got index -54"),
        (finite, asked(3, [2.0, -3.0]), "x of trial 3 .*index, got index None"),
        (box, asked(3, [[3.0, -2.0]]), r"x of trial 3 must have shape \(2,\), got \(1, 2\)"),
        (finite, asked(3, [[2.0, -3.0]], index=0), r"x of trial 3 must have shape \(2,\), got"),
        (box, Asked(Trial(3, [3.0, -2.0])), "x of trial 3 must be a tensor, got a list"),
        (box, Asked(Trial(3, None)), "x of trial 3 must be a tensor, got a NoneType"),
        (box, Asked(None), "trial must be a Trial, got a NoneType"),
        (finite, Asked(Trial(3, finite().points[0], None, None)), "info of trial 3 must be a dict"),
        (box, Asked(Trial(3, box().lower, box().lower)), "context of trial 3 must be None"),
        (box, Told(2, "high"), "value must be one number, got 'high' for trial 2"),
        (box, Told(2, "1.5"), "value must be one number, got '1.5' for trial 2"),
        (box, Told(2, torch.zeros(2)), "value must be one number, got .* for trial 2"),
        (box, Told("2", 1.0), "id must be a whole number, got '2'"),
        (box, Abandoned(None), "id must be a whole number, got None"),
        (finite, ("tell", 2, 1.0), "events must be .*got a tuple"),
        (box, None, "events must be .*got a NoneType"),
    ],
)
def test_bad_events_are_refused_before_any_is_applied(domain, event, message):
    strategy = make(domain())
    strategy.ask(3)
    strategy.tell(0, 0.4)
    strategy.abandon(1)
    before = snapshot(strategy)
    good = [Told(2, 0.2)] if not isinstance(event, Told) else []
    with pytest.raises(ValueError, match=message):
        strategy.replay([*good, event])
    assert snapshot(strategy) == before


def test_events_of_another_domain_are_refused():
    recorded = make(box())
    play(recorded, script(10, seed=1))
    strategy = make(finite())
    with pytest.raises(ValueError, match="x of trial 0 must be one of the 54 points"):
        strategy.replay(recorded.events)
    assert strategy.events == ()


# --- refused calls --------------------------------------------------------------------------------


def test_unknown_trials_are_told_apart():
    strategy = make(finite())
    strategy.ask(3)
    strategy.tell(1, 0.5)
    strategy.abandon(0)
    for call, message in [
        (lambda: strategy.tell(9, 0.1), "id must be .* got 9: never asked"),
        (lambda: strategy.tell(1, 0.1), r"got 1: already told \(0.5\)"),
        (lambda: strategy.tell(0, 0.1), "got 0: abandoned"),
        (lambda: strategy.abandon(1), "got 1: already told"),
        (lambda: strategy.abandon(0), "got 0: abandoned"),
        (lambda: strategy.abandon(7), "got 7: never asked"),
        (lambda: strategy.abandon([2]), r"id must be .* got \[2\]"),
    ]:
        with pytest.raises(UnknownTrialError, match=message):
            call()


# --- report and best ------------------------------------------------------------------------------


@both_domains
def test_nothing_is_best_before_the_first_observation(domain):
    strategy = make(domain())
    strategy.ask(2)
    strategy.abandon(0)
    with pytest.raises(NoObservationsError, match="best needs at least one evaluated point"):
        strategy.best()
    report = strategy.report()
    assert (report["best"], report["best_observation"]) == (None, None)
    strategy.tell(1, -0.5)
    assert strategy.best()[0].tolist() == strategy.history.trials[1].x.tolist()


@both_domains
def test_data_in_the_model_is_never_best(domain):
    model = KernelGP(kernel(), LAMBDA)
    X, Y = data(domain(), 4)
    model.add(X + 10.0, Y + 5.0)  # nor need it lie in the domain
    strategy = OptimisticStrategy(domain(), model, 2.0)
    with pytest.raises(NoObservationsError, match="best needs at least one evaluated point"):
        strategy.best()
    assert strategy.report()["best"] is None
    trial = strategy.ask()
    strategy.tell(trial.id, -3.0)
    assert torch.equal(strategy.best()[0], trial.x)


@both_domains
def test_initial_points_are_spread_numbered_and_reproducible(domain):
    strategy = make(domain(), num_initial=6)
    for step in range(3):  # told or not makes no difference
        strategy.tell(strategy.ask().id, 5.0 - step)
    strategy.ask(3)
    X = torch.stack([trial.x for trial in strategy.history.trials])
    assert torch.equal(X, domain().sample(6, 5))
    assert len(X.unique(dim=0)) == 6
    assert all(trial.info["initial"] for trial in strategy.history.trials)
    chosen = strategy.ask()
    assert "initial" not in chosen.info
    assert chosen.info["width"] > 0
    if domain is finite:
        rows = [trial.info["index"] for trial in strategy.history.trials]
        assert torch.equal(strategy.domain.points[rows[:6]], X)
    other = make(domain(), num_initial=6, seed=6)
    assert not torch.equal(torch.stack([trial.x for trial in other.ask(6)]), X)


def test_more_initial_points_than_members_start_over():
    domain = finite()
    strategy = make(domain, num_initial=60)
    rows = [trial.info["index"] for trial in strategy.ask(60)]
    assert sorted(rows[:54]) == list(range(54))
    assert len(set(rows[54:])) == 6


@quietly
@both_domains
@all_policies
def test_a_choice_that_fails_leaves_what_follows_from_the_events(domain, policy):
    strategy, twin = make(domain(), policy, num_initial=2), make(domain(), policy, num_initial=2)
    search = strategy.search

    class Interrupted(Highest):
        def best(self, bounds, turn):
            raise KeyboardInterrupt

    def fail():
        before = strategy.report()
        strategy.search = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            strategy.ask()
        strategy.search = search
        assert strategy.report() == before

    for own in (strategy, twin):
        own.ask(3)
    # What told values and the trial asked last do to the models depends on what is asked next.
    for ids in ([0, 2], [1], [5, 3], [6, 4]):
        for own in (strategy, twin):
            own.ask(2)
        fail()
        for id in ids:
            for own in (strategy, twin):
                own.tell(id, 0.3 * id - 0.5)
            fail()
    strategy.correct(2, 0.25)
    twin.correct(2, 0.25)
    fail()
    fresh = make(domain(), policy, num_initial=2)
    fresh.replay(strategy.events)
    assert state(strategy) == state(twin) == state(fresh)
    asked = [own.ask() for own in (strategy, twin, fresh)]
    assert torch.equal(asked[0].x, asked[1].x) and asked[0].info == asked[1].info
    assert torch.equal(asked[0].x, asked[2].x) and asked[0].info == asked[2].info
