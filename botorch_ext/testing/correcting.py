"""Sessions with wrong values, corrections, failures and results that nobody asked for."""

# Wrong types are given on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import json
import pickle
from functools import cache

from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.strategies import Asked, Attached, Corrected, Told
from botorch_ext.testing.nearness import assert_near
from botorch_ext.testing.refusals import refused
from botorch_ext.testing.sessions import BusySession, from_plain, plain, question
from botorch_ext.testing.states import beliefs, reading, state
from botorch_ext.testing.subjects import Tried

# Of a script in which all of it happens, in long and in short sessions.
SEED = 747


def started(entry: Tried) -> BusySession:
    return BusySession(entry, SEED, num_actions=max(3 * entry.num_actions // 5, 13))


@cache
def played(entry: Tried):
    """A session to its end, and what showed after each action; nobody may change it."""
    session = started(entry)
    cuts = []
    for action in session.actions:
        session.do(action)
        cuts.append((len(session.strategy.events), reading(session.strategy)))
    return session, cuts, state(session.strategy)


def a_busy_session_is_replayed_bit_for_bit(entry):
    whole, cuts, final = played(entry)
    events = whole.strategy.events
    num_events, before = cuts[2 * len(cuts) // 3]
    session = started(entry)
    session.strategy.replay(pickle.loads(pickle.dumps(events[:num_events])))
    assert reading(session.strategy) == before
    text = json.dumps([plain(event) for event in events[num_events:]])
    session.strategy.replay(from_plain(record) for record in json.loads(text))
    assert state(session.strategy) == final
    twin = whole.strategy.clone()
    assert question(session.strategy, whole.offer()) == question(twin, whole.offer())
    assert state(session.strategy) == state(twin)


def a_busy_report_says_what_happened(entry):
    strategy, report = played(entry)[0].strategy, played(entry)[2]["report"]
    kinds = {kind: [] for kind in ("asked", "told", "abandoned", "failed", "attached", "corrected")}
    for event in strategy.events:
        new = isinstance(event, Asked | Attached)
        kinds[plain(event)[0]].append(event.trial.id if new else event.id)
    assert report["num_asked"] == len(kinds["asked"])
    assert report["num_told"] == len(kinds["told"])
    assert report["attached"] == kinds["attached"]
    assert report["failed"] == sorted(kinds["failed"])
    assert report["abandoned"] == sorted(kinds["abandoned"] + kinds["failed"])
    assert report["corrected"] == sorted(set(kinds["corrected"]))
    right = {event.id: event.value for event in strategy.events if isinstance(event, Corrected)}
    values = [
        right.get(id, event.value)
        for event in strategy.events
        if isinstance(event, Told | Attached)
        for id in [event.trial.id if isinstance(event, Attached) else event.id]
    ]
    assert report["best_observation"] == max(
        values + [y for base in bases(strategy) if base.initial for y in base.initial[1].tolist()]
    )
    assert list(strategy.history.values.values()) == values
    assert json.loads(json.dumps(report)) == report


def bases(strategy):
    return getattr(strategy, "bases", [strategy])


def a_correction_that_changes_nothing_leaves_beliefs(entry):
    """Of strategies whose records were all made of the values that are right."""
    session = started(entry)
    if session.strategy.refits_after_correction is not None:
        return
    for action in session.actions:
        if action[0] != "correct":
            session.do(action)
    strategy, twin = session.strategy, session.strategy.clone()
    id = next(iter(twin.history.values))
    twin.correct(id, twin.history.values[id])
    assert_near(beliefs(twin), beliefs(strategy), rel=1e-8)
    assert_near(twin.report() | {"corrected": []}, strategy.report(), rel=1e-8)


def impossible_changes_are_refused_as_a_whole(entry):
    whole, _, final = played(entry)
    strategy = whole.strategy.clone()
    untold = [*strategy.pending, *strategy.history.abandoned, 999, -1, None, "0"]
    for id in untold:
        with refused(UnknownTrialError):
            strategy.correct(id, 0.1)
    told = next(iter(strategy.history.values))
    x, context = strategy.history.trials[told].x, whole.offer().get("context")
    for value in (float("nan"), float("inf"), None, "1"):
        with refused(ValueError, match="value must be"):
            strategy.correct(told, value)
        with refused(ValueError, match=r"value must be|takes no attached"):
            strategy.attach(x, value, context)
    with refused(ValueError, match=r"x must|in x$|takes no attached"):
        strategy.attach(x + 99.0, 0.1, context)
    wrong = [0.1] if context is None else None
    with refused(ValueError, match="context must"):
        strategy.attach(x, 0.1, wrong)
    assert state(strategy) == final
