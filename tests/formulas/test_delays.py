"""Distributions of delays, allowances for them, and lengths of rounds, against formulas by hand."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from botorch_ext.delays import (
    Fixed,
    FixedAllowance,
    FromScipy,
    Geometric,
    LogNormal,
    Observed,
    Poisson,
    Quantile,
    SeenDelays,
    SubExponential,
    as_allowance,
    as_delay,
)
from botorch_ext.delays.allowances import kaplan_meier
from botorch_ext.delays.rounds import DelayAware, Doubling, SquareRoot

NUM = 20_000
NOTHING = SeenDelays()

# --- distributions --------------------------------------------------------------------------------


def draws(delay, num: int = NUM, seed: int = 0) -> np.ndarray:
    sample = as_delay(delay).sample(num, np.random.default_rng(seed))
    assert (sample.dtype, sample.shape) == (np.int64, (num,))
    assert sample.min() >= 0
    return sample


def log_normal(k: int) -> float:
    """The chance of k steps: exp of a normal variable, rounded up."""
    normal, low = stats.norm(), math.log((k - 1) / 4) / 0.7 if k > 1 else -math.inf
    return float(normal.cdf(math.log(k / 4) / 0.7) - normal.cdf(low)) if k else 0.0


CHANCES = {
    Poisson(3.5): lambda k: math.exp(-3.5) * 3.5**k / math.factorial(k),
    Geometric(3.5): lambda k: 1 / 4.5 * (1 - 1 / 4.5) ** k,
    LogNormal(4.0, 0.7): log_normal,
}


@pytest.mark.parametrize("delay", CHANCES, ids=repr)
def test_delays_follow_their_formula(delay):
    expected = np.array([CHANCES[delay](k) for k in range(13)])
    found = np.bincount(draws(delay), minlength=13)[:13] / NUM
    # Five standard errors: a false alarm in 6e-7 for each.
    assert (np.abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / NUM) + 1e-12).all()


def test_what_users_pass_as_a_delay():
    for none in (None, 0, Poisson(0), Geometric(0), stats.poisson(0)):
        assert (draws(none, 50) == 0).all()
    for steps in (3, np.int64(3), Fixed(3), stats.randint(3, 4)):
        assert (draws(steps, 50) == 3).all()
    gamma = stats.gamma(2.0, scale=3.0)
    rounded = np.ceil(gamma.rvs(NUM, random_state=np.random.default_rng(0)))
    assert (draws(gamma) == rounded).all()
    assert draws(LogNormal(1.0, 200.0), 200).max() == 2**53  # a tail beyond the integers is cut
    assert as_delay(Poisson(50)) == Poisson(50)
    assert as_delay(None) == as_delay(0) == Fixed(0)
    assert repr(as_delay(gamma)) == "FromScipy(gamma(2.0, scale=3.0))"
    assert isinstance(pickle.loads(pickle.dumps(as_delay(gamma))), FromScipy)


def test_the_generator_given_is_the_only_randomness():
    state = np.random.get_state()[1].copy()  # noqa: NPY002, RUF100
    for delay in (Poisson(5), Geometric(5), LogNormal(5, 1), stats.gamma(2.0)):
        assert (draws(delay, 100, seed=1) == draws(delay, 100, seed=1)).all()
        assert (draws(delay, 100, seed=1) != draws(delay, 100, seed=2)).any()
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002, RUF100


NO_DELAYS = [
    *(-1, 2.5, True, "Poisson", stats.poisson, stats.norm(50, 5), stats.poisson(3, loc=-1)),
    *(stats.gamma(-1.0), stats.pareto(0.9), stats.gamma([1.0, 2.0])),
]


@pytest.mark.parametrize("delay", NO_DELAYS)
def test_what_is_no_delay_is_refused(delay):
    for read in (as_delay, Quantile):
        with pytest.raises(ValueError, match="delay must"):
            read(delay)


# --- allowances that are known --------------------------------------------------------------------


def test_what_users_pass_as_an_allowance():
    observed = Observed(0.9)
    assert as_allowance(observed) is observed
    assert as_allowance(Poisson(50)) == Quantile(Poisson(50))
    assert isinstance(as_allowance(stats.gamma(2.0)), Quantile)
    assert as_allowance(None) == as_allowance(0) == FixedAllowance(0)
    for steps in (3, 2.5, np.int64(3), np.float64(2.5)):
        assert as_allowance(steps)(9, 1000, 0.01, NOTHING) == steps
    assert not FixedAllowance(3).learns and Observed().learns


@given(
    mean=st.floats(0, 60),
    xi=st.floats(0.1, 10),
    b=st.floats(0.1, 5),
    horizon=st.integers(1, 5000),
    delta=st.floats(0.001, 0.9),
)
def test_sub_exponential_is_its_formula(mean, xi, b, horizon, delta):
    log = math.log(3 * horizon / (2 * (delta / 2)))
    terms = [math.sqrt(2 * xi**2 * log), 2 * b * log]
    for printed, either in ((False, max), (True, min)):
        found = SubExponential(mean, xi, b, printed=printed)(17, horizon, delta, NOTHING)
        assert found == pytest.approx(mean + either(terms), rel=1e-12)


def test_the_printed_allowance_is_too_short():
    # The numbers of the specification: 1000 delays of mean 50.
    for printed, excess, chance in ((True, 25.2, 0.31), (False, 45.2, 5e-6)):
        allowance = SubExponential(50, 9, 1, printed=printed)(32, 1000, 0.01, NOTHING)
        assert round(allowance - 50, 1) == excess
        longest = 1 - (1 - stats.poisson(50).sf(allowance)) ** 1000
        assert longest == pytest.approx(chance, rel=0.1)


DISTRIBUTIONS = [
    *(Poisson(50), Geometric(50), Geometric(0), LogNormal(20, 1.5), Fixed(7)),
    *(stats.gamma(2.0, scale=3.0), stats.nbinom(5, 0.1)),
]


@pytest.mark.parametrize("delay", DISTRIBUTIONS)
@pytest.mark.parametrize(("horizon", "delta"), [(1, 0.5), (1000, 0.01), (10**6, 0.05)])
def test_a_quantile_is_the_smallest_that_suffices(delay, horizon, delta):
    steps = Quantile(delay)(5, horizon, delta, NOTHING)
    distribution = getattr(delay, "distribution", delay)
    assert steps == int(steps) >= 0
    with np.errstate(all="ignore"):  # scipy's geometric distribution with p = 1 takes log(0)
        assert distribution.sf(steps) <= delta / (2 * horizon)
        assert steps == 0 or distribution.sf(steps - 1) > delta / (2 * horizon)
    assert Quantile(LogNormal(1.0, 200.0))(1, 1000, 0.01, NOTHING) == 2**53


# --- the online estimate --------------------------------------------------------------------------


def by_hand(delays: list[int], ages: list[int]) -> dict[int, float]:
    """Kaplan-Meier: the product over told delays t of 1 - (told at t) / (with t or more)."""
    curve, survival = {}, 1.0
    for t in sorted(set(delays)):
        at_risk = sum(x >= t for x in delays) + sum(x >= t for x in ages)
        survival *= 1 - sum(x == t for x in delays) / at_risk
        curve[t] = survival
    return curve


def observed_by_hand(delays: list[int], ages: list[int], length: int, chance: float) -> float:
    """As the docstring of `Observed` has it."""
    largest = max([0, *delays, *ages])
    if len(delays) < 20:
        return max(length, 2 * largest)
    curve = by_hand(delays, [*ages, largest + 1])
    for t, survival in curve.items():
        if survival <= chance * (1 + 1e-9):
            return t
    u = sorted(delays)[-10] - 1
    beyond = [t - u for t in delays if t > u]
    k, S = len(beyond), sum(beyond) + sum(max(age - u, 0) for age in ages)
    p = min([1.0, *(survival for t, survival in curve.items() if t <= u)])
    rate = math.log((S + 1) / (S - k + 1))
    return max(largest, math.ceil(u + k * ((p / chance) ** (1 / k) - 1) / rate))


delays_seen = st.lists(st.integers(0, 25), min_size=1, max_size=60)


@given(told=delays_seen, ages=st.lists(st.integers(0, 30), max_size=30))
def test_kaplan_meier_is_its_product(told, ages):
    times, survival = kaplan_meier(SeenDelays(told, ages))
    curve = by_hand(told, ages)
    assert times.tolist() == list(curve)
    assert survival == pytest.approx(list(curve.values()), rel=1e-12)


@given(
    told=delays_seen | st.lists(st.integers(0, 25), min_size=18, max_size=60),
    ages=st.lists(st.integers(0, 30), max_size=30),
    length=st.integers(1, 60),
    level=st.sampled_from([None, 0.3, 0.5, 0.9, 0.99, 0.9999]),
)
def test_observed_is_its_description(told, ages, length, level):
    found = Observed(level)(length, 700, 0.1, SeenDelays(told, ages))
    chance = 0.1 / 1400 if level is None else 1 - level
    assert found == observed_by_hand(told, ages, length, chance)


LAWS = [Poisson(50), Poisson(0.5), Geometric(50), LogNormal(20, 0.7), LogNormal(20, 1.5)]


@pytest.mark.parametrize("delay", LAWS, ids=repr)
@pytest.mark.parametrize(("num", "now"), [(150, 10**6), (200, 200), (100, 130)])
def test_observed_covers_the_next_delay(delay, num, now):
    """Trials are asked one a step; those that have not come by the ask of step ``now`` pend."""
    rng, seen = np.random.default_rng(0), []
    for _ in range(60):
        tau, steps = delay.sample(num, rng), np.arange(num)
        told = steps + tau + 1 <= now
        seen.append(SeenDelays(tau[told], (now - steps - 1)[~told]))
    for level in (0.9, 0.99):
        covered = delay.distribution.cdf([Observed(level)(1, 1000, 0.01, each) for each in seen])
        missed, error = 1 - np.mean(covered), np.std(covered) / math.sqrt(60)
        # Tails heavier than exponential are underrated. Else three standard errors: a false alarm
        # in about 1e-3 of the seeds.
        heavy = delay == LogNormal(20, 1.5) and level > 0.9
        assert missed <= (4.0 if heavy else 1.2) * (1 - level) + 3 * error


def ceil_sqrt(number: int) -> int:
    """The smallest whole number whose square is at least ``number``."""
    root = max(int(math.sqrt(number)) - 2, 0)
    while root * root < number:
        root += 1
    return root


def designs(horizon: int, first: int | None) -> list[int]:
    """q_1, ..., q_12 of doubling from a first length, or of square roots."""
    lengths = [1 if first is None else first]
    while len(lengths) < 13:
        lengths.append(ceil_sqrt(horizon * lengths[-1]) if first is None else 2 * lengths[-1])
    return lengths[1:] if first is None else lengths[:-1]


def cut(lengths: list[int], horizon: int) -> list[int]:
    """The lengths of all rounds of the horizon, the last one cut."""
    found: list[int] = []
    while sum(found) < horizon:
        found.append(min(lengths[len(found)], horizon - sum(found)))
    return found


@given(
    horizon=st.integers(1, 4000),
    first=st.none() | st.integers(1, 50),
    steps=st.floats(0, 60) | st.integers(0, 60),
)
def test_lengths_are_those_of_plain_loops(horizon, first, steps):
    rounds = SquareRoot(horizon) if first is None else Doubling(first)
    q = designs(horizon, first)
    assert [rounds.design_length(r) for r in range(1, 13)] == q
    assert [rounds.length(r, horizon, 0.1, NOTHING) for r in range(1, 13)] == q
    assert rounds.lengths(horizon, 0.1) == cut(q, horizon)
    assert rounds.count(horizon, 0.1) == len(cut(q, horizon))
    late = DelayAware(rounds, FixedAllowance(steps))
    longer = [length + math.ceil(steps) for length in q]
    assert [late.design_length(r) for r in range(1, 13)] == q
    assert [late.length(r, horizon, 0.1, NOTHING) for r in range(1, 13)] == longer
    assert late.lengths(horizon, 0.1) == cut(longer, horizon)
    assert late.count(horizon, 0.1) == len(cut(longer, horizon))


def test_square_roots_are_exact_where_floats_are_not():
    horizon = (2**31 + 1) ** 2  # the root of horizon is whole, floats do not tell horizon + 1 apart
    assert SquareRoot(horizon).design_length(1) == 2**31 + 1
    assert SquareRoot(horizon + 1).design_length(1) == 2**31 + 2


def test_allowances_of_delays():
    allowance = Quantile(Poisson(50))
    steps = int(allowance(32, 1000, 0.01, NOTHING))
    known = DelayAware(SquareRoot(1000), Poisson(50))
    assert known == DelayAware(SquareRoot(1000), allowance)
    assert known.lengths(1000, 0.01) == [32 + steps, 179 + steps, 424 + steps, 365 - 3 * steps]
    learnt = DelayAware(SquareRoot(1000), Observed(0.9))
    assert learnt.length(1, 1000, 0.01, NOTHING) == 32 + 32
    assert learnt.length(2, 1000, 0.01, SeenDelays([7] * 60)) == 179 + 7
    # The largest number that is possible, since it must not depend on delays to come.
    assert learnt.count(1000, 0.01) == SquareRoot(1000).count(1000, 0.01) == 4


def test_horizons_agree():
    for rounds in (SquareRoot(30), DelayAware(SquareRoot(30), 3)):
        assert rounds.agreed_horizon() == rounds.agreed_horizon(30) == 30
        with pytest.raises(ValueError, match="horizon must be 30"):
            rounds.agreed_horizon(31)
    assert Doubling().agreed_horizon(7) == 7
    for rounds in (DelayAware(Doubling(), 1), 3):
        with pytest.raises(ValueError, match="rounds must"):
            DelayAware(rounds, 1)
    for given_ in (None, 0):
        with pytest.raises(ValueError, match="horizon must"):
            DelayAware(Doubling(), 1).agreed_horizon(given_)
