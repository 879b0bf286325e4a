"""Phased methods against their pseudo-code, written out in plain loops and dense algebra."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import delays, rounds, run, simulate
from botorch_ext.exceptions import HorizonReached, HorizonWarning
from botorch_ext.strategies import Asked, Told
from tests.helpers import matern
from tests.oracles.posterior import dense_information_gain, dense_posterior, self_normalized_width
from tests.strategies.fixed_design import sessions
from tests.strategies.fixed_design.sessions import DELTA, LAMBDA, METHODS, SIGMA, B, points, rkhs
from tests.strategies.sessions import Stepwise, both_domains, box, f, finite, kernel

make = sessions.phased
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
    """The round lengths; the last one may reach beyond the horizon."""
    found, q = [], 1
    while sum(found) < horizon:
        if method == "phased_uncertainty_sampling":
            length = 2 ** len(found)
        else:
            q = math.ceil(math.sqrt(horizon * q))
            length = math.ceil(q + allowance) if method == "bpe_delay" else q
        found.append(length)
    return found


def published_width(method, num_rounds, num_points, gain):
    if method == "phased_uncertainty_sampling":
        return self_normalized_width(B, SIGMA, DELTA / num_rounds, LAMBDA, gain)
    share = DELTA / (4 * num_rounds * num_points)
    return B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / share))


def follow(strategy, k, q, width, grid=None):
    """Replays the decisions; returns how many points each round has to choose from.

    ``q`` has the lengths of the rounds, and ``width`` gives width and offset by the information
    gain and the number of the observations that are in. On a box a ``grid``
    stands for the points of the set.
    """
    on_set = grid is None
    Z = strategy.domain.points if on_set else grid
    alive, r, first = torch.ones(len(Z), dtype=torch.bool), 0, 0
    y, constraints, counts = {}, [], [len(alive)]

    def moments(ids, at):
        """Means given the told values, and standard deviations given all trials."""
        if not ids:
            return at.new_zeros(len(at)), at.new_ones(len(at))
        told = at.new_tensor([y.get(id, 0.0) for id in ids])
        mean, covariance = dense_posterior(k, points(strategy, ids), told, at, LAMBDA)
        return mean, covariance.diagonal().clamp_min(0).sqrt()

    def slacks(at):
        """How far points lie above the highest threshold so far; negative if eliminated."""
        rows = [at.new_full((len(at),), math.inf)]
        for ids, w, offset, threshold in constraints:
            mean, std = moments(ids, at)
            rows.append(mean + w * std + offset - threshold)
        return torch.stack(rows).amin(dim=0)

    for event in strategy.events:
        if isinstance(event, Told):
            y[event.id] = event.value
        if not isinstance(event, Asked):
            continue
        id, x, info = event.trial.id, event.trial.x, event.trial.info
        opens = id == 0 or id - first == q[r]
        if id and opens:
            arrived = [i for i in range(first, id) if i in y]
            round, survivors = strategy.rounds[r], strategy.rounds[r + 1].survivors
            closing = round.closing
            assert round.ids == range(first, id)
            assert sorted(closing.arrived) == arrived
            if arrived:
                gain = dense_information_gain(k, points(strategy, arrived), LAMBDA)
                w, offset = width(gain, len(arrived))
                assert (closing.width, closing.offset) == pytest.approx((w, offset), rel=1e-9)
                # The threshold is the highest lower bound of what is left.
                top = Z.new_tensor([closing.argmax])
                assert slacks(top) >= -1e-8
                mean, std = moments(arrived, torch.cat([top, Z[alive]]))
                lower = mean - w * std - offset
                close, above = (1e-9, 1e-9) if on_set else (1e-8, 1e-7)
                assert lower[0].item() == pytest.approx(closing.threshold, abs=close)
                assert lower.max() <= closing.threshold + above
                constraints.append((arrived, w, offset, closing.threshold))
            after, margin = alive.clone(), slacks(Z)
            if on_set:
                after = torch.zeros_like(alive)
                after[survivors] = True
                # Points within rounding of the threshold may be kept or not.
                clear = margin.abs() > 1e-8
                assert torch.equal((alive & (margin >= 0))[clear], after[clear])
                assert not bool((after & ~alive).any())
            elif constraints:
                assert_close(survivors.margin(Z), margin, rtol=0, atol=1e-7)
                after = margin >= 0
            alive, r, first = after, r + 1, id
            counts.append(int(alive.sum()))
        assert opens == ("opening" in info)
        if opens:
            record, left = info["opening"], strategy.horizon - id
            error = 1e-9 if on_set else 5 * strategy.rounds[r].choice.volume_error + 0.06
            assert record["volume"] == pytest.approx(float(alive.double().mean()), abs=error)
            assert len(record["plan"]) == min(q[r], left)
        assert info["round"] == r + 1
        # Tolerances: rounding of dense algebra, condition number 1e4.
        assert slacks(x[None]) >= -1e-8
        _, std = moments(list(range(first, id)), torch.cat([x[None], Z[alive]]))
        assert info["std"] == pytest.approx(std[0].item(), abs=1e-7)
        assert std[0] >= std.max() - (1e-7 if on_set else 0.05)  # the best of a few climbers
    assert len(strategy.rounds) == len(counts)
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
    tau = simulate(strategy, problem, HORIZON, delay=distribution, seed=4).delays.tolist()
    q = lengths(method, u)

    def width(gain, n):
        return (SIXTH if constant else published_width(method, len(q), 54, gain)), 0.0

    counts = follow(strategy, k, q, width)
    assert counts[0] == 54 > counts[-1]
    report, late = strategy.report()["rounds"], []
    for own, round, length, count in zip(report, strategy.rounds, q, counts, strict=True):
        is_last = round is strategy.rounds[-1]
        assert own["length"] == min(length, HORIZON - round.first)
        assert (own["num_candidates"], own["volume"]) == (count, count / 54)
        assert own["closed"] == (not is_last)
        gain = dense_information_gain(k, round.points, LAMBDA)
        assert own["information_gain"] == pytest.approx(gain, rel=1e-6)
        if not is_last:
            late += [s for s in round.ids if s + tau[s] > round.ids[-1]]
    late = late if method == "bpe_delay" else []  # others wait
    too_late = [id for own in report[:-1] for id in own["told_too_late"]]
    assert too_late == [s for s in late if s + tau[s] + 1 < HORIZON]
    assert bool(late) == (delay != "none" and method == "bpe_delay")


@pytest.mark.parametrize("method", METHODS)
def test_histories_with_lost_and_reordered_observations(method):
    problem = rkhs(finite(), seed=1)
    strategy = make(method, problem.domain, HORIZON, width=SIXTH)
    waits = sessions.play(strategy, problem, seed=11)
    assert strategy.history.abandoned
    assert any(not wait.available for wait in waits) == (method != "bpe_delay")
    follow(strategy, kernel(), lengths(method, 6), lambda *_: (SIXTH, 0.0))
    # The best is that of all that was told, also too late.
    values = strategy.history.values
    X = points(strategy, values)
    mean, _ = dense_posterior(kernel(), X, X.new_tensor(list(values.values())), X, LAMBDA)
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


def test_a_width_sees_the_observations_of_one_round():
    width, problem = Stepwise(), rkhs(finite())
    strategy = make("bpe", problem.domain, 40, width=width)
    simulate(strategy, problem, 40, seed=4)
    counts = [len(round.points) for round in strategy.rounds[:-1]]
    assert width.calls == [(n + 1, n) for n in counts]

    def expected(gain, n):
        return 0.4 + 0.02 * (n + 1), 0.3 / (n + 1)

    follow(strategy, kernel(), lengths("bpe", 0, 40), expected)


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
    problem, q = rkhs(box(), seed=1), lengths(method, 6, horizon)
    strategy = make(method, problem.domain, horizon, **({"width": SIXTH} if constant else {}))
    simulate(strategy, problem, horizon, delay=delays.Poisson(4.0), seed=4)

    def width(gain, n):
        if constant:
            return SIXTH, 0.0
        if method == "phased_uncertainty_sampling":
            return published_width(method, len(q), 1, gain), 0.0
        return net_width(len(q), n), 1 / math.sqrt(n)

    counts = follow(strategy, kernel(), q, width, grid=box().sample(900, seed=3))
    assert all(bool(own.survivors.contains(problem.optimizer).all()) for own in strategy.rounds)
    assert not constant or counts[-1] < 0.6 * 900
