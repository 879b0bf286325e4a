"""Settings of the practice benchmark: who waits for whom, and what goes wrong with the values."""

from __future__ import annotations

import heapq
import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from torch import Tensor

from benchmarks.practice.problems import FURTHER, Problem, Scale, problems
from botorch_ext.delays import Poisson

# Of the range of a problem, the standard deviation of the noise.
NOISES = (0.005, 0.05)
# Evaluations fail where the first two inputs are both beyond this share of their sides.
_FAILS_BEYOND = 0.6
# An outlier is too low by so many ranges: from, to.
_TOO_LOW = (1.0, 3.0)
# Of the logarithm of the duration of an evaluation.
_SIGMA = 0.5
_LEAST_INITIAL = 8
_TO_FIT = 2

_ALL_NOISES_OF = (
    "Branin",
    "Hartmann6",
    "Ackley5",
    "Levy4",
    "Hartmann4",
    "Styblinski-Tang4",
    "Griewank5",
    "Boosting",
)

# The n-th evaluation of a run, counted from 0, is asked for or told.
Event = tuple[Literal["ask", "tell"], int]


@dataclass(frozen=True)
class Setting:
    """How evaluations go.

    Args:
        problems: The names of those it is played on; empty for all but the further ones.
        noises: Standard deviations of the noise, in ranges.
        workers: Evaluations under way at once; each takes a random time.
        mean_delay: Where positive, there is a question at each step, and results come so many steps
            late on average, by a Poisson distribution.
        fails: Whether evaluations fail in a corner.
        outliers: The share of the values that are far too low, rounded up to a whole number.
        levels: Where positive, values are rounded to so many levels over the range.
        evaluations: Of a run; 0 takes the problem's.
    """

    problems: tuple[str, ...] = ()
    noises: tuple[float, ...] = (0.005,)
    workers: int = 1
    mean_delay: float = 0.0
    fails: bool = False
    outliers: float = 0.0
    levels: int = 0
    evaluations: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """The problems it is played on."""
        return self.problems or tuple(name for name in problems() if name not in FURTHER)


# The setting of the first table: one question at a time.
PRIMARY = "sequential"
# The settings of one question at a time, each on problems of its own.
ONE_AT_A_TIME = (PRIMARY, "further")
_FEW = ("Branin", "Hartmann6", "Levy4", "Hartmann4", "Styblinski-Tang4")
SETTINGS = {
    PRIMARY: Setting(noises=NOISES),
    "4 workers": Setting(_ALL_NOISES_OF, NOISES, workers=4),
    "16 workers": Setting(_ALL_NOISES_OF, NOISES, workers=16),
    "late": Setting((*_FEW, "Boosting"), mean_delay=10.0, evaluations=60),
    "failing": Setting((*_FEW, "Rosenbrock4"), fails=True),
    "outliers": Setting((*_FEW, "Cosine8"), outliers=0.03),
    "steps": Setting((*_FEW, "Ackley5", "Griewank5"), levels=20),
    "further": Setting(FURTHER, NOISES),
}


def seed_of(*parts: object) -> int:
    """A seed for a cell or for a stream within it: the same everywhere, another for others."""
    return zlib.crc32(repr(parts).encode())


def schedule(setting: Setting, evaluations: int, seed: int) -> list[Event]:
    """What is asked and what is told, in order; no method changes it.

    Workers take the next question when they have answered one. With delays the point asked at step
    s that is tau late is told before the question of step s + tau + 1.
    """
    rng = np.random.default_rng(seed)
    if setting.mean_delay:
        delays = Poisson(setting.mean_delay).sample(evaluations, rng)
        starts, durations, workers = range(evaluations), delays + 0.5, evaluations
    else:
        starts, durations = [0.0] * evaluations, rng.lognormal(0.0, _SIGMA, evaluations)
        workers = setting.workers
    events: list[Event] = []
    running: list[tuple[float, int]] = []
    now = 0.0

    def tell() -> float:
        finished, which = heapq.heappop(running)
        events.append(("tell", which))
        return finished

    for which, (start, duration) in enumerate(zip(starts, durations, strict=True)):
        now = max(now, start)
        if len(running) == workers:
            now = max(now, tell())
        while running and running[0][0] <= now:
            tell()
        events.append(("ask", which))
        heapq.heappush(running, (now + float(duration), which))
    while running:
        tell()
    return events


def num_initial(events: list[Event]) -> int:
    """How many Sobol points come first: eight, or those asked before two results are there."""
    told = [place for place, (kind, _) in enumerate(events) if kind == "tell"]
    before = sum(kind == "ask" for kind, _ in events[: told[_TO_FIT - 1]])
    return max(_LEAST_INITIAL, before)


def fails_at(setting: Setting, problem: Problem) -> Callable[[Tensor], bool]:
    """Whether the evaluation of a ``d``-dim point fails."""
    lower, upper = problem.box

    def fails(x: Tensor) -> bool:
        share = (x - lower) / (upper - lower)
        return setting.fails and bool((share[:2] > _FAILS_BEYOND).all())

    return fails


def observations(
    setting: Setting, scale: Scale, noise: float, evaluations: int, seed: int
) -> Callable[[int, float], float]:
    """What is seen of the n-th evaluation, from its number and its true value: the same noise for
    every method."""
    rng = np.random.default_rng(seed)
    shifts = noise * rng.standard_normal(evaluations)
    outliers = rng.permutation(evaluations)[: math.ceil(setting.outliers * evaluations)]
    shifts[outliers] -= rng.uniform(*_TOO_LOW, len(outliers))

    def seen(which: int, value: float) -> float:
        value += float(shifts[which]) * scale.width
        if setting.levels:
            step = scale.width / setting.levels
            value = step * round(value / step)
        return value

    return seen
