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
# The number of threads belongs to the process: of two asks at once, the ask that ends first would
# give the other its threads back.
_limited = threading.RLock()
# The thread that asks now, and the number of threads before.
_asking: tuple[int, int] | None = None


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
    as before.

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
    """Ends `threads_for` in this thread, in case an exception came just before or just after its
    block."""
    global _asking
    if _asking is not None and limits_threads():
        torch.set_num_threads(_asking[1])
        _asking = None
    with suppress(RuntimeError):  # once the lock is not its own any more
        while True:
            _limited.release()


def in_worker_thread(objective: Callable[..., Any], *given: Any) -> Any:
    """Calls an objective in a thread of this process. A thread that first uses torch during an ask
    would otherwise keep the one thread of the ask for ever."""
    with _limited:
        torch.get_num_threads()
    return objective(*given)


def _after_fork_in_child() -> None:
    """Makes a new lock, because the thread that holds the old one may not exist in this process. A
    fork does not wait for that thread, whose ask may take minutes."""
    global _limited, _asking
    if _asking is not None and _asking[0] == threading.get_ident():
        return
    _limited = threading.RLock()
    if _asking is not None:
        torch.set_num_threads(_asking[1])
        _asking = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
