"""Threads: how many of them an ask computes with."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def threads_for(strategy: Strategy) -> Iterator[None]:
    """One thread of torch while a small strategy computes, and as many as before afterwards.

    Threads meet after each operation. Where all cores are busy one of them has none and the others
    wait for it: small asks then take up to ten times as long with two threads as with one.

    Args:
        strategy: What computes in this block; a large one keeps its threads.
    """
    if not is_small(strategy):
        yield
        return
    global _asking
    with _limited:
        before, outer = torch.get_num_threads(), _asking
        _asking = outer or (threading.get_ident(), before)
        try:
            torch.set_num_threads(1)
            yield
        finally:
            torch.set_num_threads(before)
            _asking = outer


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
