"""The seed decides, and a list is asked as one trial after another."""

import torch

from botorch_ext.domains import Box
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Asked
from botorch_ext.testing.sessions import plain
from botorch_ext.testing.states import (
    SEED,
    copied,
    played,
    spoil_trial,
    started,
    state,
)


def first_events(entry, seed):
    """The events of the first actions with this seed of the strategy alone."""
    session = started(entry)
    session.strategy = entry.make(seed)
    for action in session.actions[: 4 if isinstance(session.strategy.domain, Box) else 10]:
        session.do(action)
    return [plain(event) for event in session.strategy.events]


def the_seed_decides(entry):
    torch.manual_seed(1)  # which nothing may depend on, nor change
    before = torch.get_rng_state()
    same = first_events(entry, SEED)
    assert torch.equal(torch.get_rng_state(), before)
    assert same == played(entry).final["events"][: len(same)]
    first = played(entry).session.strategy.history.trials[0]
    if first.info.get("initial") or played(entry).session.strategy.is_random:
        assert first_events(entry, SEED + 1) != same


def a_list_is_asked_one_after_another(entry):
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
