"""Phased elimination as a strategy: its fold, waiting, lost feedback, runs.

test_phased_replay.py checks what it decides.
"""

import json
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import (
    FiniteSet,
    KernelGP,
    PhasedElimination,
    Region,
    algorithms,
    delays,
    rounds,
    run,
    simulate,
)
from botorch_ext.exceptions import (
    HorizonReached,
    HorizonWarning,
    TrialFailedWarning,
    UnknownTrialError,
    WaitingForObservations,
)
from botorch_ext.strategies import Asked, Told, Trial
from botorch_ext.strategies.events import History
from botorch_ext.widths import Width
from tests.helpers import tolerance
from tests.oracles.posterior import dense_posterior
from tests.strategies.fixed_design.phased_sessions import (
    DELTA,
    LAMBDA,
    METHODS,
    make,
    play,
    points,
    rkhs,
)
from tests.strategies.sessions import both_domains, box, f, finite, kernel, plain

HORIZON = 34
all_methods = pytest.mark.parametrize("method", METHODS)


def state(strategy):
    return [plain(event) for event in strategy.events], strategy.report(), strategy.pending


def tell(strategy, ids):
    for id in list(ids):
        strategy.tell(id, f(strategy.history.trials[id].x))


def opens(trial):
    return "opening" in trial.info


# --- the fold -------------------------------------------------------------------------------------


@pytest.fixture
def no_planning(monkeypatch):
    """A context in which nothing can be planned, sampled or maximised."""

    def forbidden(*args, **kwargs):
        raise AssertionError("a replay plans nothing")

    def switch(on):
        if not on:
            monkeypatch.undo()
            return
        monkeypatch.setattr("botorch_ext.strategies.fixed_design.survivors.plan", forbidden)
        monkeypatch.setattr(Region, "population", forbidden)
        monkeypatch.setattr(Region, "maximize", forbidden)

    return switch


@pytest.mark.parametrize(
    ("method", "domain"),
    [("phased_uncertainty_sampling", finite), ("bpe", box), ("bpe_delay", finite)],
)
def test_every_prefix_of_the_events_is_a_checkpoint_without_planning(method, domain, no_planning):
    problem, reports = rkhs(domain()), {}
    played = make(method, problem.domain, HORIZON)
    play(played, problem, seed=7, reports=reports)
    events = played.events
    for cut in range(len(events) + 1):
        fresh = make(method, domain(), HORIZON)
        no_planning(True)
        fresh.replay(events[:cut])
        assert fresh.report() == reports[cut]
        following = events[cut] if cut < len(events) else None
        if isinstance(following, Asked):
            if opens(following.trial):
                no_planning(False)
            trial = fresh.ask()
            assert plain(Asked(trial)) == plain(following)
        no_planning(False)


def test_events_that_do_not_belong_are_refused():
    played = make("bpe", finite(), HORIZON)
    played.ask(5)
    fresh = make("bpe", finite(), HORIZON)
    with pytest.raises(ValueError, match="id must be 0"):
        fresh.replay(played.events[1:])
    wrong = Asked(Trial(0, torch.tensor([9.0, 9.0], dtype=torch.float64), None, {"index": 0}))
    with pytest.raises(ValueError, match="x of trial 0"):
        fresh.replay([wrong])
    assert fresh.events == ()


def opening(**changed):
    """Changes the opening of the second round; None takes an entry away."""

    def change(events, second):
        record = events[second].trial.info["opening"]
        for name, value in changed.items():
            if value is None:
                del record[name]
            else:
                record[name] = value(record[name]) if callable(value) else value

    return change


def without_opening(events, second):
    del events[second].trial.info["opening"]


UNREAD = "info of trial 6 must be what PhasedElimination records, got"
# What is wrong with the events of two rounds of bpe: the second one opens at events[second].
WRONG = {
    "no opening": (without_opening, UNREAD),
    "no argmax": (opening(argmax=None), UNREAD),
    "no plan": (opening(plan=None), UNREAD),
    "no dict": (lambda events, second: events[second].trial.info.update(opening=3), UNREAD),
    "high threshold": (opening(threshold=100.0), "threshold .*leave points|points must .*region"),
    "threshold of text": (opening(threshold="high"), "threshold must be one number, got 'high'"),
    "NaN threshold": (opening(threshold=float("nan")), "threshold must be finite, got nan"),
    "argmax elsewhere": (opening(argmax=[9.0, 9.0]), r"argmax must .*got \[9.0, 9.0\]"),
    "short argmax": (opening(argmax=[3.0]), "argmax must have shape"),
    "short plan": (opening(plan=lambda plan: plan[:-1]), "std must be 14 numbers, got 15"),
    "plan of text": (opening(plan="15 points of it"), "plan must"),
    "plan elsewhere": (
        opening(plan=lambda plan: [99 if isinstance(p, int) else [9.0, 9.0] for p in plan]),
        "plan must .*9",
    ),
    "plan beyond all integers": (opening(plan=lambda plan: [2**70 for _ in plan]), "plan must"),
    "short std": (opening(std=lambda std: std[:-1]), "std must be 15 numbers, got 14"),
    "negative std": (opening(std=lambda std: [-s for s in std]), "std of the plan must be non-neg"),
    "volume": (opening(volume="all"), "volume of the plan must be one number, got 'all'"),
}


@pytest.mark.parametrize("case", WRONG)
@both_domains
def test_a_replay_is_refused_as_a_whole(domain, case):
    change, message = WRONG[case]
    played = make("bpe", domain(), HORIZON)
    played.ask(6)
    tell(played, range(6))
    played.ask(14)
    events = list(played.events)
    second = next(i for i, e in enumerate(events) if i and isinstance(e, Asked) and opens(e.trial))
    change(events, second)
    for done in (0, 3, 8):  # onto a fresh strategy, and onto one that goes on
        fresh = make("bpe", domain(), HORIZON)
        fresh.replay(played.events[:done])
        before = state(fresh)
        with pytest.raises(ValueError, match=message):
            fresh.replay(events[done:])
        assert state(fresh) == before
        fresh.replay(played.events[done:])
        assert state(fresh) == state(played)


@both_domains
def test_events_of_another_method_or_horizon_are_refused(domain):
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.1}
    optimistic = algorithms.gp_ucb(domain(), kernel(), **numbers)
    optimistic.ask(3)
    strategy = make("bpe_delay", domain(), HORIZON)
    with pytest.raises(ValueError, match="info of trial 0 must be what PhasedElimination"):
        strategy.replay(optimistic.events)
    ended = make("bpe_delay", domain(), HORIZON)
    ended.ask(HORIZON)
    beyond = Trial(HORIZON, ended.history.trials[0].x, None, ended.history.trials[0].info)
    with pytest.raises(ValueError, match="id must be less than the horizon of 34, got 34"):
        strategy.replay([*ended.events, Asked(beyond)])
    assert strategy.events == ()


# --- asking, waiting, ending ----------------------------------------------------------------------


@both_domains
@pytest.mark.parametrize("method", ["phased_uncertainty_sampling", "bpe"])
def test_a_round_is_asked_to_its_border_and_then_waits(method, domain):
    strategy = make(method, domain(), HORIZON)
    length = strategy.round_lengths.design_length(1)
    before = state(strategy)
    with pytest.raises(WaitingForObservations) as error:
        strategy.ask(length + 1)
    assert (error.value.ids, error.value.available) == ([], length)
    assert str(error.value) == (
        f"num_trials must be at most {length}, what is left before the round closes, got "
        f"{length + 1}: ask for {length}, and for others once all its trials are told or abandoned"
    )
    assert state(strategy) == before
    trials = strategy.ask(length)
    assert [trial.id for trial in trials] == list(range(length))
    before = state(strategy)
    for num in (None, 1, 5):
        with pytest.raises(WaitingForObservations, match="until all its trials are told") as error:
            strategy.ask(num) if num else strategy.ask()
        assert (error.value.ids, error.value.available) == (list(range(length)), 0)
        assert pickle.loads(pickle.dumps(error.value)).ids == error.value.ids
    assert state(strategy) == before
    if length > 1:
        tell(strategy, range(1, length))
        with pytest.raises(WaitingForObservations) as error:
            strategy.ask()
        assert (error.value.ids, error.value.available) == ([0], 0)
    tell(strategy, [0])
    second = strategy.round_lengths.design_length(2)
    strategy.ask()
    with pytest.raises(WaitingForObservations) as error:
        strategy.ask(second)
    assert (error.value.ids, error.value.available) == ([length], second - 1)
    assert f"got {second}: ask for {second - 1}, and for others once" in str(error.value)
    assert len(strategy.ask(second - 1)) == second - 1


@all_methods
def test_nothing_is_asked_beyond_the_horizon(method):
    strategy = make(method, finite(), HORIZON)
    before = state(strategy)
    with pytest.raises(HorizonReached, match=f"at most {HORIZON}, .*got {HORIZON + 1}") as error:
        strategy.ask(HORIZON + 1)
    assert error.value.horizon == HORIZON
    assert state(strategy) == before
    play(strategy, rkhs(strategy.domain), seed=1)
    assert len(strategy.history.trials) == HORIZON
    tell(strategy, strategy.pending[:1])
    before = state(strategy)
    with pytest.raises(HorizonReached, match="at most 0"):
        strategy.ask()
    assert state(strategy) == before
    tell(strategy, strategy.pending)  # the last round can still be answered
    assert strategy.pending == []
    assert len(strategy.report()["rounds"]) == len(strategy.rounds)


# --- lost and late feedback -----------------------------------------------------------------------


def test_a_waiting_round_closes_without_abandoned_trials():
    problem = rkhs(finite())
    strategy = make("bpe", problem.domain, 60, width=1.0)
    ids = [trial.id for trial in strategy.ask(8)]
    tell(strategy, ids[2:])
    strategy.abandon(0)
    with pytest.raises(WaitingForObservations) as error:
        strategy.ask()
    assert error.value.ids == [1]
    strategy.abandon(1)
    strategy.ask()
    closing = strategy.rounds[0].closing
    assert closing.arrived == ids[2:]
    # By the definition, from what was told alone.
    X = points(strategy, ids[2:])
    y = X.new_tensor([f(x) for x in X])
    P = strategy.domain.points
    mean, covariance = dense_posterior(kernel(), X, y, P, LAMBDA)
    std = covariance.diag().sqrt()
    alive = mean + std >= (mean - std).max()
    assert 0 < len(strategy.rounds[1].survivors) < 54
    assert strategy.rounds[1].survivors.tolist() == alive.nonzero().flatten().tolist()


class Recording(Width):
    """Depends on the step, has an offset, and records what it is called with."""

    def __init__(self):
        self.calls = []

    def __call__(self, t, model):
        self.calls.append((t, model.num_observations))
        return 0.5 + 0.01 * t

    def offset(self, t, model):
        return 0.002 * t


@both_domains
def test_a_width_sees_the_observations_of_one_round(domain):
    width = Recording()
    strategy = make("bpe", domain(), 60, width=width)
    run(strategy, f, 60, progress=False)
    lengths = [len(round.points) for round in strategy.rounds[:-1]]
    assert width.calls == [(n + 1, n) for n in lengths]
    w, offset = 0.5 + 0.01 * (lengths[0] + 1), 0.002 * (lengths[0] + 1)
    X = points(strategy, strategy.rounds[0].ids)
    Z = finite().points
    mean, covariance = dense_posterior(kernel(), X, X.new_tensor([f(x) for x in X]), Z, LAMBDA)
    half = w * covariance.diag().sqrt() + offset
    closing, survivors = strategy.rounds[0].closing, strategy.rounds[1].survivors
    assert (closing.width, closing.offset) == pytest.approx((w, offset))
    alive = mean + half >= closing.threshold
    assert 0 < alive.sum() < 54
    if domain is finite:
        assert closing.threshold == pytest.approx((mean - half).max().item(), abs=1e-9)
        assert survivors.tolist() == alive.nonzero().flatten().tolist()
    else:
        assert closing.threshold >= (mean - half).max()
        assert torch.equal(survivors.contains(Z), alive)


def test_a_width_of_zero_keeps_the_argmax():
    strategy = make("bpe", finite(), 30, width=0.0)
    run(strategy, f, 30, progress=False)
    assert [len(round.survivors) for round in strategy.rounds[1:]] == [1] * len(strategy.rounds[1:])
    best = strategy.domain.points[strategy.rounds[1].survivors]
    assert best.tolist() == [strategy.rounds[0].closing.argmax]


@both_domains
def test_a_round_of_which_nothing_comes_eliminates_nothing(domain):
    strategy = make("bpe", domain(), 30, width=0.1)
    for trial in strategy.ask(6):
        strategy.abandon(trial.id)
    trial = strategy.ask()
    assert trial.info["round"] == 2
    report = strategy.report()["rounds"]
    assert (report[0]["arrived"], report[0]["threshold"]) == (0, None)
    assert report[1]["volume"] == 1.0
    # The second round starts from the prior, as the first did, and is another draw of it.
    assert trial.info["std"] == pytest.approx(1.0)
    assert not torch.equal(strategy.rounds[0].points, strategy.rounds[1].points[:6])


@both_domains
def test_all_feedback_lost(domain):
    strategy = make("bpe_delay", domain(), 60, width=0.1)
    strategy.ask(60)
    assert len(strategy.pending) == 60
    report = strategy.report()
    assert [round["volume"] for round in report["rounds"]] == [1.0] * len(report["rounds"])
    assert len(report["rounds"]) > 2
    assert report["best"] is None
    for round in strategy.rounds:
        assert round.choice.std[0] == pytest.approx(1.0)


@both_domains
def test_late_feedback_is_recorded_and_not_used(domain):
    def session(late):
        strategy = make("bpe_delay", domain(), 50, delay=3)
        first = len(strategy.ask(strategy.round_lengths.length(1, 50, DELTA, delays.SeenDelays())))
        tell(strategy, range(first - 3))
        strategy.ask(2)
        if late:
            # From a closed round, very loud: neither an error nor evidence.
            for id in range(first - 3, first):
                strategy.tell(id, 1e6)
        tell(strategy, range(first, first + 2))
        strategy.ask(50 - first - 2)
        return strategy, first

    (quiet, first), (loud, _) = session(False), session(True)
    assert torch.equal(points(quiet), points(loud))
    one, two = (s.report()["rounds"] for s in (quiet, loud))
    assert two[0]["told_too_late"] == list(range(first - 3, first))
    assert one[0]["told_too_late"] == []
    for round in (*one[:-1], *two[:-1]):
        del round["told_too_late"]
    assert one == two
    # In the history, and so in `best`, it counts.
    assert [loud.history.values[id] for id in range(first - 3, first)] == [1e6] * 3
    assert loud.best()[1] > 1e4
    with pytest.raises(UnknownTrialError, match="already told"):
        loud.tell(first - 1, 0.0)


# --- bad input ------------------------------------------------------------------------------------


@both_domains
def test_a_horizon_shorter_than_the_first_round_is_a_warning(domain):
    with pytest.warns(HorizonWarning, match=r"first round of 104, got 10; it is cut"):
        strategy = make("bpe_delay", domain(), 10, delay=100)
    assert strategy.report()["warnings"] == [
        "horizon must be at least the first round of 104, got 10; it is cut"
    ]
    assert len(strategy.ask(10)) == 10
    assert [round["length"] for round in strategy.report()["rounds"]] == [10]
    with pytest.raises(HorizonReached):
        strategy.ask()


def test_a_first_round_of_the_whole_horizon_is_no_warning():
    strategy = make("bpe_delay", finite(), 9, delay=6)  # ceil(sqrt(9)) + 6
    assert len(strategy.ask(9)) == 9
    assert make("phased_uncertainty_sampling", finite(), 1).ask().id == 0


def test_a_first_round_that_is_learnt():
    # Observed starts with as much allowance as the round is long: 4 + 4 <= 9 < 2 ceil(sqrt(10)).
    strategy = make("bpe_delay", finite(), 16, delay=delays.Observed())
    strategy.ask(16)
    assert [round["length"] for round in strategy.report()["rounds"]] == [8, 8]


def prior(**options):
    return KernelGP(kernel(), LAMBDA, **options)


def test_rounds_that_are_made_for_a_horizon_tell_it():
    lengths = rounds.DelayAware(rounds.SquareRoot(20), 3)
    first, second = (
        PhasedElimination(finite(), prior(), 1.0, lengths, *given).report() for given in ((), (20,))
    )
    assert first == second
    assert first["horizon"] == 20


def test_a_kernel_of_unknown_smoothness_needs_a_width_on_a_box():
    from gpytorch.kernels import PeriodicKernel

    k = PeriodicKernel().double()
    with pytest.raises(ValueError, match="kernel"):
        make("bpe", box(), 20, kernel=k)
    assert make("bpe", box(), 20, kernel=k, width=2.0).ask().id == 0
    assert make("bpe", finite(), 20, kernel=k).ask().id == 0


# --- studies --------------------------------------------------------------------------------------


@both_domains
def test_run_waits_by_itself(domain):
    g, lock, under_way, most = torch.Generator().manual_seed(0), threading.Lock(), set(), []

    def slow(x):
        with lock:
            pause = 0.004 * torch.rand((), generator=g).item()
            under_way.add(id(x))
            most.append(len(under_way))
        time.sleep(pause)
        with lock:
            under_way.remove(id(x))
        return f(x)

    strategy = make("bpe", domain(), 30)
    with ThreadPoolExecutor(4) as pool:
        result = run(strategy, slow, 100, executor=pool, max_pending=4, progress=False)
    # The horizon ended it, though 100 trials were wanted.
    assert sorted(result.ids) == list(range(30))
    assert max(most) > 1
    told = set()
    for event in strategy.events:
        if isinstance(event, Told):
            told.add(event.id)
        elif isinstance(event, Asked) and opens(event.trial):
            assert told == set(range(event.trial.id))
    alone = make("bpe", domain(), 30)
    run(alone, f, 30, progress=False)
    assert_close(points(alone), points(strategy), **tolerance(torch.float64))


def test_run_goes_on_when_trials_fail():
    def fails(x):
        if x[0] == 2.0:
            raise RuntimeError("left face")
        return f(x)

    strategy = make("bpe", finite(), 30)
    with pytest.warns(TrialFailedWarning):
        result = run(strategy, fails, 30, max_retries=0, progress=False)
    assert result.failures
    assert len(result.ids) + len(result.failures) == 30
    arrived = [id for round in strategy.rounds[:-1] for id in round.closing.arrived]
    assert set(arrived).isdisjoint({failure.id for failure in result.failures})


def test_the_clock_jumps_over_the_waiting():
    problem = rkhs(finite())
    strategy = make("bpe", problem.domain, 30)
    trace = simulate(strategy, problem, 30, delay=25, seed=1)
    # No regret for waiting: every round is told before the next one's first ask.
    starts = [round.first for round in strategy.rounds]
    for s, told_at in enumerate(trace.told_at.tolist()):
        later = [start for start in starts if start > s]
        assert told_at == (later[0] if later else -1)
    with pytest.raises(HorizonReached):
        simulate(make("bpe", problem.domain, 20), problem, 21)


@pytest.mark.parametrize("level", [None, 0.8])
def test_an_allowance_that_learns(level):
    horizon, allowance = 150, delays.Observed(level)
    problem = rkhs(finite())
    strategy = make("bpe_delay", problem.domain, horizon, delay=allowance, width=1.0)
    trace = simulate(strategy, problem, horizon, delay=delays.Geometric(4.0), seed=2)
    tau = trace.delays.tolist()
    design = rounds.SquareRoot(horizon)
    for round in strategy.rounds:
        a = round.first
        told = [tau[s] for s in range(a) if s + tau[s] + 1 <= a]
        ages = [a - s - 1 for s in range(a) if s + tau[s] + 1 > a]
        q = design.design_length(round.number)
        u = allowance(q, horizon, DELTA, delays.SeenDelays(told, ages))
        assert len(round.points) == min(q + int(u), horizon - a)
    learnt = [len(r.points) - design.design_length(r.number) for r in strategy.rounds]
    assert learnt[0] == design.design_length(1)  # knows nothing yet
    assert learnt[1] < 60  # of 150; the geometric quantile 0.8 is 7, that of 1 - delta/2T is 37
    assert strategy.report()["rounds"][-1]["num_candidates"] < 54


# --- the report -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "domain"),
    [("phased_uncertainty_sampling", finite), ("bpe", box), ("bpe_delay", finite)],
)
def test_the_report_is_plain_numbers(method, domain):
    problem = rkhs(domain())
    strategy = make(method, problem.domain, 80, width=1.0)
    assert json.loads(json.dumps(strategy.report()))["rounds"] == []
    simulate(strategy, problem, 80, delay=3, seed=0)
    report = strategy.report()
    assert json.loads(json.dumps(report)) == report
    assert report["horizon"] == report["num_asked"] == 80
    assert report["waits"] == (method != "bpe_delay")
    assert report["width"] == {"name": "Constant", "value": 1.0}
    details = report["rounds"]
    assert sum(round["length"] for round in details) == 80
    assert [round["closed"] for round in details] == [True] * (len(details) - 1) + [False]
    volumes = [round["volume"] for round in details]
    errors = [round["volume_standard_error"] for round in details]
    assert volumes[0] == 1.0 and errors[0] == 0.0
    assert 0 < volumes[-1] < 0.6
    for before, after, error in zip(volumes, volumes[1:], errors[1:], strict=False):
        assert after <= before + 4 * error
    if domain is finite:
        assert errors == [0.0] * len(errors)
        assert volumes == [round["num_candidates"] / 54 for round in details]
    else:
        # Of a binomial share of 2048 points, up to what hit-and-run loses.
        assert all(0 < error < 0.05 for error in errors[1:])
    X = points(strategy, strategy.rounds[1].ids)
    K = kernel()(X).to_dense().detach() / LAMBDA
    gain = 0.5 * torch.logdet(torch.eye(len(X), dtype=X.dtype) + K)
    assert details[1]["information_gain"] == pytest.approx(gain.item(), rel=1e-6)


@both_domains
def test_best_is_the_best_posterior_mean_of_all_that_was_told(domain):
    problem = rkhs(domain())
    strategy = make("bpe_delay", problem.domain, 60)
    trace = simulate(strategy, problem, 60, delay=delays.Poisson(6.0), seed=3)
    told = [s for s in range(60) if trace.told_at[s] >= 0]
    X, y = points(strategy, told), trace.observations[told]
    mean, _ = dense_posterior(kernel(), X, y, X, LAMBDA)
    x, value = strategy.best()
    assert value == pytest.approx(mean.max().item(), rel=1e-8)
    assert torch.equal(x, X[mean.argmax()])


@pytest.mark.parametrize("mean", [None, lambda X: X[..., 0] - 2], ids=["zero", "linear"])
def test_repeated_observations_of_a_point_are_one_of_their_average(mean):
    domain = FiniteSet(finite().points[::9])  # 6 points
    strategy = make("bpe_delay", domain, 50, mean=mean)
    strategy.ask(50)
    g = torch.Generator().manual_seed(0)
    for _ in range(2):  # what was told since counts
        ids = strategy.pending[: 20 + len(strategy.history.values)]
        for id in ids:
            strategy.tell(id, torch.randn((), generator=g).item())
        told = list(strategy.history.values)
        X = points(strategy, told)
        prior = 0 * X[:, 0] if mean is None else mean(X)
        y = X.new_tensor([strategy.history.values[id] for id in told])
        expected, _ = dense_posterior(kernel(), X, y - prior, X, LAMBDA)
        assert_close(strategy.evaluated_means(), expected + prior, **tolerance(X.dtype))
    assert len(told) == 50


@both_domains
def test_the_best_point_is_computed_once(domain, monkeypatch):
    strategy = make("bpe_delay", domain(), 20)
    strategy.ask(20)
    tell(strategy, range(8))
    best = strategy.best()
    with monkeypatch.context() as patch:
        patch.setattr("botorch_ext.strategies.fixed_design.horizon.means_with_repeats", None)
        assert strategy.report()["best"] == {"x": best[0].tolist(), "mean": best[1]}
    tell(strategy, [8])
    strategy.tell(9, 50.0)
    assert strategy.best()[1] > best[1]


def test_asking_within_a_round_does_not_look_through_the_pending(monkeypatch):
    strategy = make("bpe", finite(), 400)
    strategy.ask()
    monkeypatch.setattr(History, "pending", property(lambda history: pytest.fail("looked")))
    strategy.ask(10)


def test_a_prior_mean_moves_everything_with_it():
    # f + 7 with the prior mean 7 is f with none.
    problem = rkhs(finite())
    plainly = make("bpe", problem.domain, 60, width=1.0)
    shifted = make("bpe", problem.domain, 60, width=1.0, mean=lambda X: X.new_full(X.shape[:-1], 7))
    for strategy, shift in ((plainly, 0.0), (shifted, 7.0)):
        run(strategy, lambda x, shift=shift: problem(x) + shift, 60, progress=False)
    assert torch.equal(points(plainly), points(shifted))
    thresholds = [[r.closing.threshold for r in s.rounds[:-1]] for s in (plainly, shifted)]
    assert thresholds[1] == pytest.approx([t + 7 for t in thresholds[0]], abs=1e-9)


@both_domains
def test_float32(domain):
    domain = domain(dtype=torch.float32)
    strategy = make("bpe", domain, 40, width=2.0)
    run(strategy, f, 40, progress=False)
    X = points(strategy)
    assert X.dtype == torch.float32
    fresh = make("bpe", domain, 40, width=2.0)
    fresh.replay(strategy.events)
    assert fresh.report() == strategy.report()
    assert strategy.rounds[-1].choice.volume < 1.0


@both_domains
def test_seeds_differ(domain):
    one, again, other = (make("bpe", domain(), HORIZON, seed=seed) for seed in (1, 1, 2))
    for strategy in (one, again, other):
        strategy.ask(6)
    assert torch.equal(points(one), points(again))
    assert not torch.equal(points(one), points(other))


@both_domains
def test_a_prior_mean_that_cannot_be_copied(domain):
    class Mean:
        def __init__(self):
            self._lock = threading.Lock()

        def __call__(self, X):
            return 0.1 * X[..., 0]

    def new():
        return algorithms.bpe(
            domain(), kernel(), noise_variance=LAMBDA, width=2.0, horizon=20, mean=Mean()
        )

    strategy, other = new(), new()
    for trial in strategy.ask(2):
        strategy.tell(trial.id, 0.5)
    other.replay(strategy.events)
    assert other.report() == strategy.report()
    strategy.clone()
