"""Phased methods against their pseudo-code, written out in plain loops and dense algebra."""

import math

import pytest
import torch
from gpytorch.kernels import MaternKernel
from torch.testing import assert_close

from botorch_ext import delays, simulate, widths
from botorch_ext.strategies import Abandoned, Asked, Told
from tests.helpers import pairwise, tolerance
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
from tests.strategies.sessions import box, finite, kernel

TOL = tolerance(torch.float64)
HORIZON = 130
SIXTH = math.sqrt(6)

# name: the delays, the allowance, and the allowance written out
POISSON = delays.Poisson(5.0)
HEAVY = delays.LogNormal(2.0, 1.5)
DELAYS = {
    "none": (None, 0, 0.0),
    "poisson": (
        POISSON,
        delays.SubExponential(5.0, xi=3.0, b=1.0),
        5.0
        + max(math.sqrt(2 * 9 * math.log(3 * HORIZON / DELTA)), 2 * math.log(3 * HORIZON / DELTA)),
    ),
    # In one step of seven the observation comes later than the allowance.
    "heavy": (HEAVY, 9.5, 9.5),
}


def lengths(method, allowance, horizon=HORIZON):
    """The round lengths, the last one cut to the horizon."""
    asked, found, q = 0, [], 1
    while asked < horizon:
        if method == "phased_uncertainty_sampling":
            length = 2 ** len(found)
        else:
            q = math.ceil(math.sqrt(horizon * q))
            length = math.ceil(q + allowance) if method == "bpe_delay" else q
        found.append(min(length, horizon - asked))
        asked += found[-1]
    return found


def published_width(method, num_rounds, num_points, gain):
    if method == "phased_uncertainty_sampling":
        return self_normalized_width(B, SIGMA, DELTA / num_rounds, LAMBDA, gain)
    share = DELTA / (4 * num_rounds * num_points)
    return B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / share))


def with_kernel(kind):
    if kind == "rbf":
        return kernel()
    k = MaternKernel(nu=2.5, ard_num_dims=2).double()
    k.lengthscale = torch.tensor([1.8, 1.0], dtype=torch.float64)
    return k


def check_rounds(strategy, k, expected_lengths, y, is_in, width):
    """Replays the picks of a finite history; returns how many candidates each round has.

    ``is_in(s, e)`` says whether the observation of step s is in when the round with last step e
    closes; ``width`` is a function of the information gain of the observations that are.
    """
    P = strategy.domain.points
    with torch.no_grad():
        K = k(P).to_dense()
    rows = [trial.info["index"] for trial in strategy.history.trials]

    def dense(steps, values=None):
        """Mean and standard deviation at all candidates given observations of some steps."""
        seen = [rows[s] for s in steps]
        ridge = LAMBDA * torch.eye(len(seen), dtype=K.dtype)
        weights = torch.linalg.solve(K[seen][:, seen] + ridge, K[seen])
        variance = K.diag() - (weights * K[seen]).sum(dim=0)
        mean = weights.mT @ (K.new_zeros(len(seen)) if values is None else K.new_tensor(values))
        return mean, variance.clamp_min(0).sqrt()

    alive = torch.ones(len(P), dtype=torch.bool)
    first, counts = 0, []
    for round, length in zip(strategy.rounds, expected_lengths, strict=True):
        assert round.number == len(counts) + 1
        steps = range(first, first + length)
        assert round.ids == steps
        counts.append(int(alive.sum()))
        for s in steps:
            _, std = dense(range(first, s))
            assert alive[rows[s]]
            assert std[alive].max() - std[rows[s]] <= 1e-7
            info = strategy.history.trials[s].info
            assert info["round"] == round.number
            assert info["std"] == pytest.approx(std[rows[s]].item(), abs=1e-7)
        last = steps[-1]
        first = last + 1
        if round is strategy.rounds[-1]:
            break
        arrived = [s for s in steps if is_in(s, last)]
        after = torch.zeros_like(alive)
        after[strategy.rounds[round.number].survivors] = True
        assert round.closing is not None and round.closing.arrived == arrived
        if not arrived:
            assert torch.equal(after, alive)
            assert round.closing.threshold is None
            continue
        mean, std = dense(arrived, [y[s] for s in arrived])
        w = width(dense_information_gain(k, P[[rows[s] for s in arrived]], LAMBDA))
        threshold = (mean - w * std)[alive].max()
        slack = mean + w * std - threshold
        assert round.closing.width == pytest.approx(w, rel=1e-9)
        assert round.closing.offset == 0
        assert round.closing.threshold == pytest.approx(threshold.item(), abs=1e-9)
        # Points within rounding of the threshold may be kept or not.
        disputed = slack.abs() <= 1e-9
        assert torch.equal((alive & (slack >= 0))[~disputed], after[~disputed])
        assert not bool((after & ~alive).any())
        alive = after
    return counts


@pairwise(method=METHODS, kind=["rbf", "matern"], constant=[False, True], delay=DELAYS)
def test_every_pick_is_a_maximiser_among_the_survivors(method, kind, constant, delay):
    distribution, allowance, u = DELAYS[delay]
    problem, k = rkhs(finite()), with_kernel(kind)
    more = {"kernel": k}
    if constant:
        more["width"] = SIXTH
    if method == "bpe_delay":
        more["delay"] = allowance
    strategy = make(method, problem.domain, HORIZON, **more)
    trace = simulate(strategy, problem, HORIZON, delay=distribution, seed=4)
    expected = lengths(method, u)
    waits = method != "bpe_delay"
    tau = trace.delays.tolist()

    def is_in(s, last):
        return waits or s + tau[s] <= last

    def width(gain):
        return SIXTH if constant else published_width(method, len(expected), 54, gain)

    counts = check_rounds(
        strategy, with_kernel(kind), expected, trace.observations.tolist(), is_in, width
    )
    assert counts[0] == 54
    assert counts[-1] <= 40  # otherwise nothing was shown
    if delay == "heavy" and not waits:
        too_late = [
            id for round in strategy.report()["rounds"][:-1] for id in round["told_too_late"]
        ]
        late = [s for r in strategy.rounds[:-1] for s in r.ids if not is_in(s, r.ids[-1])]
        assert late
        assert too_late == [s for s in late if s + tau[s] + 1 < HORIZON]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", METHODS)
def test_histories_with_lost_and_reordered_observations(method, seed):
    problem = rkhs(finite(), seed=seed)
    strategy = make(method, problem.domain, HORIZON, width=SIXTH)
    play(strategy, problem, seed=10 + seed)
    # When each observation was told: after how many asks.
    told_after, y, lost, num_asked = {}, {}, set(), 0
    for event in strategy.events:
        match event:
            case Asked():
                num_asked += 1
            case Told(id, value):
                told_after[id], y[id] = num_asked, value
            case Abandoned(id):
                lost.add(id)
    assert lost

    def is_in(s, last):
        return s in y and told_after[s] <= last + 1

    check_rounds(strategy, kernel(), lengths(method, 6), y, is_in, lambda gain: SIXTH)


@pytest.mark.parametrize(
    ("method", "domain"), [("phased_uncertainty_sampling", finite), ("bpe", box)]
)
def test_what_waits_does_not_depend_on_the_delays(method, domain):
    horizon = 40
    problem = rkhs(domain())
    prompt, late = (make(method, problem.domain, horizon) for _ in range(2))
    simulate(prompt, problem, horizon, seed=2)
    simulate(late, problem, horizon, delay=HEAVY, seed=2)
    # The observations arrive in another order: their sums are rounded differently.
    assert_close(points(prompt), points(late), **TOL)


# --- at once --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "delay"),
    [(finite, 0), (finite, None), (finite, delays.Fixed(0)), (box, delays.Poisson(0.0))],
)
def test_without_delay_and_allowance_bpe_delay_is_bpe(domain, delay):
    horizon = 60
    problem = rkhs(domain())
    waiting = make("bpe", problem.domain, horizon)
    delayed = make("bpe_delay", problem.domain, horizon, delay=delay)
    simulate(waiting, problem, horizon, seed=1)
    simulate(delayed, problem, horizon, seed=1)
    one, two = ([trial.info for trial in s.history.trials] for s in (waiting, delayed))
    assert one == two
    assert torch.equal(points(waiting), points(delayed))
    assert waiting.report()["rounds"] == delayed.report()["rounds"]


# --- on a box -------------------------------------------------------------------------------------


def moments(X, y, Z):
    """Mean and standard deviation at Z, some hundred points at a time."""
    parts = [dense_posterior(kernel(), X, y, chunk, LAMBDA) for chunk in Z.split(300)]
    std = [covariance.diag().clamp_min(0).sqrt() for _, covariance in parts]
    return torch.cat([mean for mean, _ in parts]), torch.cat(std)


def net_width(num_rounds, q):
    """For the RBF kernel: C_k = 1 and xi = 1 in lengthscale units."""
    rho = 1 / (B * math.sqrt(q))
    sides = (3.0 / 0.9, 1.5 / 0.5)
    N = math.prod(math.ceil(side * math.sqrt(2) / (2 * rho)) for side in sides)
    share = DELTA / (4 * num_rounds * N)
    return B + SIGMA / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / share))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "constant"),
    [("phased_uncertainty_sampling", False), ("bpe", True), ("bpe_delay", False)],
)
def test_on_a_box_every_point_lies_in_the_region_of_its_round(method, constant):
    problem, horizon = rkhs(box(), seed=1), 110
    more = {"width": SIXTH} if constant else {}
    strategy = make(method, problem.domain, horizon, **more)
    trace = simulate(strategy, problem, horizon, delay=delays.Poisson(4.0), seed=4)
    expected = lengths(method, 6, horizon)
    x, y = (torch.linspace(*ends, 41, dtype=torch.float64) for ends in ((2.0, 5.0), (-3.0, -1.5)))
    grid = torch.cartesian_prod(x, y)
    tau, waits = trace.delays.tolist(), method != "bpe_delay"
    first = counted = 0
    recorded, alive = [], torch.ones(len(grid), dtype=torch.bool)

    def slacks(Z):
        """Of the constraints so far, dense: ``constraints x m``."""
        rows = [Z.new_full((len(Z),), math.inf)]
        for X, values, w, offset, threshold in recorded:
            mean, std = moments(X, values, Z)
            rows.append(mean + w * std + offset - threshold)
        return torch.stack(rows)

    for round, length in zip(strategy.rounds, expected, strict=True):
        assert round.ids == range(first, first + length)
        first += length
        # Nothing outside is asked. Tolerance: rounding of dense algebra, condition number 1e4.
        asked = points(strategy, round.ids)
        assert bool(box().contains(asked).all())
        margin = slacks(asked).amin(dim=0)
        assert margin.min() >= -1e-8
        counted += len(asked)
        assert bool(round.survivors.contains(problem.optimizer).all())
        at_grid = slacks(grid).amin(dim=0)
        assert_close(round.survivors.margin(grid), at_grid, rtol=0, atol=1e-7)
        # The estimated volume, against the share of a grid whose cells on the boundary can be
        # wrong.
        assert not bool((alive < (at_grid >= 0)).any())  # regions are nested
        alive = at_grid >= 0
        error = 5 * round.choice.volume_error + 0.03
        assert round.choice.volume == pytest.approx(alive.double().mean().item(), abs=error)
        if round is strategy.rounds[-1]:
            break
        arrived = [s for s in round.ids if waits or s + tau[s] <= round.ids[-1]]
        closing = round.closing
        assert closing is not None and sorted(closing.arrived) == arrived
        X, values = points(strategy, arrived), trace.observations[arrived]
        if constant:
            w, offset = SIXTH, 0.0
        elif method == "phased_uncertainty_sampling":
            gain = dense_information_gain(kernel(), X, LAMBDA)
            w, offset = published_width(method, len(expected), 1, gain), 0.0
        else:
            w, offset = net_width(len(expected), len(X)), 1 / math.sqrt(len(X))
        assert closing.width == pytest.approx(w, rel=1e-9)
        assert closing.offset == pytest.approx(offset, rel=1e-9)

        def lower(Z, X=X, values=values, w=w, offset=offset):
            mean, std = moments(X, values, Z)
            return mean - w * std - offset

        # The threshold is a true value of the lower bound, at a point of the region, and no point
        # of the grid in the region has a larger one.
        top = asked.new_tensor([closing.argmax])
        assert lower(top).item() == pytest.approx(closing.threshold, abs=1e-8)
        assert slacks(top).min() >= -1e-8
        assert lower(grid)[alive].max() <= closing.threshold + 1e-7
        recorded.append((X, values, w, offset, closing.threshold))
    assert counted == horizon
    assert alive.double().mean() < (0.6 if constant else 0.97)


def test_a_rigorous_width_eliminates_nothing():
    # At practical horizons FixedDesignContinuous keeps the whole box.
    problem, horizon = rkhs(box()), 60
    width = widths.FixedDesignContinuous(B, SIGMA, DELTA, num_rounds=3)
    strategy = make("bpe", problem.domain, horizon, width=width)
    simulate(strategy, problem, horizon, seed=0)
    assert [round["volume"] for round in strategy.report()["rounds"]] == [1.0, 1.0, 1.0]
