"""Objectives for other processes, which import this module and nothing of the library."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any


def f(x: Any) -> float:
    a, b = x.tolist()
    return math.sin(2 * a) * math.cos(b) + 0.3 * b


def first_worker_dies(flag: str, x: Any) -> float:
    """`f`, but the first process to get here dies at once, as if killed for its memory."""
    if _is_first(flag):
        os._exit(1)
    return f(x)


def first_call_fails(flag: str, x: Any) -> float:
    """`f`, but the first call raises."""
    if _is_first(flag):
        raise RuntimeError("first call")
    return f(x)


def _is_first(flag: str) -> bool:
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
