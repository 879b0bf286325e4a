"""Tasks: the constrained designs of `benchmarks.real`, whose constraints are measured outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import cast

from scipy.stats import qmc

from benchmarks.real.spaces import Params
from benchmarks.real.tasks.designs import TASKS as DESIGNS
from benchmarks.real.tasks.designs import Penalised
from benchmarks.real.tasks.task import Task

TASKS: dict[str, Task] = {task.name: task for task in DESIGNS if task.half != "confirm"}
# The binary logarithm of the size of a Sobol sample; a regret counts as at least the floor.
_LOG2_POINTS, _FLOOR = 14, 1e-6


@cache
def objective(name: str) -> Penalised:
    """The objective of a task, which has its design."""
    return cast(Penalised, TASKS[name].make())


def measured(name: str, params: Params) -> tuple[float, list[float]]:
    """The loss of a setting, and its outcomes, each of which must be at most 0."""
    loss, outcomes = objective(name).design(params)
    return loss, list(outcomes)


@cache
def sample(name: str) -> tuple[float, float, int]:
    """The greatest loss of a Sobol sample that keeps all limits, the share that does, and the
    number of outcomes."""
    task, kept, outcomes = TASKS[name], [], [0.0]
    points = qmc.Sobol(task.dim, rng=0).random_base2(_LOG2_POINTS)
    for point in points:
        ends = [(p, *p.ends) for p in task.parameters]
        pairs = zip(ends, point, strict=True)
        setting = {p.name: p.value(low + share * (high - low)) for (p, low, high), share in pairs}
        loss, outcomes = measured(name, setting)
        if max(outcomes) <= 0:
            kept.append(loss)
    return max(kept), len(kept) / len(points), len(outcomes)


def log_regret(name: str, losses: Sequence[float | None]) -> float:
    """log10 of the regret of the least loss within all limits, in least losses; the regret of the
    greatest loss of a sample where there is none."""
    least = cast(float, TASKS[name].least)
    found = min((loss for loss in losses if loss is not None), default=sample(name)[0])
    return math.log10(max((found - least) / least, _FLOOR))
