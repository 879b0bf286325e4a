"""Processes for many runs at once."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from typing import Any, TypeVar

import torch
from tqdm import tqdm

_Case = TypeVar("_Case")
_Result = TypeVar("_Result")


def in_processes(
    function: Callable[[_Case], _Result], cases: Sequence[_Case], processes: int, description: str
) -> list[_Result]:
    """The results of all cases, in their order, with a progress bar.

    Args:
        function: Of one case; it and the cases must be picklable.
        cases: What to run.
        processes: How many at once, with one thread each; 1 runs them in this process.
        description: Of the progress bar.

    Returns:
        A result for each case.
    """
    bar: dict[str, Any] = {"total": len(cases), "desc": description, "unit": "run"}
    if processes == 1:
        return list(tqdm(map(function, cases), **bar))
    with _pool(function, processes) as pool:
        return list(tqdm(pool.map(function, cases), **bar))


def as_they_finish(
    function: Callable[[_Case], _Result], cases: Sequence[_Case], processes: int
) -> Iterator[tuple[_Case, _Result]]:
    """The cases with their results, whichever is finished first; they are started in order.

    Args:
        function: Of one case; it and the cases must be picklable.
        cases: What to run.
        processes: How many at once, with one thread each; 1 runs them in this process.

    Yields:
        A case and its result.
    """
    if processes == 1:
        for case in cases:
            yield case, function(case)
        return
    pool = _pool(function, processes)
    try:
        futures = {pool.submit(function, case): case for case in cases}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _pool(function: Callable[..., Any], processes: int) -> ProcessPoolExecutor:
    """Processes of one thread; on Linux forks of one that has imported the module of a function."""
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    context.set_forkserver_preload(_modules_of(function))
    return ProcessPoolExecutor(processes, context, torch.set_num_threads, (1,))


def _modules_of(function: Callable[..., Any]) -> list[str]:
    """The modules of a function; of a partial one those of its parts."""
    if not isinstance(function, partial):
        return [function.__module__]
    parts = [part for part in (function.func, *function.args) if callable(part)]
    return [module for part in parts for module in _modules_of(part)]
