"""Asked, told, abandoned and replayed: what single events do."""

import pickle
import warnings

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import (
    HorizonReached,
    NoObservationsError,
    PriorScaleWarning,
    WaitingForObservations,
)
from botorch_ext.models import KernelGP
from botorch_ext.state import Log
from botorch_ext.strategies import Abandoned, Asked, OptimisticStrategy, Told, Trial
from botorch_ext.testing.interrupting import lines_of
from botorch_ext.testing.states import state
from tests.helpers import rbf
from tests.laws.shared_sessions import quietly
from tests.strategies.sessions import (
    LAMBDA,
    InRounds,
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

pytestmark = quietly


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


def test_a_list_is_asked_as_a_whole_or_not_at_all():
    before = make(box())
    before.ask()
    whole = before.clone()
    total = lines_of(lambda: whole.ask(3))
    for number in range(6):
        strategy = before.clone()
        lines_of(lambda: strategy.ask(3), total * number // 6)  # noqa: B023
        assert len(strategy.events) == 1
        strategy.ask(3)
        assert strategy.report() == whole.report()


@both_domains
def test_given_data_is_copied(domain):
    X, Y = data(domain(), 5)
    kept, changed = make(domain(), initial=(X.clone(), Y.clone())), make(domain(), initial=(X, Y))
    X.fill_(3.0)
    Y.fill_(7.0)
    assert kept.best()[0].tolist() == changed.best()[0].tolist()
    assert plain(Asked(kept.ask())) == plain(Asked(changed.ask()))
    assert snapshot(kept) == snapshot(changed)


def certified(domain):
    return bx.algorithms.certified_bucb(
        domain, kernel(), horizon=30, width=2.0, noise_variance=LAMBDA, rkhs_bound=1.0
    )


MADE = {
    "one model": make,
    "models": lambda domain: bx.algorithms.mle_ucb(
        domain, bx.CandidateModels.lengthscales(kernel(), [0.4, 0.9], LAMBDA), width=2.0
    ),
    "certified": certified,
    "particles": lambda domain: bx.algorithms.integrated_ei(domain, num_initial=2),
}


@both_domains
@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("pends", [False, True])
def test_the_posterior_that_is_handed_out_is_a_copy(domain, kind, pends):
    strategy, twin = (MADE[kind](domain()) for _ in range(2))
    for own in (strategy, twin):
        for value in (0.3, -0.2):
            own.tell(own.ask(), value)
        own.attach(domain().sample(1, seed=3)[0], 0.1)
        if pends:
            own.ask()
    before = state(strategy)
    posterior = strategy.posterior
    if kind == "particles":
        posterior.constants.fill_(50.0)
        posterior.model.add(posterior.model.train_inputs[0][..., :1, :], None)
    else:
        posterior.add(domain().sample(1, seed=8), torch.tensor([50.0], dtype=torch.float64))
        if domain is finite:
            posterior.add_candidate(3, 50.0)
    assert posterior.num_observations != strategy.posterior.num_observations or kind == "particles"
    assert state(strategy) == before
    assert strategy.report() == twin.report()
    if kind == "particles" and domain is box:
        return  # a search of a second, which the laws have
    assert plain(Asked(strategy.ask())) == plain(Asked(twin.ask()))


def test_numbers_that_are_handed_out_are_copies():
    strategy = make(finite(), initial=data(finite(), 3))
    before = strategy.report()
    for numbers in (*strategy.evaluated(), strategy.posterior.mean, strategy.posterior.variance):
        numbers.fill_(9.0)
    strategy.posterior.mean.fill_(9.0)
    assert strategy.report() == before
    assert strategy.evaluated()[1].tolist() == data(finite(), 3)[1].tolist()


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("width", lambda f: make_with_width(f)),
        ("width", lambda f: make_with_width([f])),
        ("width", lambda f: bx.widths.Scaled(f, 0.5)),
        (
            "width",
            lambda f: bx.acquisition.EnlargedUpperConfidenceBound(KernelGP(rbf(1.0), 0.1), f),
        ),
        (
            "free_width",
            lambda f: bx.algorithms.certified_bucb(
                box(),
                kernel(),
                horizon=30,
                width=2.0,
                noise_variance=LAMBDA,
                rkhs_bound=1.0,
                free_width=f,
            ),
        ),
    ],
)
def test_a_function_in_place_of_a_width_is_refused_with_the_cure(name, call):
    with pytest.raises(ValueError, match=rf"^{name} must .*botorch_ext\.widths\.Width"):
        call(lambda t, model: 2.0)


def make_with_width(width):
    return bx.algorithms.gp_ucb(box(), kernel(), noise_variance=LAMBDA, width=width)


# --- replay ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["inflate", "timeout"])
def test_a_replay_that_grows_all_buffers_gives_the_same_state_and_the_same_question(policy):
    def fresh():
        return make(finite(), policy, initial=data(finite(), 5), num_initial=3)

    played = fresh()
    play(played, script(170, seed=11))
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
        (box, Told(0, 1.0), r"got 0: already told \(0.4\)"),
        (box, Abandoned(0), "got 0: already told"),
        (box, Told(1, 1.0), "got 1: abandoned"),
        (box, Abandoned(1), "got 1: abandoned"),
        (box, Told(2, float("nan")), "value must be finite, got nan for trial 2"),
        (box, asked(2, [3.0, -2.0]), "id must be 3, the next one, got 2"),
        (box, asked(3, [3.0, -1.0]), "x of trial 3 must lie in the box"),
        (finite, asked(3, [2.0, -3.0], index=1), "x of trial 3 .*index, got index 1"),
        (finite, asked(3, [2.0, -3.0], index=-54), "x of trial 3 .*index, got index -54"),
        (finite, asked(3, [2.0, -3.0]), "x of trial 3 .*index, got index None"),
        (box, asked(3, [[3.0, -2.0]]), r"x of trial 3 must have shape \(2,\), got \(1, 2\)"),
        (box, Asked(Trial(3, box().lower, box().lower)), "context of trial 3 must be None"),
        (finite, ("tell", 2, 1.0), "events must be .*got a tuple"),
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


# --- state ----------------------------------------------------------------------------------------


def test_reading_before_the_first_event_leaves_no_chain():
    strategy = make(finite())
    for _ in range(5):
        strategy = strategy.successor()
    assert strategy._first.state._first is None
    strategy.tell(strategy.ask().id, 0.4)
    assert pickle.loads(pickle.dumps(strategy)).events[1] == strategy.events[1]


def test_a_warning_made_an_error_leaves_a_replay_undone():
    strategy, fresh = (
        OptimisticStrategy(finite(), KernelGP(kernel(), LAMBDA), 2.0) for _ in range(2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PriorScaleWarning)
        for _ in range(8):
            strategy.tell(strategy.ask().id, 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorScaleWarning)
        with pytest.raises(PriorScaleWarning):
            fresh.replay(strategy.events)
    assert fresh.events == ()


def test_logs_share_their_items_and_nothing_else():
    log = Log("ab")
    one, other = log.with_item("c"), log.with_item("d")
    assert ("".join(log), "".join(one), "".join(other)) == ("ab", "abc", "abd")
    longer = one.with_item("e").with_item_at(1, "x")
    assert list(longer) == list("axce") and list(one) == list("abc")
    assert (one[-1], one[1:], len(one), one[-3]) == ("c", ["b", "c"], 3, "a")
    for position in (3, -4):
        with pytest.raises(IndexError):
            one[position]
    assert list(pickle.loads(pickle.dumps(log))) == ["a", "b"]
