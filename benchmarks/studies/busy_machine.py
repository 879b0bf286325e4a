"""Busy machine: how long asks and tells take while workers keep the cores busy.

A study in processes whose objective sleeps, and the same one whose objective computes for as long:
the first shows what its asks and tells cost in a quiet machine. The same again with as many threads
of torch in asks as there are cores, which is what `run` did before.
"""

from __future__ import annotations

import math
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables, judged
from benchmarks.studies.strategies import box, finite
from botorch_ext.strategies import Strategy
from botorch_ext.studies import threads

_SECONDS = 0.02  # of an evaluation


def evaluate(busy: bool, x: Tensor) -> float:
    """A value after a while, in which the worker computes or sleeps."""
    end = time.perf_counter() + _SECONDS
    if busy:
        while time.perf_counter() < end:
            pass
    else:
        time.sleep(_SECONDS)
    return math.sin(float(x[0]))


def seconds_of_asks(make: Callable[[], Strategy], steps: int, workers: int, busy: bool) -> float:
    """The mean time of an ask and a tell in a study with workers."""
    strategy, spent = make(), 0.0

    def timed(method: Callable[..., Any], *args: Any, **more: Any) -> Any:
        nonlocal spent
        start = time.perf_counter()
        answer = method(*args, **more)
        spent += time.perf_counter() - start
        return answer

    fork = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(workers, fork) as pool,
        patch.object(strategy, "ask", partial(timed, strategy.ask)),
        patch.object(strategy, "tell", partial(timed, strategy.tell)),
    ):
        list(pool.map(abs, range(workers)))  # forked before torch has threads
        bx.run(
            strategy,
            partial(evaluate, busy),
            steps,
            executor=pool,
            max_pending=workers,
            progress=False,
        )
    return spent / steps


def rows(steps: dict[Callable[[], Strategy], int], numbers: Sequence[int]) -> list[Row]:
    """A row for each strategy and number of workers."""
    found = []
    for make, num_steps in steps.items():
        for workers in numbers:
            quiet = seconds_of_asks(make, num_steps, workers, busy=False)
            busy = seconds_of_asks(make, num_steps, workers, busy=True)
            with patch.object(threads, "_SMALL", -1):
                before = seconds_of_asks(make, num_steps, workers, busy=True)
            found.append(
                {
                    "domain": make.__name__,
                    "steps": num_steps,
                    "busy workers": workers,
                    "quiet, ms": 1e3 * quiet,
                    "busy, ms": 1e3 * busy,
                    "busy/quiet": busy / quiet,
                    "busy with all threads, ms": 1e3 * before,
                }
            )
    return found


def tables(options: Options, folder: Path) -> Tables:
    """Three numbers of workers, on a finite set and on a box."""
    steps = {finite: 6, box: 3} if options.smoke else {finite: 300, box: 40}
    numbers = (1,) if options.smoke else (1, 2, 4)
    text = (
        f"Mean time of an ask and a tell, {_SECONDS} s an evaluation. Busy/quiet must be at most 2."
    )
    found = rows(steps, numbers)
    return [(text, found if options.smoke else judged(found, "busy/quiet", 2.0))]
