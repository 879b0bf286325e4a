"""Calls that are broken off at any line: they are then made to their end, or not at all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from botorch_ext.strategies import Strategy
from botorch_ext.testing.refusing import in_the_middle
from botorch_ext.testing.sessions import plain, question
from botorch_ext.testing.states import state
from botorch_ext.testing.subjects import Tried

# The lines that are interrupted: those of this package, and of blocks of ``with``.
_OWN = str(Path(__file__).parents[1]), contextlib.__file__
# Shares of the lines of a call after which it is broken off: spread over it, whatever their number.
_GOLDEN = 0.6180339887


def lines_of(call: Callable[[], Any], last: float = float("inf"), files: Iterable[str] = ()) -> int:
    """How many lines of this package a call ran.

    Args:
        call: What is called.
        last: Before the line after so many `KeyboardInterrupt` is raised, which is caught.
        files: Others whose lines count.
    """
    count, own = 0, (*_OWN, *files)

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            if count == last:
                sys.settrace(None)
                raise KeyboardInterrupt
            count += 1
        return trace

    traced, gradients = sys.gettrace(), torch.is_grad_enabled()
    sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename.startswith(own) else None)
    try:
        call()
    except KeyboardInterrupt:
        assert count == last
    finally:
        sys.settrace(traced)
        # An interrupt at the end of a ``with torch.no_grad()`` comes before its end is noted.
        torch.set_grad_enabled(gradients)
    return count


def calls_broken_off_anywhere_are_made_or_not(entry: Tried, num_rounds: int = 1) -> None:
    """In each round every kind of call is broken off once, in the next round elsewhere."""
    session = in_the_middle(entry)
    whole, offer = session.strategy, session.offer()
    files = {
        part.__code__.co_filename
        for kind in type(whole).__mro__
        for part in vars(kind).values()
        if isinstance(part, FunctionType)
    }
    rounds = [whole.clone() for _ in range(num_rounds)]
    calls = list(_calls(whole, offer))
    for kind, call in enumerate(calls):
        before = _shown(whole)
        num_lines = lines_of(lambda: call(whole), files=files)  # noqa: B023
        after = _shown(whole)
        for number, strategy in enumerate(rounds):
            last = int(num_lines * ((1 + number * len(calls) + kind) * _GOLDEN % 1.0))
            lines_of(lambda: call(strategy), last, files)  # noqa: B023
            if _shown(strategy) == before:
                call(strategy)
            assert _shown(strategy) == after, f"broken off after {last} of {num_lines} lines"
    expected = state(whole)
    for strategy in rounds:
        assert state(strategy) == expected


def _calls(strategy: Strategy, offer: dict[str, Any]) -> Iterator[Callable[[Strategy], Any]]:
    """One of each kind, to be made in this order: what is asked last follows from all of them."""
    history, pending = strategy.history, strategy.pending
    told = next(iter(history.values))
    yield lambda strategy: strategy.tell(pending[-1], 0.3)
    yield lambda strategy: strategy.correct(told, -0.4)
    if len(pending) > 1:
        yield lambda strategy: strategy.abandon(pending[0], failed=True)
    if strategy.refuses_attached is None:
        x, context = history.trials[told].x, offer.get("context")
        yield lambda strategy: strategy.attach(x, 0.1, context)
    yield lambda strategy: question(strategy, offer)


def _shown(strategy: Strategy) -> tuple[list[Any], dict[str, Any]]:
    return [plain(event) for event in strategy.events], strategy.report()
