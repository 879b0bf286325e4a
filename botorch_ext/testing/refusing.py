"""What is refused is refused as a whole: nothing has happened, not even where it does not show."""

# Wrong types are given on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import torch

from botorch_ext.domains import FiniteSet
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.strategies import Abandoned, Asked, Told, Trial
from botorch_ext.testing.refusals import refused
from botorch_ext.testing.sessions import question
from botorch_ext.testing.states import copied, played, state

NAN, INF = float("nan"), float("inf")


def in_the_middle(entry):
    """A session with pending trials, told ones and, mostly, abandoned ones."""
    whole = played(entry)
    cuts = [cut for cut in whole.cuts if cut[2]["pending"] and cut[2]["report"]["num_told"]]
    return copied(entry, cuts[2 * len(cuts) // 3][0])


def impossible_calls(session):
    """Calls that nothing can accept: each a function, and the error.

    The kinds of input that an argument refuses are in ``tests/wrong_calls``.
    """
    strategy = session.strategy
    pending, told = strategy.pending[0], next(iter(strategy.history.values))
    offer = session.offer()
    for value in (NAN, None):
        yield (lambda v=value: strategy.tell(pending, v)), ValueError
    gone = sorted(strategy.history.abandoned)[:1]
    for id in (told, *gone, 99, None):
        yield (lambda i=id: strategy.tell(i, 0.1)), UnknownTrialError
        yield (lambda i=id: strategy.abandon(i)), UnknownTrialError
    yield (lambda: strategy.ask(0, **offer)), ValueError
    if hasattr(strategy, "horizon"):
        yield (lambda: strategy.ask(10_000)), ValueError
    if strategy.context_space is None:
        yield (lambda: strategy.ask(context=[0.2])), ValueError
        yield (lambda: strategy.best(context=[0.2])), ValueError
    else:
        for context in (None, [], [7.0]):
            wrong = {**offer, "context": context}
            yield (lambda w=wrong: strategy.ask(**w)), ValueError
            yield (lambda w=wrong: strategy.ask(2, **w)), ValueError
        yield (lambda: strategy.best(context=[7.0])), ValueError
    lowest = strategy.domain.sample(2, seed=0) - 99.0
    for actions in ([], lowest):
        wrong = {**offer, "actions": actions}
        yield (lambda w=wrong: strategy.ask(**w)), ValueError


def impossible_calls_are_refused_as_a_whole(entry):
    session = in_the_middle(entry)
    before, twin = state(session.strategy), session.strategy.clone()
    for call, error in impossible_calls(session):
        with refused(error):
            call()
        assert len(session.strategy.history.events) == len(before["events"])
    assert state(session.strategy) == before
    offer = session.offer()
    assert question(session.strategy, offer) == question(twin, offer)


def changed(trial, **how):
    kept = {"id": trial.id, "x": trial.x, "context": trial.context, "info": trial.info}
    return Asked(Trial(**{**kept, **how}))


def tampered(session, last):
    """Events none of which can follow now: first those about trials, then changes of the trial
    that comes next."""
    strategy = session.strategy
    pending, told = strategy.pending[0], next(iter(strategy.history.values))
    yield from (Told(told, 0.1), Abandoned(told), Told(99, 0.1), Abandoned(99))
    yield from (Told(pending, NAN), Told(pending, INF), Told(pending, "1.5"), Told("0", 0.1))
    yield from (("told", pending, 0.1), None, Asked(None), Abandoned(None))
    if last is None:
        return
    x, context, info = last.x, last.context, last.info
    yield from (changed(last, id=last.id + 1), changed(last, id=last.id - 1))
    yield from (changed(last, x=value) for value in (x + 99.0, x * NAN, x[None], x[:0], None))
    yield from (changed(last, x=x.tolist()), changed(last, x=x.float()), changed(last, info=None))
    if context is None:
        yield changed(last, context=torch.zeros(1).double())
    else:
        wrong = (None, context + 99.0, context * NAN, torch.cat([context] * 2), context.float())
        yield from (changed(last, context=value) for value in wrong)
    if isinstance(strategy.domain, FiniteSet):
        yield from (
            changed(last, info={**info, "index": row})
            for row in (None, -1, strategy.domain.num_points)
        )
        if "index" in info:
            yield changed(
                last, info={**info, "index": (info["index"] + 1) % strategy.domain.num_points}
            )
    if {"model", "mean", "std", "width"} <= info.keys():
        for name, value in (
            ("model", 99),
            ("model", -1),
            ("model", 0.0),
            ("model", "RBF"),
            ("mean", NAN),
            ("mean", None),
            ("std", -0.1),
            ("std", INF),
            ("width", -1.0),
            ("width", "2"),
        ):
            yield changed(last, info={**info, name: value})
            yield changed(last, info={key: info[key] for key in info if key != name})
    if "base" in info:
        for value in (-1, 99, None, True, "0"):
            yield changed(last, info={**info, "base": value})
        for value in (None, [1], "all"):
            yield changed(last, info={**info, "decision": value})


def tampered_events_are_refused_as_a_whole(entry):
    session = in_the_middle(entry)
    strategy, before = session.strategy, state(session.strategy)
    twin, ahead = strategy.clone(), strategy.clone()
    asked = "info" in question(ahead, session.offer())
    last = ahead.history.trials[-1] if asked else None
    # Good ones before, which must not stay either.
    told = Told(strategy.pending[-1], 0.1) if len(strategy.pending) > 1 else None
    for event in tampered(session, last):
        good = [] if told is None or isinstance(event, Asked) else [told]
        with refused(ValueError):
            strategy.replay([*good, event])
        assert len(strategy.history.events) == len(before["events"])
    assert state(strategy) == before
    for other in (strategy, twin):
        if last is not None:
            other.replay([Asked(last)])
        if told is not None:
            other.replay([told])
    assert state(strategy) == state(twin)


def a_replay_that_fails_at_its_end_leaves_nothing(entry):
    whole, session = played(entry), copied(entry, 0)
    before = state(session.strategy)
    trial = whole.session.strategy.history.trials[-1]
    # Methods that record a decision find only when they come to it that there is none.
    wrong = Told(trial.id + 1, 0.1)
    if trial.info.keys() & {"model", "cell"}:
        places = {name: trial.info[name] for name in ("index", "action") if name in trial.info}
        wrong = changed(trial, id=trial.id + 1, info=places)
    with refused(ValueError):
        session.strategy.replay([*whole.events, wrong])
    assert state(session.strategy) == before
    session.strategy.replay(whole.events)
    assert state(session.strategy) == whole.final


def paths_of(record, before=()):
    """The paths of keys to what a record has."""
    for key, value in record.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths_of(value, (*before, key))


def replaced(record, path, value):
    """A record with another value at the end of a path."""
    key, *rest = path
    return {**record, key: replaced(record[key], rest, value) if rest else value}


def a_record_in_any_form_is_refused_or_taken(entry):
    session = in_the_middle(entry)
    strategy, before = session.strategy, state(session.strategy)
    ahead = strategy.clone()
    if "info" not in question(ahead, session.offer()):
        return
    last = ahead.history.trials[-1]
    for path in paths_of(last.info):
        for value in (None, "x", NAN, INF, -1, 10**20, [], {}, [[0.5]]):
            wrong = changed(last, info=replaced(last.info, path, value))
            try:
                strategy.after(next(strategy.checked([wrong]))).report()
            except ValueError:
                continue
    assert state(strategy) == before
