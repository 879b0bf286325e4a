"""Executors: where an objective is evaluated, from their making to their end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any

from botorch_ext.exceptions import ObjectiveError


class Inline(Executor):
    """Evaluates at once, in this thread. Ctrl-C passes through."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever the objective raises is the trial's failure
            future.set_exception(error)
        return future


def make_executor(given: Executor | Callable[[], Executor] | None) -> Executor:
    """The executor that was given, or a new one of the function; None is this thread.

    Raises:
        ValueError: The function makes something else.
    """
    if given is None:
        return Inline()
    if isinstance(given, Executor):
        return given
    made = given()
    if not callable(getattr(made, "submit", None)):
        raise ValueError(f"executor must make an Executor, got {made!r}")
    return made


def shut_down(executor: Executor, wait: bool) -> None:
    """Ends an executor with what it understands: those of Dask and loky take no cancel_futures, and
    one that can only submit needs no end."""
    if not hasattr(executor, "shutdown"):
        return
    options = inspect.signature(executor.shutdown).parameters
    if "cancel_futures" in options:
        executor.shutdown(wait=wait, cancel_futures=True)
    else:
        executor.shutdown(wait=wait)


def exit_of(future: Future) -> BaseException | None:
    """The exception of an objective that ended its worker and would end this process, such as
    `SystemExit`; None for all others, and for Ctrl-C, which reaches workers too."""
    error = None if future.cancelled() else future.exception()
    return None if isinstance(error, Exception | KeyboardInterrupt) else error


def is_lost(executor: Executor) -> bool:
    """Whether the cluster of an executor of Dask is gone: it may leave its futures undone."""
    return getattr(getattr(executor, "_client", None), "status", None) == "closed"


def uses_threads(executor: Executor) -> bool:
    """Whether an executor is known to evaluate in this process: then nothing is pickled."""
    return isinstance(executor, Inline | ThreadPoolExecutor)


def unpicklable(objective: Callable[..., Any], error: Exception) -> ObjectiveError:
    """What to raise of an objective that cannot be sent to other processes."""
    return ObjectiveError(
        "objective must be picklable to reach other processes, as a function of a module is, got "
        f"{objective!r}: {error}"
    )


def require_picklable(objective: Callable[..., Any], executor: Executor) -> None:
    """Raises where an objective can never reach the processes of a pool.

    Raises:
        ObjectiveError: It cannot be pickled.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        ForkingPickler.dumps(objective)
    except Exception as error:  # pickle raises whatever the object's own methods raise
        raise unpicklable(objective, error) from error
