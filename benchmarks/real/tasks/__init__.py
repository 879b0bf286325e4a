"""Tasks that this project did not invent, and their evaluation.

Each belongs to a half, chosen before the first run: the library may be changed for what happens on
those to develop on, which `functions` joined later; the others are only reported. Those to confirm
were added after runs on the first ones that are only reported, to judge later changes of the
default. Tasks of many inputs are a half of their own.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import differential_evolution

from benchmarks.real.spaces import Params, active_only
from benchmarks.real.tasks import bbob, chemistry, designs, functions, large, tuning
from benchmarks.real.tasks.task import Half, Kind, Task

__all__ = ["TASKS", "Evaluations", "Half", "Kind", "Task"]

TASKS = {
    task.name: task
    for family in (tuning, chemistry, designs, bbob, functions, large)
    for task in family.TASKS
}


class Evaluations:
    """Losses of the tasks, in a process that has what they need."""

    def loss(self, task: str, params: Params, seed: int) -> float:
        """What one evaluation with this seed sees."""
        return float(self._made(task).seen(params, seed))

    def true(self, task: str, params: Params) -> float:
        """The loss without noise."""
        return float(self._made(task).true(params))

    def search(self, task: str, evaluations: int) -> float:
        """The loss without noise of the best setting that a long search finds: differential
        evolution, of about so many evaluations."""
        parameters, objective = TASKS[task].parameters, self._made(task)

        def params(numbers: Any) -> Params:
            found = {p.name: p.value(x) for p, x in zip(parameters, numbers, strict=True)}
            return active_only(parameters, found)

        # Many of the best settings lie at ends, where it would seldom begin.
        rng, size = np.random.default_rng(0), (20 * len(parameters), len(parameters))
        shares = np.where(rng.random(size) < 0.5, rng.integers(0, 2, size), rng.random(size))
        lower, upper = np.array([p.ends for p in parameters]).T
        found = differential_evolution(
            lambda numbers: objective.seen(params(numbers), 0),
            list(zip(lower, upper, strict=True)),
            maxiter=max(evaluations // len(shares) - 1, 1),
            init=lower + shares * (upper - lower),
            tol=0.0,
            rng=0,
            polish=False,
        )
        return float(objective.true(params(found.x)))

    def _made(self, name: str) -> Any:
        if name not in self._objectives:
            self._objectives[name] = TASKS[name].make()
        return self._objectives[name]

    @cached_property
    def _objectives(self) -> dict[str, Any]:
        return {}
