"""A method plays wherever its domain lives, and everything it gives out lives there."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from botorch_ext.strategies import Asked
from botorch_ext.testing.states import beliefs, played, reading, started
from tests.helpers import devices
from tests.laws.shared_sessions import every_entry, quietly


@pytest.mark.slow
@quietly
@every_entry
@pytest.mark.parametrize("device", devices()[1:], indirect=True)
def test_a_session_is_played_there(entry, device):
    session = started(replace(entry, device=device))
    for action in session.actions[: 5 if entry.scenario.is_box else 12]:
        session.do(action)
    asked = [event.trial for event in session.strategy.events if isinstance(event, Asked)]
    assert asked
    for trial in asked:
        assert trial.x.device.type == device.type
        assert trial.context is None or trial.context.device.type == device.type
    reading(session.strategy)
    beliefs(session.strategy)
    known = [event.trial for event in played(entry).events if isinstance(event, Asked)]
    here, there = (torch.stack([t.x.cpu() for t in each[: len(asked)]]) for each in (asked, known))
    # On a box what CUDA does differently may end a little beside.
    assert_close(here, there, rtol=0, atol=1e-4 if entry.scenario.is_box else 0)
