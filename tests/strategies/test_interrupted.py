"""Calls that are broken off anywhere: the strategy is then as if they had never been made, or made
to their end."""

from unittest.mock import patch

import pytest
import torch

from botorch_ext.exceptions import WaitingForObservations
from botorch_ext.strategies import Strategy
from botorch_ext.testing.sessions import plain, question
from botorch_ext.testing.states import state
from tests.laws.places import PLACES, value_of
from tests.laws.registry import METHODS, POLICIES
from tests.laws.shared_sessions import quietly
from tests.strategies.interrupts import lines_of
from tests.strategies.sessions import box, data, make

pytestmark = quietly

METHODS_TRIED = {
    "gp_ucb, set": lambda: METHODS["gp_ucb"](PLACES["set"], seed=3, **POLICIES["hallucinate"]),
    "gp_ucb, box": lambda: make(box(), initial=data(box(), 3)),
    "gp_ucb, fitted": lambda: METHODS["gp_ucb, fitted"](
        PLACES["set"], seed=3, **POLICIES["hallucinate"]
    ),
    "he_gp_ucb": lambda: METHODS["he_gp_ucb"](PLACES["set"], seed=3, **POLICIES["hallucinate"]),
    "insured_ucb": lambda: METHODS["insured_ucb"](PLACES["set"], seed=3),
    "bpe": lambda: METHODS["bpe"](PLACES["set"], seed=3),
    "regret_balancing": lambda: METHODS["regret_balancing"](
        PLACES["set"], seed=3, **POLICIES["hallucinate"]
    ),
}
# Of each call, spread over it.
NUM_BREAKS = 6


@pytest.fixture(autouse=True)
def gradients():
    """An interrupt at the end of a ``with torch.no_grad()`` comes before its end is noted."""
    yield
    torch.set_grad_enabled(True)


def in_the_middle(method):
    """A strategy of which something pends and something waits to enter the model."""
    strategy = METHODS_TRIED[method]()
    while strategy.history.num_asked < 7:
        try:
            strategy.ask()
        except WaitingForObservations as waits:
            for id in waits.ids:
                strategy.tell(id, told(strategy, id))
        for id in strategy.pending[:-2]:
            strategy.tell(id, told(strategy, id))
    return strategy


def told(strategy, id):
    return value_of(strategy.history.trials[id].x, None)


def ask_twice(strategy):
    strategy.ask(2)


def tell(strategy):
    id = strategy.pending[-1]
    strategy.tell(id, told(strategy, id))


def abandon(strategy):
    strategy.abandon(strategy.pending[0])


def attach(strategy):
    strategy.attach(strategy.domain.sample(1, seed=4)[0], 0.3)


def correct(strategy):
    strategy.correct(0, -0.4)


CALLS = [ask_twice, tell, abandon, attach, correct]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("method", METHODS_TRIED)
def test_a_call_broken_off_anywhere_leaves_a_whole_strategy(method, call):
    before = in_the_middle(method)
    if call is attach and before.refuses_attached is not None:
        return
    after = before.clone()
    total = lines_of(lambda: call(after))
    expected = {}
    for number in range(NUM_BREAKS):
        strategy = before.clone()
        last = int(total * (number * 0.6180339887 % 1.0))
        assert lines_of(lambda: call(strategy), last) == last  # noqa: B023
        events = [plain(event) for event in strategy.events]
        if len(events) not in expected:
            clean = METHODS_TRIED[method]()
            clean.replay(after.events[: len(events)])
            expected[len(events)] = state(clean), question(clean, {})
        assert (state(strategy), question(strategy, {})) == expected[len(events)], last


def test_neither_events_nor_refusals_copy_the_state():
    strategy = make(box())
    strategy.ask(3)
    with (
        patch.object(Strategy, "clone", side_effect=AssertionError),
        patch("botorch_ext.strategies.base.deepcopy", side_effect=AssertionError),
        patch("botorch_ext.models.kernel_gp.deepcopy", side_effect=AssertionError),
    ):
        strategy.tell(0, 0.5)
        strategy.abandon(1)
        strategy.ask()
        for refused in (
            lambda: strategy.tell(0, 0.5),
            lambda: strategy.tell(2, float("nan")),
            lambda: strategy.abandon(9),
            lambda: strategy.correct(2, 0.5),
            lambda: strategy.attach([0.0, 0.0], 0.5),
            lambda: strategy.ask(0),
        ):
            with pytest.raises(ValueError, match="must"):
                refused()
