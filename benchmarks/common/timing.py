"""Timing of calls, with the work that they start on a device."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def seconds(function: Callable[[], Any], device: torch.device) -> float:
    """How long one call takes, with all the work it started on the device."""
    synchronize(device)
    start = time.perf_counter()
    function()
    synchronize(device)
    return time.perf_counter() - start


def median_seconds(function: Callable[[], Any], repeats: int, device: torch.device) -> float:
    """The median over some calls, after one that is not counted."""
    function()
    return statistics.median(seconds(function, device) for _ in range(repeats))


def synchronize(device: torch.device) -> None:
    """Waits for all the work that was started on the device."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
