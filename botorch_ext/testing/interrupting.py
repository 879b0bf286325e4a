"""Calls that are broken off at any line: they are then made to their end, or not at all."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from botorch_ext.strategies import Strategy

# The lines that are interrupted: those of this package, and of blocks of ``with``.
_OWN = str(Path(__file__).parents[1]), contextlib.__file__


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


def files_of(strategy: Strategy) -> set[str]:
    """The files in which the class of a strategy and its bases are written."""
    return {
        part.__code__.co_filename
        for kind in type(strategy).__mro__
        for part in vars(kind).values()
        if isinstance(part, FunctionType)
    }
