"""Looking changes nothing, and what is handed out is nobody's but the caller's."""

# Wrong types are given on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

import json

import torch

from botorch_ext.domains import Space
from botorch_ext.strategies import Asked, Told
from botorch_ext.testing.sessions import plain, question
from botorch_ext.testing.states import (
    copied,
    played,
    spoil,
    spoil_trial,
    started,
    state,
)


def reading_changes_nothing_whatever_becomes_of_what_was_read(entry):
    session = started(entry)
    strategy = session.strategy
    of_domain = strategy.domain.like.clone()
    for done, action in enumerate(session.actions):
        session.do(action)
        if done % 3 == 0:
            state(strategy)
        if strategy.report()["best"] is not None:
            strategy.best()[0].fill_(99.0)
            if strategy.separates_contexts is None:
                strategy.best(session.offer().get("context"))
        for event in strategy.events:
            if isinstance(event, Asked):
                spoil_trial(event.trial)
        strategy.pending.append(99)
        spoil(strategy.report())
    assert torch.equal(strategy.domain.like, of_domain)
    assert state(strategy) == played(entry).final


def what_is_handed_in_and_out_is_copied(entry):
    whole, session = played(entry), started(entry)
    strategy, events = session.strategy, whole.events
    strategy.replay(events)
    for event in events:
        if isinstance(event, Asked):
            spoil_trial(event.trial)
    assert state(strategy) == whole.final
    twin, offer = strategy.clone(), whole.session.offer()
    given = {name: value.clone() for name, value in offer.items()}
    if "info" not in question(twin, offer):
        return  # it waits, or is over
    trial = strategy.ask(**given)
    spoil_trial(trial)
    for value in given.values():
        value.fill_(99.0)
    assert state(strategy) == state(twin)


def a_copy_goes_its_own_way(entry):
    session = copied(entry, played(entry).cuts[len(played(entry).cuts) // 2][0])
    other = copied(entry, 0)
    before = state(session.strategy)
    other.strategy = session.strategy.clone()
    assert state(other.strategy) == before
    more = [("ask", 0.0, 0.0), ("tell", 0.6, 0.1), ("ask", 0.0, 0.0), ("tell", 0.3, 0.2)]
    for action in more:
        other.do(action)
    assert state(session.strategy) == before
    for action in more:
        session.do(action)
    assert state(session.strategy) == state(other.strategy) != before


def report_and_info_are_plain(entry):
    whole = played(entry)
    for _, _, shown in whole.cuts:
        assert json.loads(json.dumps(shown["report"])) == shown["report"]
    for trial in whole.session.strategy.history.trials:
        assert json.loads(json.dumps(trial.info)) == trial.info


def report_and_best_say_what_happened(entry):
    strategy, whole = played(entry).session.strategy, played(entry)
    report, trials = strategy.report(), strategy.history.trials
    told = [event for event in strategy.events if isinstance(event, Told)]
    assert report["num_asked"] == len(trials)
    assert report["num_told"] == len(told)
    assert report["num_asked"] == len(told) + len(report["pending"]) + len(report["abandoned"])
    assert report["pending"] == strategy.pending
    assert report["abandoned"] == sorted(
        e.id for e in strategy.events if type(e).__name__ == "Abandoned"
    )
    x, mean = strategy.best()
    named = {"params": strategy.best_params()} if isinstance(strategy.domain, Space) else {}
    assert report["best"] == {"x": x.tolist(), "mean": mean} | named
    assert bool(strategy.domain.contains(x))
    values = [event.value for event in told]
    evaluated = [trials[event.id].info.get("center", trials[event.id].x.tolist()) for event in told]
    for base in getattr(strategy, "bases", [strategy]):
        if base.initial is not None:
            X, Y = base.initial
            evaluated += X[:, : strategy.domain.dim].tolist()
            values += Y.tolist()
    assert x.tolist() in evaluated
    assert report["best_observation"] == max(values)
    first = whole.cuts[0][2]["report"]
    given = any(base.initial is not None for base in getattr(strategy, "bases", [strategy]))
    assert (first["best"] is not None) == given


def trials_are_some_of_what_there_is(entry):
    session = played(entry).session
    for trial in session.strategy.history.trials:
        offer = session.offer(session.offered[trial.id])
        context = offer.get("context")
        assert plain(Asked(trial))[3] == (None if context is None else context.tolist())
        assert trial.x.dtype == torch.float64
        assert bool(session.strategy.domain.contains(trial.x))
        if "index" in trial.info:
            assert torch.equal(session.strategy.domain.points[trial.info["index"]], trial.x)
        if "actions" in offer:
            assert torch.equal(offer["actions"][trial.info["action"]], trial.x)
