"""What must be refused: calls, events that were tampered with, and records in a wrong form."""

# Wrong types are given on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from botorch_ext.domains import FiniteSet, host
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.strategies import Abandoned, Asked, Strategy, Told, Trial

NAN, INF = float("nan"), float("inf")


@contextmanager
def refused(error: type[Exception], match: str = "") -> Iterator[None]:
    """An AssertionError unless what happens inside raises such an error whose message matches."""
    try:
        yield
    except error as raised:
        if not re.search(match, str(raised)):
            raise AssertionError(f"the message must match {match!r}, got {raised}") from raised
    else:
        raise AssertionError(f"must be refused with {error.__name__}")


def impossible_calls(
    strategy: Strategy, offer: dict[str, Any]
) -> Iterator[tuple[Callable[[], Any], type[Exception]]]:
    """Calls that nothing can accept now, and the error of each."""
    history, pending, told = strategy.history, strategy.pending, list(strategy.history.values)
    gone, x = sorted(history.abandoned | history.withdrawn), strategy.domain.sample(1, seed=0)[0]
    final = [id for id in gone if id not in history.failed]
    context = offer.get("context")
    for value in (NAN, INF, None, "1"):
        for id in pending[:1]:
            yield (lambda i=id, v=value: strategy.tell(i, v)), ValueError
        for id in told[:1]:
            yield (lambda i=id, v=value: strategy.correct(i, v)), ValueError
        yield (lambda v=value: strategy.attach(x, v, context)), ValueError
    for id in (*told[:1], *gone[:1], 999, -1, None, "0"):
        yield (lambda i=id: strategy.tell(i, 0.1)), UnknownTrialError
        yield (lambda i=id: strategy.abandon(i)), UnknownTrialError
    for id in (*pending[:1], *gone[:1], 999, -1, None, "0"):
        yield (lambda i=id: strategy.correct(i, 0.1)), UnknownTrialError
    for id in (*pending[:1], *final[:1], 999, -1, None, "0"):
        yield (lambda i=id: strategy.withdraw(i)), UnknownTrialError
    for id in (999, -1, None, "0"):
        yield (lambda i=id: strategy.note(i, "dull")), UnknownTrialError
    for id in pending[:1]:
        yield (lambda i=id: strategy.abandon(i, failed=1)), ValueError
    yield (lambda: strategy.attach(x + 99.0, 0.1, context)), ValueError
    yield (lambda: strategy.ask(0, **offer)), ValueError
    if hasattr(strategy, "horizon"):
        yield (lambda: strategy.ask(10_000)), ValueError
    if strategy.context_space is None:
        yield (lambda: strategy.ask(context=[0.2])), ValueError
        yield (lambda: strategy.best(context=[0.2])), ValueError
        yield (lambda: strategy.attach(x, 0.1, [0.2])), ValueError
    else:
        for wrong in (None, [], [7.0] * 9):
            yield (lambda w=wrong: strategy.ask(**{**offer, "context": w})), ValueError
            yield (lambda w=wrong: strategy.ask(2, **{**offer, "context": w})), ValueError
            yield (lambda w=wrong: strategy.attach(x, 0.1, w)), ValueError
        yield (lambda: strategy.best(context=[7.0] * 9)), ValueError
    for actions in ([], strategy.domain.sample(2, seed=0) - 99.0):
        yield (lambda a=actions: strategy.ask(**{**offer, "actions": a})), ValueError


def changed(trial: Trial, **how: Any) -> Asked:
    """An event of a trial with other attributes."""
    kept = {"id": trial.id, "x": trial.x, "context": trial.context, "info": trial.info}
    return Asked(Trial(**{**kept, **how}))


def tampered(strategy: Strategy, last: Trial | None) -> Iterator[Any]:
    """Events none of which can follow now: first those about trials, then changes of the trial
    that would be asked next."""
    for id in strategy.pending[:1]:
        yield from (Told(id, NAN), Told(id, INF), Told(id, "1.5"), ("told", id, 0.1))
    for id in list(strategy.history.values)[:1]:
        yield from (Told(id, 0.1), Abandoned(id))
    yield from (Told(99, 0.1), Abandoned(99), Told("0", 0.1), None, Asked(None), Abandoned(None))
    if last is None:
        return
    x, context, info = last.x, last.context, last.info
    yield from (changed(last, id=last.id + 1), changed(last, id=last.id - 1))
    yield from (changed(last, x=value) for value in (x + 99.0, x * NAN, x[None], x[:0], None))
    yield from (changed(last, x=x.tolist()), changed(last, x=x.float()), changed(last, info=None))
    if context is None:
        yield changed(last, context=host.zeros(1).double())
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


def paths_of(record: dict[str, Any], before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of keys to what a record has."""
    for key, value in record.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths_of(value, (*before, key))


def replaced(record: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A record with another value at the end of a path."""
    key, *rest = path
    return {**record, key: replaced(record[key], rest, value) if rest else value}


def mangled(last: Trial, share: float) -> Iterator[Asked]:
    """Some trials whose record has another form at one place.

    Args:
        last: A trial.
        share: Which of them, as a share of all there are.
    """
    values = (None, "x", NAN, INF, -1, 10**20, [], {}, [[0.5]])
    cases = [(path, value) for path in paths_of(last.info) for value in values]
    stride = -(-len(cases) // _MOST_MANGLED) or 1
    for path, value in cases[int(share * stride) :: stride]:
        yield changed(last, info=replaced(last.info, path, value))


# So many records are mangled at once; sessions draw others.
_MOST_MANGLED = 20
