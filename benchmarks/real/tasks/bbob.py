"""Functions of the BBOB suites, from the package ``coco-experiment``: with and without noise, and
with whole numbers. The first instance of each; losses are less the least one."""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.real.spaces import Params, real, whole
from benchmarks.real.tasks.task import Exact, Half, Kind, Objective, Task

# Evaluations whose median is the loss without noise, which multiplies it.
_NUM_REPEATED = 2001
_EVALUATIONS = {2: 30, 3: 40, 5: 50, 10: 60, 20: 60}


# A problem lives as long as its suite.
_SUITES: list[Any] = []


def _loss(suite_name: str, function: int, dim: int) -> Callable[[Params], float]:
    """A function of COCO, less its least value."""
    import cocoex

    number = function - 100 if suite_name == "bbob-noisy" else function
    filters = f"dimensions:{dim} instance_indices:1 function_indices:{number}"
    suite = cocoex.Suite(suite_name, "", filters)
    _SUITES.append(suite)
    problem = suite.get_problem(0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")  # into a file of this name, and nowhere else
        best = [
            float(number)
            for number in Path("._bbob_problem_best_parameter.txt").read_text().split()
        ]
    least = problem(best)

    def loss(params: Params) -> float:
        return problem(list(map(float, params.values()))) - least

    return loss


def _exact(suite: str, function: int, dim: int) -> Objective:
    return Exact(_loss(suite, function, dim))


@dataclass(frozen=True)
class _Noisy:
    """A function whose noise grows with its distance from the least value.

    Args:
        loss: Of COCO, which draws the noise itself, in the order of the calls.
    """

    loss: Callable[[Params], float]

    def seen(self, params: Params, seed: int) -> float:
        """One evaluation."""
        return self.loss(params)

    def true(self, params: Params) -> float:
        """The median of many."""
        return statistics.median(self.loss(params) for _ in range(_NUM_REPEATED))


def _noisy(function: int, dim: int) -> Objective:
    return _Noisy(_loss("bbob-noisy", function, dim))


def _task(function: int, dim: int, kind: Kind, half: Half) -> Task:
    noisy = kind == "noisy"
    parameters = tuple(real(f"x{i}", -5.0, 5.0) for i in range(dim))
    make = partial(_noisy, function, dim) if noisy else partial(_exact, "bbob", function, dim)
    return Task(
        f"BBOB f{function}, d = {dim}", kind, half, parameters, _EVALUATIONS[dim], make, 0.0
    )


def _mixed(function: int, dim: int, half: Half) -> Task:
    # As the suite has them: a fifth of the inputs each have 2, 4, 8 and 16 values, the last none.
    fifth = dim // 5
    parameters = tuple(
        real(f"x{i}", -5.0, 5.0) if i >= 4 * fifth else whole(f"x{i}", 0, 2 ** (i // fifth + 1) - 1)
        for i in range(dim)
    )
    make = partial(_exact, "bbob-mixint", function, dim)
    name = f"BBOB f{function} with whole numbers, d = {dim}"
    return Task(name, "mixed", half, parameters, _EVALUATIONS[dim], make, 0.0)


TASKS = (
    _task(6, 5, "smooth", "develop"),
    _task(9, 3, "smooth", "develop"),
    _task(14, 5, "smooth", "develop"),
    _task(12, 10, "smooth", "develop"),
    _task(3, 5, "multimodal", "develop"),
    _task(17, 3, "multimodal", "develop"),
    _task(22, 2, "multimodal", "develop"),
    _task(107, 5, "noisy", "develop"),
    _task(119, 3, "noisy", "develop"),
    _task(128, 2, "noisy", "develop"),
    _mixed(20, 5, "develop"),
    _task(8, 5, "smooth", "report"),
    _task(10, 3, "smooth", "report"),
    _task(13, 5, "smooth", "report"),
    _task(2, 10, "smooth", "report"),
    _task(4, 5, "multimodal", "report"),
    _task(15, 3, "multimodal", "report"),
    _task(21, 5, "multimodal", "report"),
    _task(19, 20, "multimodal", "report"),
    _task(104, 3, "noisy", "report"),
    _task(116, 5, "noisy", "report"),
    _task(122, 5, "noisy", "report"),
    _mixed(8, 5, "report"),
    _mixed(15, 10, "report"),
)
