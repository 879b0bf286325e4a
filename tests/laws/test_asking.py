"""The seed decides, and a list is asked as one trial after another."""

import torch

from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Asked
from tests.laws.sessions import plain
from tests.laws.shared_sessions import (
    SEED,
    copied,
    every_entry,
    played,
    quietly,
    spoil_trial,
    started,
    state,
)

pytestmark = quietly


def first_events(entry, seed):
    """The events of the first actions with this seed of the strategy alone."""
    session = started(entry)
    session.strategy = entry.make(seed)
    for action in session.actions[: 4 if entry.place.is_box else 10]:
        session.do(action)
    return [plain(event) for event in session.strategy.events]


@every_entry
def test_the_seed_decides(entry):
    torch.manual_seed(1)  # which nothing may depend on, nor change
    before = torch.get_rng_state()
    same = first_events(entry, SEED)
    assert torch.equal(torch.get_rng_state(), before)
    assert same == played(entry).final["events"][: len(same)]
    if entry.method == "random" or entry.place.started:
        assert first_events(entry, SEED + 1) != same


@every_entry
def test_a_list_is_asked_one_after_another(entry):
    cut = played(entry).cuts[len(played(entry).cuts) // 3][0]
    many, one = copied(entry, cut), copied(entry, cut)
    offer = many.offer()
    try:
        first, *others = many.strategy.ask(3, **offer)
        number = 1 + len(others)
        spoil_trial(first)
        asked = many.strategy.events[-len(others) :]
        assert [plain(event) for event in asked] == [plain(Asked(trial)) for trial in others]
    except WaitingForObservations as waits:
        number = waits.available
        assert number < 3
        if number:
            assert len(many.strategy.ask(number, **offer)) == number
    except HorizonReached:
        number = 0
    for _ in range(number):
        one.strategy.ask(**offer)
    assert state(many.strategy) == state(one.strategy)
