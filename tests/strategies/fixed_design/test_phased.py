"""Phased methods against their pseudo-code, written out in plain loops and dense algebra."""

import math
from collections import Counter

import pytest
import torch

from botorch_ext import (
    KernelGP,
    PhasedElimination,
    algorithms,
    delays,
    rounds,
    run,
    simulate,
)
from botorch_ext.exceptions import HorizonReached, HorizonWarning, WaitingForObservations
from botorch_ext.strategies import Abandoned, Asked, Told
from tests.helpers import matern
from tests.oracles.models import Candidate
from tests.oracles.posterior import dense_information_gain, dense_posterior, self_normalized_width
from tests.strategies.fixed_design.phased_sessions import (
    DELTA,
    LAMBDA,
    METHODS,
    SIGMA,
    B,
    make,
    play,
    points,
    rkhs,
)
from tests.strategies.sessions import Stepwise, both_domains, box, f, finite, kernel

HORIZON, SIXTH = 110, math.sqrt(6)
LOG = math.log(3 * HORIZON / DELTA)
# name: the delays, the allowance, and the allowance written out.
DELAYS = {
    "none": (None, 0, 0.0),
    "poisson": (
        delays.Poisson(5.0),
        delays.SubExponential(5.0, xi=3.0, b=1.0),
        5.0 + max(math.sqrt(2 * 9 * LOG), 2 * LOG),
    ),
    "heavy": (delays.LogNormal(2.0, 1.5), 9.5, 9.5),  # one in seven is later
}


def lengths(method, allowance, horizon=HORIZON):
    """The round lengths, the last one cut to the horizon."""
    found, q = [], 1
    while sum(found) < horizon:
        if method == "phased_uncertainty_sampling":
            length = 2 ** len(found)
        else:
            q = math.ceil(math.sqrt(horizon * q))
            length = math.ceil(q + allowance) if method == "bpe_delay" else q
        found.append(min(length, horizon - sum(found)))
    return found


def published_width(method, num_rounds, num_points, gain):
    if method == "phased_uncertainty_sampling":
        return self_normalized_width(B, SIGMA, DELTA / num_rounds, LAMBDA, gain)
    share = DELTA / (4 * num_rounds * num_points)
    return B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / share))


def check_rounds(strategy, k, expected_lengths, y, is_in, width):
    """Replays the picks on a finite set; returns how many candidates each round has.

    ``is_in(s, e)`` says whether the observation of step s is in when the round with last step e
    closes; ``width`` gives width and offset by the information gain and the number of those that
    are.
    """
    P = strategy.domain.points
    model = Candidate.at(P, k, LAMBDA)
    rows = [trial.info["index"] for trial in strategy.history.trials]
    alive, first, counts = torch.ones(len(P), dtype=torch.bool), 0, []
    for round, length in zip(strategy.rounds, expected_lengths, strict=True):
        steps = range(first, first + length)
        assert (round.number, round.ids) == (len(counts) + 1, steps)
        counts.append(int(alive.sum()))
        for s in steps:
            std = model.std(rows[first:s])
            assert alive[rows[s]]
            assert std[alive].max() - std[rows[s]] <= 1e-7
            info = strategy.history.trials[s].info
            assert info["round"] == round.number
            assert info["std"] == pytest.approx(std[rows[s]].item(), abs=1e-7)
        last, first = steps[-1], steps[-1] + 1
        if round is strategy.rounds[-1]:
            break
        arrived = [s for s in steps if is_in(s, last)]
        after = torch.zeros_like(alive)
        after[strategy.rounds[round.number].survivors] = True
        assert round.closing.arrived == arrived
        if not arrived:
            assert torch.equal(after, alive)
            continue
        known = [rows[s] for s in arrived]
        mean, std = model.mean(known, [y[s] for s in arrived]), model.std(known)
        w, offset = width(model.gain(known), len(arrived))
        half = w * std + offset
        threshold = (mean - half)[alive].max()
        slack = mean + half - threshold
        assert (round.closing.width, round.closing.offset) == pytest.approx((w, offset), rel=1e-9)
        assert round.closing.threshold == pytest.approx(threshold.item(), abs=1e-9)
        # Points within rounding of the threshold may be kept or not.
        disputed = slack.abs() <= 1e-8
        assert torch.equal((alive & (slack >= 0))[~disputed], after[~disputed])
        assert not bool((after & ~alive).any())
        alive = after
    return counts


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("method", METHODS)
def test_every_pick_is_a_maximiser_among_the_survivors(method, delay):
    distribution, allowance, u = DELAYS[delay]
    k = kernel() if delay == "none" else matern(1.8, 1.0)
    constant = (method == "bpe") != (delay == "poisson")
    more = {"width": SIXTH} if constant else {}
    more |= {"delay": allowance} if method == "bpe_delay" else {}
    problem = rkhs(finite())
    strategy = make(method, problem.domain, HORIZON, kernel=k, **more)
    trace = simulate(strategy, problem, HORIZON, delay=distribution, seed=4)
    expected, waits = lengths(method, u), method != "bpe_delay"
    tau = trace.delays.tolist()

    def is_in(s, last):
        return waits or s + tau[s] <= last

    def width(gain, n):
        return (SIXTH if constant else published_width(method, len(expected), 54, gain)), 0.0

    counts = check_rounds(strategy, k, expected, trace.observations.tolist(), is_in, width)
    assert counts[0] == 54 > counts[-1]
    report = strategy.report()
    for own, round, length, count in zip(
        report["rounds"], strategy.rounds, expected, counts, strict=True
    ):
        assert (own["length"], own["num_candidates"]) == (length, count)
        assert own["volume"] == count / 54
        assert own["closed"] == (round is not strategy.rounds[-1])
        gain = dense_information_gain(k, round.points, LAMBDA)
        assert own["information_gain"] == pytest.approx(gain, rel=1e-6)
    late = [s for r in strategy.rounds[:-1] for s in r.ids if not is_in(s, r.ids[-1])]
    too_late = [id for own in report["rounds"][:-1] for id in own["told_too_late"]]
    assert too_late == [s for s in late if s + tau[s] + 1 < HORIZON]
    assert bool(late) == (delay != "none" and not waits)


@pytest.mark.parametrize("method", METHODS)
def test_histories_with_lost_and_reordered_observations(method):
    problem = rkhs(finite(), seed=1)
    strategy = make(method, problem.domain, HORIZON, width=SIXTH)
    waited = play(strategy, problem, seed=11)
    # When each observation was told: after how many asks.
    told_after, y, num_asked = {}, {}, 0
    for event in strategy.events:
        match event:
            case Asked():
                num_asked += 1
            case Told(id, value):
                told_after[id], y[id] = num_asked, value
    assert strategy.history.abandoned
    assert bool(waited) == (method != "bpe_delay")

    def is_in(s, last):
        return s in y and told_after[s] <= last + 1

    check_rounds(strategy, kernel(), lengths(method, 6), y, is_in, lambda *_: (SIXTH, 0.0))
    # The best is that of all that was told, also too late.
    told = list(y)
    X = points(strategy, told)
    mean, _ = dense_posterior(kernel(), X, X.new_tensor([y[id] for id in told]), X, LAMBDA)
    x, value = strategy.best()
    assert value == pytest.approx(mean.max().item(), rel=1e-8)
    assert torch.equal(x, X[mean.argmax()])


def test_an_allowance_that_learns():
    problem, allowance, horizon = rkhs(finite()), delays.Observed(0.8), 150
    strategy = make("bpe_delay", problem.domain, horizon, delay=allowance, width=1.0)
    tau = simulate(strategy, problem, horizon, delay=delays.Geometric(4.0), seed=2).delays.tolist()
    design = rounds.SquareRoot(horizon)
    for round in strategy.rounds:
        a = round.first
        told = [tau[s] for s in range(a) if s + tau[s] + 1 <= a]
        ages = [a - s - 1 for s in range(a) if s + tau[s] + 1 > a]
        q = design.design_length(round.number)
        u = allowance(q, horizon, DELTA, delays.SeenDelays(told, ages))
        assert len(round.points) == min(q + int(u), horizon - a)


# --- asking, waiting, ending ----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["phased_uncertainty_sampling", "bpe"])
def test_a_round_is_asked_to_its_border_and_then_waits(method):
    strategy = make(method, finite(), 34)
    first, second = (strategy.round_lengths.design_length(r) for r in (1, 2))

    def refused(num):
        with pytest.raises(WaitingForObservations) as error:
            strategy.ask(num)
        return error.value.ids, error.value.available

    assert refused(first + 1) == ([], first)
    strategy.ask(first)
    assert refused(None) == refused(5) == (list(range(first)), 0)
    for id in range(first):
        assert refused(None) == (list(range(id, first)), 0)
        strategy.abandon(id) if id == first - 2 else strategy.tell(id, 0.1)
    strategy.ask()
    assert refused(second) == ([first], second - 1)
    assert len(strategy.ask(second - 1)) == second - 1


def test_a_round_beyond_the_horizon_is_warned_of():
    with pytest.warns(HorizonWarning, match="first round of 104"):
        strategy = make("bpe_delay", finite(), 10, delay=100)
    with pytest.raises(HorizonReached) as error:
        strategy.ask(11)
    assert error.value.horizon == 10
    strategy.ask(10)
    assert [own["length"] for own in strategy.report()["rounds"]] == [10]
    # ceil(sqrt(9)) + 6 is the horizon: no warning.
    assert len(make("bpe_delay", finite(), 9, delay=6).ask(9)) == 9


@both_domains
def test_a_round_of_which_nothing_comes_eliminates_nothing(domain):
    strategy = make("bpe", domain(), 30, width=0.1)
    for trial in strategy.ask(6):
        strategy.abandon(trial.id)
    trial = strategy.ask()
    report = strategy.report()["rounds"]
    assert (report[0]["arrived"], report[0]["threshold"]) == (0, None)
    assert (trial.info["round"], report[1]["volume"]) == (2, 1.0)
    # The second round starts from the prior, as the first did, and is another draw of it.
    assert trial.info["std"] == pytest.approx(1.0)
    assert not torch.equal(strategy.rounds[0].points, strategy.rounds[1].points[:6])


# --- arguments ------------------------------------------------------------------------------------


def test_a_width_sees_the_observations_of_one_round():
    width, problem = Stepwise(), rkhs(finite())
    strategy = make("bpe", problem.domain, 40, width=width)
    trace = simulate(strategy, problem, 40, seed=4)
    counts = [len(round.points) for round in strategy.rounds[:-1]]
    assert width.calls == [(n + 1, n) for n in counts]

    def expected(gain, n):
        return 0.4 + 0.02 * (n + 1), 0.3 / (n + 1)

    y, kept = trace.observations.tolist(), lengths("bpe", 0, 40)
    check_rounds(strategy, kernel(), kept, y, lambda s, last: True, expected)


def test_a_width_of_zero_keeps_the_argmax():
    strategy = make("bpe", finite(), 30, width=0.0)
    run(strategy, f, 30, progress=False)
    best = strategy.domain.points[strategy.rounds[1].survivors]
    assert best.tolist() == [strategy.rounds[0].closing.argmax]


def test_a_prior_mean_moves_everything_with_it():
    problem = rkhs(finite())
    plainly, shifted = (make("bpe", problem.domain, 50, width=1.0, mean=m) for m in (None, 7.0))
    for strategy, shift in ((plainly, 0.0), (shifted, 7.0)):
        run(strategy, lambda x, shift=shift: problem(x) + shift, 50, progress=False)
    assert torch.equal(points(plainly), points(shifted))
    one, two = ([r.closing.threshold for r in s.rounds[:-1]] for s in (plainly, shifted))
    assert two == pytest.approx([t + 7 for t in one], abs=1e-9)


def test_rounds_are_closed_in_one_way():
    prior, schedule = KernelGP(kernel(), LAMBDA), rounds.SquareRoot(30)
    late = rounds.DelayAware(schedule, 3)
    assert PhasedElimination(finite(), prior, 1.0, late).horizon == 30
    for lengths_, waits in ((schedule, True), (late, False)):
        with pytest.raises(ValueError, match=r"^closing must"):
            PhasedElimination(finite(), prior, 1.0, lengths_, waits=waits, closing="arrival")
    given = {"noise_variance": LAMBDA, "width": 1.0, "horizon": 30}
    for more in ({}, {"closing": "arrival", "delay": 3}):
        with pytest.raises(ValueError, match="delay must"):
            algorithms.bpe_delay(finite(), kernel(), **given, **more)


# --- on a box -------------------------------------------------------------------------------------


def net_width(num_rounds, q):
    """For the RBF kernel: C_k = 1 and xi = 1 in lengthscales."""
    sides = (3.0 / 0.9, 1.5 / 0.5)
    N = math.prod(math.ceil(side * math.sqrt(2) * B * math.sqrt(q) / 2) for side in sides)
    return published_width("bpe", num_rounds, N, 0.0)


@pytest.mark.parametrize(
    ("method", "constant", "horizon"),
    [
        ("bpe_delay", False, 30),
        pytest.param("bpe", True, 110, marks=pytest.mark.slow),
        pytest.param("phased_uncertainty_sampling", False, 110, marks=pytest.mark.slow),
    ],
)
def test_on_a_box_every_point_lies_in_the_region_of_its_round(method, constant, horizon):
    problem = rkhs(box(), seed=1)
    strategy = make(method, problem.domain, horizon, **({"width": SIXTH} if constant else {}))
    trace = simulate(strategy, problem, horizon, delay=delays.Poisson(4.0), seed=4)
    expected, grid = lengths(method, 6, horizon), box().sample(900, seed=3)
    tau, waits = trace.delays.tolist(), method != "bpe_delay"
    recorded, alive, first = [], torch.ones(len(grid), dtype=torch.bool), 0

    def slacks(Z):
        """Of the constraints so far, dense: ``constraints x m``."""
        rows = [Z.new_full((len(Z),), math.inf)]
        for X, y, w, offset, threshold in recorded:
            mean, covariance = dense_posterior(kernel(), X, y, Z, LAMBDA)
            rows.append(mean + w * covariance.diag().clamp_min(0).sqrt() + offset - threshold)
        return torch.stack(rows)

    for round, length in zip(strategy.rounds, expected, strict=True):
        assert round.ids == range(first, first + length)
        first += length
        asked = points(strategy, round.ids)
        # Tolerances: rounding of dense algebra, condition number 1e4.
        assert slacks(asked).min() >= -1e-8
        assert bool(box().contains(asked).all())
        assert bool(round.survivors.contains(problem.optimizer).all())
        at_grid = slacks(grid).amin(dim=0)
        torch.testing.assert_close(round.survivors.margin(grid), at_grid, rtol=0, atol=1e-7)
        alive = at_grid >= 0
        error = 5 * round.choice.volume_error + 0.06
        assert round.choice.volume == pytest.approx(alive.double().mean().item(), abs=error)
        if round is strategy.rounds[-1]:
            break
        arrived = [s for s in round.ids if waits or s + tau[s] <= round.ids[-1]]
        closing = round.closing
        assert sorted(closing.arrived) == arrived
        X, y = points(strategy, arrived), trace.observations[arrived]
        w, offset = SIXTH, 0.0
        if method == "phased_uncertainty_sampling":
            gain = dense_information_gain(kernel(), X, LAMBDA)
            w = published_width(method, len(expected), 1, gain)
        elif not constant:
            w, offset = net_width(len(expected), len(X)), 1 / math.sqrt(len(X))
        assert (closing.width, closing.offset) == pytest.approx((w, offset), rel=1e-9)
        # The threshold is the lower bound of a point of the region, and the largest on the grid.
        top = asked.new_tensor([closing.argmax])
        assert slacks(top).min() >= -1e-8
        mean, covariance = dense_posterior(kernel(), X, y, torch.cat([top, grid[alive]]), LAMBDA)
        lower = mean - w * covariance.diag().clamp_min(0).sqrt() - offset
        assert lower[0].item() == pytest.approx(closing.threshold, abs=1e-8)
        assert lower.max() <= closing.threshold + 1e-7
        recorded.append((X, y, w, offset, closing.threshold))
    assert not constant or alive.double().mean() < 0.6


# --- rounds that close by arrival -----------------------------------------------------------------

ARRIVALS = {
    "at once": ({"width": SIXTH}, delays.Fixed(0)),
    "later": ({"width": 1.0}, delays.Fixed(20)),
    "heavy": ({"width": 1.0, "kappa": math.sqrt(2)}, delays.LogNormal(2.0, 1.5)),
    "published": ({}, delays.Poisson(5.0)),
    "in any order": ({"width": 1.0, "kappa": 1.1}, None),
}


def follow(events, horizon, kappa=1.0, width=None):
    """Replays the decisions on the finite set; counts what was in it."""
    model = Candidate.at(finite().points, kernel(), LAMBDA)
    q = [1]
    while sum(q[1:]) < horizon:
        q.append(math.ceil(math.sqrt(horizon * q[-1]) - 1e-12))
    w = published_width("bpe", len(q) - 1, 54, 0.0) if width is None else width
    alive, r, first, plays_mean = torch.ones(54, dtype=torch.bool), 1, 0, False
    row, y, promise, seen = {}, {}, math.nan, Counter()
    for event in events:
        match event:
            case Told(id, value):
                y[id] = value
            case Abandoned():
                seen["abandoned"] += 1
        if not isinstance(event, Asked):
            continue
        id, info = event.trial.id, event.trial.info
        opens = id == 0
        if id - first >= q[r] and not plays_mean:
            arrived = [i for i in range(first, id) if i in y]
            known = [row[i] for i in arrived]
            mean, std = model.mean(known, [y[i] for i in arrived]), model.std(known)
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
                promise = float(model.std(record["plan"])[alive].max())
                assert record["promise"] == pytest.approx(promise, abs=1e-8)
        assert info["round"] == r
        row[id] = info["index"]
        assert alive[row[id]]
        if plays_mean:
            seen["mean"] += 1
            mean = model.mean([row[i] for i in y], list(y.values()))
            assert mean[alive].max() - mean[row[id]] <= 1e-7
        else:
            std = model.std([row[i] for i in range(first, id)])
            assert std[alive].max() - std[row[id]] <= 1e-7
            assert info["std"] == pytest.approx(std[row[id]].item(), abs=1e-7)
    return seen, alive


def by_arrival(domain, horizon, **options):
    return make("bpe_delay", domain, horizon, delay="unknown", closing="arrival", **options)


def test_rounds_that_close_by_arrival():
    seen = Counter()
    for options, delay in ARRIVALS.values():
        problem = rkhs(finite())
        strategy = by_arrival(problem.domain, 130, **options)
        if delay is None:
            play(strategy, problem, seed=11)
        else:
            simulate(strategy, problem, 130, delay=delay, seed=4)
        counted, alive = follow(strategy.events, 130, **options)
        assert alive.nonzero().flatten().tolist() == strategy.rounds[-1].survivors.tolist()
        seen += counted
        own = strategy.report()["rounds"]
        assert sum(each["length"] for each in own) == sum(each["asked"] for each in own) == 130
    for what in ("closed", "waited", "closed without all", "mean", "abandoned"):
        assert seen[what] > 0, what


@pytest.mark.slow
def test_on_a_box_the_last_round_plays_the_highest_mean():
    problem, horizon = rkhs(box(), seed=1), 60
    strategy = by_arrival(problem.domain, horizon, width=1.0)
    trace = simulate(strategy, problem, horizon, delay=delays.Poisson(3.0), seed=4)
    last, known, asked = strategy.rounds[-1], [], 0
    Z = box().sample(500, seed=3)
    Z = Z[last.survivors.contains(Z)]
    for event in strategy.events:
        if isinstance(event, Told):
            known.append(event.id)
        if isinstance(event, Asked) and event.trial.id in last.ids:
            X, y = points(strategy, known), trace.observations[known]
            at = torch.cat([event.trial.x[None], Z])
            mean, _ = dense_posterior(kernel(), X, y, at, LAMBDA)
            assert mean[0] >= mean.max() - 1e-6
            asked += 1
    assert last.plays_mean and asked == len(last.points) > 5
