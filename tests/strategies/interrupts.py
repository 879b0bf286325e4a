"""Interrupts: calls that are broken off at any line of this package."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import botorch_ext

_OWN = str(Path(botorch_ext.__file__).parent), contextlib.__file__


def lines_of(call: Callable[[], Any], last: float = float("inf")) -> int:
    """How many lines of this package a call ran.

    Args:
        call: What is called.
        last: Before the line after so many `KeyboardInterrupt` is raised, which is caught.
    """
    count = 0

    def trace(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            if count == last:
                sys.settrace(None)
                raise KeyboardInterrupt
            count += 1
        return trace

    sys.settrace(lambda frame, *_: trace if frame.f_code.co_filename.startswith(_OWN) else None)
    try:
        call()
    except KeyboardInterrupt:
        assert count == last
    finally:
        sys.settrace(None)
    return count
