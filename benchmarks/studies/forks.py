"""Forks: processes that start warm, with all that is imported."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import torch


def in_a_fork(work: Callable[[], Any], num_threads: int | None = 1) -> int:
    """The id of a process that works and ends, with 0 unless something was raised; None: with as
    many threads of torch as it is born with."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        if num_threads is not None:
            torch.set_num_threads(num_threads)
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the child must not go on as if it were its parent
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def is_alive(child: int) -> bool:
    """Whether a process has not ended; it can be waited for after this."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None


def wait_for(child: int, expected: int = 0) -> None:
    """Returns when a process has ended.

    Args:
        child: Its id.
        expected: How it ends: the negative of the signal that kills it.

    Raises:
        ChildProcessError: It ended otherwise.
    """
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if ended != expected:
        raise ChildProcessError(f"a process must end with {expected}, got {ended}")
