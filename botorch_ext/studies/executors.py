"""Executors: how a run makes, checks and shuts down the executor of its evaluations."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.reduction import ForkingPickler
from typing import Any

from botorch_ext.exceptions import ObjectiveError


class Inline(Executor):
    """An executor that evaluates at once, in this thread. It does not catch Ctrl-C."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future:
        future: Future = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever the objective raises is the trial's failure
            future.set_exception(error)
        return future


def make_executor(given: Executor | Callable[[], Executor] | None) -> Executor:
    """The given executor, a new executor of the given function, or for None this thread.

    Raises:
        ValueError: The function makes no executor.
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
    """Shuts an executor down with the arguments that it takes: executors of Dask and loky take no
    ``cancel_futures``, and an executor without ``shutdown`` needs none."""
    if not hasattr(executor, "shutdown"):
        return
    options = inspect.signature(executor.shutdown).parameters
    if "cancel_futures" in options:
        executor.shutdown(wait=wait, cancel_futures=True)
    else:
        executor.shutdown(wait=wait)


def exit_of(future: Future) -> BaseException | None:
    """The exception of an objective that would end this process, such as `SystemExit`. It is None
    for other exceptions, and for Ctrl-C, which reaches workers too."""
    error = None if future.cancelled() else future.exception()
    return None if isinstance(error, Exception | KeyboardInterrupt) else error


def is_lost(executor: Executor) -> bool:
    """Whether the cluster of a Dask executor is gone, which may never finish its futures."""
    return getattr(getattr(executor, "_client", None), "status", None) == "closed"


def uses_threads(executor: Executor) -> bool:
    """Whether an executor is known to evaluate in this process, which pickles nothing."""
    return isinstance(executor, Inline | ThreadPoolExecutor)


def unpicklable(
    objective: Callable[..., Any], error: Exception, name: str = "objective"
) -> ObjectiveError:
    """The error of an objective that cannot be sent to other processes."""
    return ObjectiveError(
        f"{name} must be picklable to reach other processes, as a function of a module is, got "
        f"{objective!r}: {error}"
    )


def require_picklable(
    objective: Callable[..., Any], executor: Executor, name: str = "objective"
) -> None:
    """Raises an error if an objective cannot reach the processes of a pool.

    Raises:
        ObjectiveError: It cannot be pickled.
    """
    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        ForkingPickler.dumps(objective)
    except Exception as error:  # pickle raises whatever the object's own methods raise
        raise unpicklable(objective, error, name) from error
