"""Round lengths against plain loops."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botorch_ext.delays import FixedAllowance, Observed, Poisson, Quantile, SeenDelays
from botorch_ext.rounds import DelayAware, Doubling, SquareRoot

NOTHING = SeenDelays()


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
