"""Every law, of every method of the registry: their bodies are in `botorch_ext.testing`."""

import pytest

from botorch_ext.testing import correcting
from botorch_ext.testing.laws import LAWS
from botorch_ext.testing.sessions import plain
from tests.laws.registry import PLAYED
from tests.laws.shared_sessions import every_entry, quietly

pytestmark = quietly


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@every_entry
def test_a_law_holds(law, entry):
    law(entry)


def test_all_of_it_happens():
    kinds = [
        {plain(event)[0] for event in correcting.played(entry)[0].strategy.events}
        for entry in PLAYED
        if entry.make().refuses_attached is None
    ]
    for kind in ("asked", "told", "failed", "attached", "corrected"):
        assert sum(kind in own for own in kinds) > 0.8 * len(kinds), kind
