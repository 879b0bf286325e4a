"""Threads: limits torch to one thread while a small strategy computes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch

from botorch_ext.domains import FiniteSet
from botorch_ext.strategies import Strategy

# Entries of the largest matrix of a small model. A pass over that many entries takes about 5 ms, as
# long as threads may have to wait for a thread that has no core.
_SMALL = 2**22
# How many points of a box are screened at once.
_NUM_SCREENED = 1024
# A lock for the variables below. No thread holds it while a strategy computes. Each thread has its
# own number of torch threads, and setting it also sets that of the threads that start later.
_changes = threading.RLock()
# From each thread that asks now to its number before.
_asking: dict[int, int] = {}
# The number of the thread that was the first to ask, while any thread asks.
_usual = 1
# Threads whose number is their own: they used torch while nobody asked, or were given it here.
_own = threading.local()


def is_small(strategy: Strategy) -> bool:
    """Whether the next ask of a strategy is too little work to be divided among threads.

    The answer depends only on the domain and the number of points, so that the same study asks with
    the same number of threads wherever it runs.
    """
    points = len(strategy.history.trials)
    points += 0 if strategy.initial is None else len(strategy.initial[0])
    domain = strategy.domain
    candidates = domain.num_points if isinstance(domain, FiniteSet) else _NUM_SCREENED
    return points * max(points, candidates) <= _SMALL


class threads_for:
    """A block in which torch has one thread if a small strategy computes; afterwards it has as many
    as before. Blocks of several threads do not wait for each other.

    Threads wait for each other after each operation. If all cores are busy, one thread has no core
    and the others wait for it, so that small asks take up to ten times as long with two threads as
    with one.

    Args:
        strategy: The strategy that computes in the block; a large strategy keeps its threads.
    """

    # This is no generator: an exception keeps a generator alive until the exception is forgotten,
    # maybe in the middle of another ask.

    def __init__(self, strategy: Strategy) -> None:
        self._limits = is_small(strategy)
        self._is_outer = False

    def __enter__(self) -> None:
        global _usual
        if not self._limits or limits_threads():
            return
        with _changes:
            number = _number_of_this_thread()
            if not _asking:
                _usual = number
            self._is_outer = True
            _asking[threading.get_ident()] = number
            torch.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        if self._is_outer:
            _end()


def limits_threads() -> bool:
    """Whether this thread is in a block of `threads_for`."""
    return threading.get_ident() in _asking


def give_threads_back() -> None:
    """Ends `threads_for` in this thread, in case an exception came just before or just after its
    block."""
    _end()
    with suppress(RuntimeError):  # once the lock is not its own any more
        while True:
            _changes.release()


def _end() -> None:
    with _changes:
        number = _asking.get(threading.get_ident())
        if number is not None:
            torch.set_num_threads(number)
            del _asking[threading.get_ident()]


def in_worker_thread(objective: Callable[..., Any], *given: Any) -> Any:
    """Calls an objective in a thread of this process. A thread that first uses torch during an ask
    would otherwise keep the one thread of the ask for ever."""
    if not getattr(_own, "is_set", False):
        with _changes:
            number = _number_of_this_thread()
            if number != torch.get_num_threads():
                torch.set_num_threads(number)
    return objective(*given)


def _number_of_this_thread() -> int:
    """How many threads torch has in this thread. A thread that uses torch for the first time while
    another one asks has the one of that ask, in place of the usual number."""
    number = torch.get_num_threads()
    if _asking and number == 1 and not getattr(_own, "is_set", False):
        number = _usual
    _own.is_set = True
    return number


def _after_fork_in_child() -> None:
    """Makes a new lock, and forgets the other threads, which do not exist in this process. A fork
    does not wait for their asks, which may take minutes."""
    global _changes
    own = _asking.get(threading.get_ident())
    others = len(_asking) > (own is not None)
    _changes = threading.RLock()
    _asking.clear()
    if own is not None:
        _asking[threading.get_ident()] = own
    elif others:  # else threads to come would have the one of their asks
        torch.set_num_threads(torch.get_num_threads())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
