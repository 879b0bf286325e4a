"""Calls that are broken off anywhere: the strategy is then as if they had never been made, or made
to their end."""

from unittest.mock import patch

import pytest

from botorch_ext.strategies import Strategy
from botorch_ext.testing.interrupting import calls_broken_off_anywhere_are_made_or_not, lines_of
from tests.laws.shared_sessions import every_entry, quietly
from tests.strategies.sessions import box, make

pytestmark = quietly
# How often each kind of call is broken off, spread over it.
NUM_BREAKS = 6


@pytest.mark.slow
@every_entry
def test_a_call_broken_off_anywhere_leaves_a_whole_strategy(entry):
    calls_broken_off_anywhere_are_made_or_not(entry, NUM_BREAKS)


def test_a_list_is_asked_as_a_whole_or_not_at_all():
    before = make(box())
    before.ask()
    whole = before.clone()
    total = lines_of(lambda: whole.ask(3))
    for number in range(NUM_BREAKS):
        strategy = before.clone()
        lines_of(lambda: strategy.ask(3), total * number // NUM_BREAKS)  # noqa: B023
        assert len(strategy.events) == 1
        strategy.ask(3)
        assert strategy.report() == whole.report()


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
