"""Threads: how many of them an ask computes with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from botorch_ext.domains import FiniteSet
from botorch_ext.strategies import Strategy

# Entries of the largest matrix of a model: a pass over so many takes some 5 ms, as long as threads
# may have to wait for one of them that has no core.
_SMALL = 2**22
# Points that are screened at once where there is no finite set of them.
_NUM_SCREENED = 1024
# How many threads there are is a matter of the process: of two asks at once, the one that ends
# first would give the other its threads back.
_limited = threading.RLock()
# Which thread asks now, and how many threads there are but for it.
_asking: tuple[int, int] | None = None


def is_small(strategy: Strategy) -> bool:
    """Whether the next ask of a strategy is too little work to be divided among threads.

    It depends on nothing but the domain and the number of points, so that the same study asks with
    the same number of threads wherever it runs.
    """
    points = len(strategy.history.trials)
    points += 0 if strategy.initial is None else len(strategy.initial[0])
    domain = strategy.domain
    candidates = domain.num_points if isinstance(domain, FiniteSet) else _NUM_SCREENED
    return points * max(points, candidates) <= _SMALL


class threads_for:
    """One thread of torch while a small strategy computes, and as many as before afterwards.

    Threads meet after each operation. Where all cores are busy one of them has none and the others
    wait for it: small asks then take up to ten times as long with two threads as with one.

    Args:
        strategy: What computes in this block; a large one keeps its threads.
    """

    # No generator: what an exception has left of one ends when the exception is forgotten, in the
    # middle of another ask.

    def __init__(self, strategy: Strategy) -> None:
        self._limits = is_small(strategy)

    def __enter__(self) -> None:
        global _asking
        if self._limits:
            _limited.acquire()
            self._before, self._outer = torch.get_num_threads(), _asking
            _asking = self._outer or (threading.get_ident(), self._before)
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        global _asking
        if self._limits:
            torch.set_num_threads(self._before)
            _asking = self._outer
            _limited.release()


def limits_threads() -> bool:
    """Whether this thread is in a block of `threads_for`."""
    return _asking is not None and _asking[0] == threading.get_ident()


def give_threads_back() -> None:
    """Ends what `threads_for` began in this thread, should an exception have come just before its
    block or just after."""
    global _asking
    if _asking is not None and limits_threads():
        torch.set_num_threads(_asking[1])
        _asking = None
    with suppress(RuntimeError):  # once the lock is not its own any more
        while True:
            _limited.release()


def in_worker_thread(objective: Callable[..., Any], *given: Any) -> Any:
    """Calls an objective in a thread of this process: a thread that first uses torch beside an ask
    would be left with the one thread of the ask for good."""
    with _limited:
        torch.get_num_threads()
    return objective(*given)


def _after_fork_in_child() -> None:
    """A new lock: the thread that has the old one may not be here, and never gives it back. A fork
    does not wait for it, which may ask for minutes."""
    global _limited, _asking
    if _asking is not None and _asking[0] == threading.get_ident():
        return
    _limited = threading.RLock()
    if _asking is not None:
        torch.set_num_threads(_asking[1])
        _asking = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
