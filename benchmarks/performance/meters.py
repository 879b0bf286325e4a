"""Meters, which measure the steps of a hot path: by a stopwatch, or by what a GPU would launch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import torch

from benchmarks.common.pretend_cuda import Tally, counting
from benchmarks.common.timing import synchronize


class Meter(Protocol):
    """What measures the steps of a path on a device."""

    @property
    def device(self) -> torch.device: ...

    def measured(self, steps: int = 1) -> AbstractContextManager[None]:
        """Measures what happens within as so many steps, or if 0 as a part of the last one."""
        ...


class LaunchMeter:
    """Counts launches and stops; within `PretendCUDA`.

    Attributes:
        tally: Over all steps.
        steps: How many.
    """

    def __init__(self) -> None:
        self.device = torch.device("cuda")
        self.tally = Tally()
        self.steps = 0

    @contextmanager
    def measured(self, steps: int = 1) -> Iterator[None]:
        with counting(self.tally):
            yield
        self.steps += steps

    @property
    def launches(self) -> float:
        """Of one step."""
        return self.tally.launches / self.steps

    @property
    def stops(self) -> float:
        """Of one step."""
        return self.tally.num_stops / self.steps

    @property
    def num_bytes(self) -> float:
        """Read and written in one step."""
        return self.tally.num_bytes / self.steps


class Stopwatch:
    """Takes the time of steps, with all that they start on the device.

    Args:
        device: Where the path runs.

    Attributes:
        seconds: Of each step.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.seconds: list[float] = []

    @contextmanager
    def measured(self, steps: int = 1) -> Iterator[None]:
        synchronize(self.device)
        start = time.perf_counter()
        yield
        synchronize(self.device)
        taken = time.perf_counter() - start
        if steps:
            self.seconds.append(taken / steps)
        else:
            self.seconds[-1] += taken
