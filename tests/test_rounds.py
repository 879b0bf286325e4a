"""Round lengths against plain loops."""

import math
from fractions import Fraction

import pytest

from botorch_ext.delays import FixedAllowance, Observed, Poisson, Quantile, SeenDelays
from botorch_ext.rounds import DelayAware, Doubling, SquareRoot

HORIZONS = [1, 2, 3, 10, 1000, 10**6]
NOTHING = SeenDelays()


def ceil_sqrt(number: int) -> int:
    """The smallest whole number whose square is at least ``number``."""
    root = max(int(Fraction(math.sqrt(number))) - 2, 0)
    while root * root < number:
        root += 1
    return root


def cut(rounds, horizon: int, seen: SeenDelays = NOTHING) -> list[int]:
    """The lengths of all rounds of the horizon, the last one cut."""
    lengths = []
    while sum(lengths) < horizon:
        length = rounds.length(len(lengths) + 1, horizon, 0.01, seen)
        lengths.append(min(length, horizon - sum(lengths)))
    return lengths


@pytest.mark.parametrize("first", [1, 3, 50])
@pytest.mark.parametrize("horizon", HORIZONS)
def test_doubling(first: int, horizon: int) -> None:
    rounds = Doubling(first)
    length = first
    for r in range(1, 12):
        assert rounds.design_length(r) == rounds.length(r, horizon, 0.1, NOTHING) == length
        length *= 2
    lengths = cut(rounds, horizon)
    assert sum(lengths) == horizon
    assert rounds.count(horizon, 0.1) == len(lengths)


def test_doubling_counts_its_episodes() -> None:
    counts = {1: 1, 2: 2, 3: 2, 4: 3, 7: 3, 8: 4, 1000: 10, 1023: 10, 1024: 11}
    assert {horizon: Doubling().count(horizon, 0.1) for horizon in counts} == counts


@pytest.mark.parametrize("horizon", HORIZONS)
def test_square_root(horizon: int) -> None:
    rounds = SquareRoot(horizon)
    length = 1
    for r in range(1, 12):
        length = ceil_sqrt(horizon * length)
        assert rounds.design_length(r) == rounds.length(r, horizon, 0.1, NOTHING) == length
    lengths = cut(rounds, horizon)
    assert sum(lengths) == horizon
    assert rounds.count(horizon, 0.1) == len(lengths)


def test_square_root_at_the_papers_horizon() -> None:
    assert cut(SquareRoot(1000), 1000) == [32, 179, 424, 365]
    assert SquareRoot(1000).count(1000, 0.01) == 4


def test_square_roots_are_exact_where_floats_are_not() -> None:
    horizon = (2**31 + 1) ** 2  # the square root of horizon * 1 is whole, of horizon + 1 is not
    assert SquareRoot(horizon).design_length(1) == 2**31 + 1
    assert SquareRoot(horizon + 1).design_length(1) == 2**31 + 2
    assert math.ceil(math.sqrt(horizon + 1)) == 2**31 + 1


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("steps", [0, 1, 25.2, 95.2])
@pytest.mark.parametrize("base", [Doubling, lambda: SquareRoot(1000)])
def test_delay_aware_adds_the_allowance_and_rounds_up(horizon: int, steps: float, base) -> None:
    rounds = DelayAware(base(), FixedAllowance(steps))
    for r in range(1, 8):
        q = base().design_length(r)
        assert rounds.design_length(r) == q
        assert rounds.length(r, horizon, 0.01, NOTHING) == math.ceil(q + steps)
    lengths = cut(rounds, horizon)
    assert sum(lengths) == horizon
    assert rounds.count(horizon, 0.01) == len(lengths)


def test_delay_aware_with_the_quantile_of_known_delays() -> None:
    allowance = Quantile(Poisson(50))
    steps = int(allowance(32, 1000, 0.01, NOTHING))
    rounds = DelayAware(SquareRoot(1000), allowance)
    assert cut(rounds, 1000) == [32 + steps, 179 + steps, 424 + steps, 365 - 3 * steps]
    assert rounds.count(1000, 0.01) == 4
    assert DelayAware(SquareRoot(1000), Poisson(50)) == rounds


def test_an_allowance_that_learns_is_asked_anew_in_each_round() -> None:
    rounds = DelayAware(SquareRoot(1000), Observed(0.9))
    assert rounds.length(1, 1000, 0.01, NOTHING) == 32 + 32
    assert rounds.length(2, 1000, 0.01, SeenDelays([7] * 60)) == 179 + 7
    assert rounds.length(2, 1000, 0.01, SeenDelays([7] * 10, [9])) == 179 + 179
    # R must not depend on delays nobody has seen yet: an upper bound.
    assert rounds.count(1000, 0.01) == SquareRoot(1000).count(1000, 0.01) == 4


def test_rounds_compare_and_print() -> None:
    rounds = DelayAware(SquareRoot(1000), 25)
    assert repr(rounds) == (
        "DelayAware(rounds=SquareRoot(horizon=1000), allowance=FixedAllowance(steps=25.0))"
    )
    assert DelayAware(Doubling(), None) == DelayAware(Doubling(1), 0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Doubling(0), "first must be a whole number, at least 1, got 0"),
        (lambda: Doubling(1.5), "first must be a whole number, at least 1, got 1.5"),
        (lambda: SquareRoot(0), "horizon must be a whole number, at least 1, got 0"),
        (lambda: SquareRoot(-3), "horizon must be a whole number, at least 1, got -3"),
        (lambda: SquareRoot(math.nan), "horizon must be a whole number, at least 1, got nan"),
        (lambda: DelayAware(SquareRoot(10), -1), "delay must be"),
        (lambda: DelayAware(SquareRoot(10), "long"), "delay must be"),
        (lambda: DelayAware(10, 3), "rounds must be Doubling or SquareRoot, got 10"),
        (
            lambda: DelayAware(DelayAware(SquareRoot(10), 1), 3),
            "rounds must be Doubling or SquareRoot, got DelayAware",
        ),
        (lambda: Doubling().design_length(0), "r must be a whole number, at least 1, got 0"),
        (lambda: SquareRoot(9).design_length(0), "r must be a whole number, at least 1, got 0"),
        (lambda: Doubling().count(0, 0.1), "horizon must be a whole number, at least 1, got 0"),
        (lambda: DelayAware(Doubling(), 3).count(0, 0.1), "horizon must be a whole number"),
    ],
)
def test_bad_parameters_are_named(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
