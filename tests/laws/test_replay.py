"""Events are a complete checkpoint: from any of their prefixes a session goes on bit for bit."""

import json
import pickle

from botorch_ext.strategies import Asked
from tests.laws.live import copied, every_entry, played, quietly, reading, started, state
from tests.laws.sessions import from_plain, plain, question

pytestmark = quietly


@every_entry
def test_a_prefix_gives_the_state_of_that_time(entry):
    whole = played(entry)
    # Others in every entry.
    first = len(entry.name) % 5
    for num_events, _, shown in whole.cuts[first::5]:
        session = copied(entry, num_events)
        assert reading(session.strategy) == shown
        assert [plain(e) for e in session.strategy.events] == whole.final["events"][:num_events]


@every_entry
def test_a_prefix_asks_what_was_asked(entry):
    whole = played(entry)
    asks = [i for i, event in enumerate(whole.events) if isinstance(event, Asked)]
    chosen = asks[len(entry.name) % 3 :: 3][-2:] if entry.place.is_box else asks[::4]
    for position in chosen:
        trial = whole.events[position].trial
        session = copied(entry, position)
        asked = question(session.strategy, session.offer(whole.session.offered[trial.id]))
        assert asked == {"x": trial.x.tolist(), "info": trial.info}


@every_entry
def test_a_session_resumed_from_a_prefix_ends_the_same(entry):
    whole = played(entry)
    share = 0.7 if entry.place.is_box else 0.2 + 0.02 * (len(entry.name) % 25)
    num_events, num_actions, _ = whole.cuts[int(share * len(whole.cuts))]
    session = started(entry)
    # In two parts, as a journal may hold them.
    session.strategy.replay(whole.events[: num_events // 3])
    session.strategy.replay(iter(whole.events[num_events // 3 : num_events]))
    for action in session.actions[num_actions:]:
        session.do(action)
    assert state(session.strategy) == whole.final


@every_entry
def test_events_survive_being_pickled_and_written_as_json(entry):
    whole, session = played(entry), started(entry)
    pickled = pickle.loads(pickle.dumps(whole.events))
    half = len(pickled) // 2
    text = json.dumps([plain(event) for event in pickled[half:]])
    session.strategy.replay(pickled[:half])
    session.strategy.replay(from_plain(record) for record in json.loads(text))
    assert state(session.strategy) == whole.final
