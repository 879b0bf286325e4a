"""Events are a complete checkpoint: from any of their prefixes a session goes on bit for bit."""

import json
import pickle
from itertools import pairwise

from botorch_ext.strategies import Asked
from botorch_ext.testing.sessions import from_plain, plain, question
from botorch_ext.testing.states import played, reading, started, state


class Resumed:
    """A played session that is gone through again in one pass, from a cut to a later one.

    Args:
        entry: Whose session it is.
    """

    def __init__(self, entry):
        self.whole, self.session = played(entry), started(entry)
        # As a journal holds them, and as another process is sent them.
        texts = [json.dumps(plain(event)) for event in self.whole.events]
        self.from_json = [from_plain(json.loads(text)) for text in texts]
        self.pickled = pickle.loads(pickle.dumps(self.whole.events))

    def at_once(self, first, last):
        """Replays all events between two cuts, in two parts."""
        start, _, _ = self.whole.cuts[first]
        end, _, shown = self.whole.cuts[last]
        middle = (start + end) // 2
        self.session.strategy.replay(self.pickled[start:middle])
        self.session.strategy.replay(iter(self.from_json[middle:end]))
        assert reading(self.session.strategy) == shown

    def one_by_one(self, first, last):
        """Replays the events one at a time; questions of odd trials are asked again instead."""
        strategy, offered = self.session.strategy, self.whole.session.offered
        for (start, _, _), (end, _, shown) in pairwise(self.whole.cuts[first : last + 1]):
            for position in range(start, end):
                event = self.whole.events[position]
                if isinstance(event, Asked) and event.trial.id % 2:
                    trial = event.trial
                    asked = question(strategy, self.session.offer(offered[trial.id]))
                    assert asked == {"x": trial.x.tolist(), "info": trial.info}
                else:
                    strategy.replay([self.from_json[position]])
            assert reading(strategy) == shown

    def live(self, first, last):
        """Does what was done."""
        for action in self.session.actions[first:last]:
            self.session.do(action)
        assert reading(self.session.strategy) == self.whole.cuts[last][2]


def a_session_goes_on_from_every_prefix(entry):
    """A third of it is replayed at once, a third event by event, and a third is played.

    What happened decides which of them comes first.
    """
    resumed = Resumed(entry)
    num_actions = len(resumed.whole.cuts) - 1
    thirds = [0, num_actions // 3, 2 * num_actions // 3, num_actions]
    ways = [resumed.at_once, resumed.one_by_one, resumed.live]
    first = len(resumed.whole.events) % 3
    for way, (start, end) in zip(ways[first:] + ways[:first], pairwise(thirds), strict=True):
        way(start, end)
    assert state(resumed.session.strategy) == resumed.whole.final
