"""Objectives for other processes, which import this module and nothing of the library."""

from __future__ import annotations

import math
import os
import signal
import time
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


def ends_at_first(flag: str, raised: type[BaseException], x: Any) -> float:
    """`f`, but the first call raises what would end its process."""
    if _is_first(flag):
        raise raised
    return f(x)


def _is_first(flag: str) -> bool:
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def slow(seconds: float, x: Any) -> float:
    """`f`, after a while."""
    time.sleep(seconds)
    return f(x)


def killed_at_first(folder: str, x: Any) -> float:
    """`f`, but of two points the first process that evaluates them dies, as if killed; each call
    leaves its process id in a file of its own."""
    (Path(folder) / f"call-{time.monotonic_ns()}").write_text(str(os.getpid()))
    if any(_is_first(str(Path(folder) / f"flag-{i}")) for i in range(2)):
        os.kill(os.getpid(), signal.SIGKILL)
    return f(x)
