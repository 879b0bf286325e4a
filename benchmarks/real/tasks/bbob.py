"""Functions of the BBOB suites, from the package ``coco-experiment``: with and without noise, and
with whole numbers. The first instance of each; losses are less the least one.

Noise is that of bbob-noisy, f exp(beta z) with a standard normal z, but drawn from the seed of an
evaluation: the package draws it in the order of the calls.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import math
import random
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.real.spaces import Parameter, Params, real, whole
from benchmarks.real.tasks.task import Exact, Half, Kind, Objective, Task

_EVALUATIONS = {2: 30, 3: 40, 5: 50, 10: 60, 20: 60}


@dataclass(frozen=True)
class _Loss:
    """A function of COCO, less its least value.

    Args:
        problem: Of COCO.
        least: Its least value.
        suite: Without which the problem would end.
    """

    problem: Any
    least: float
    suite: Any

    def __call__(self, params: Params) -> float:
        return self.problem(list(map(float, params.values()))) - self.least


def _loss(suite_name: str, function: int, dim: int) -> _Loss:
    import cocoex

    filters = f"dimensions:{dim} instance_indices:1 function_indices:{function}"
    suite = cocoex.Suite(suite_name, "", filters)
    problem = suite.get_problem(0)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        problem._best_parameter("print")  # into a file of this name, and nowhere else
        best = [
            float(number)
            for number in Path("._bbob_problem_best_parameter.txt").read_text().split()
        ]
    return _Loss(problem, problem(best), suite)


def exact(suite: str, function: int, dim: int) -> Objective:
    """A function of a suite without noise."""
    return Exact(_loss(suite, function, dim))


@dataclass(frozen=True)
class _Noisy:
    """A function whose noise multiplies its distance from the least value.

    Args:
        loss: The loss without noise.
        beta: The standard deviation of the logarithm of the noise.
    """

    loss: _Loss
    beta: float

    def true(self, params: Params) -> float:
        """The loss without noise."""
        return self.loss(params)

    def seen(self, params: Params, seed: int) -> float:
        """One evaluation."""
        return self.loss(params) * math.exp(self.beta * random.Random(seed).gauss())


def _noisy(function: int, dim: int, beta: float) -> Objective:
    return _Noisy(_loss("bbob", function, dim), beta)


def _space(dim: int) -> tuple[Parameter, ...]:
    return tuple(real(f"x{i}", -5.0, 5.0) for i in range(dim))


def _task(function: int, dim: int, kind: Kind, half: Half) -> Task:
    make = partial(exact, "bbob", function, dim)
    name = f"BBOB f{function}, d = {dim}"
    return Task(name, kind, half, _space(dim), _EVALUATIONS[dim], make, 0.0)


def _with_noise(function: int, dim: int, half: Half, beta: float = 1.0) -> Task:
    make = partial(_noisy, function, dim, beta)
    name = f"BBOB f{function} with {'severe' if beta == 1 else 'moderate'} noise, d = {dim}"
    return Task(name, "noisy", half, _space(dim), _EVALUATIONS[dim], make, 0.0)


def _mixed(function: int, dim: int, half: Half) -> Task:
    # As the suite has them: a fifth of the inputs each have 2, 4, 8 and 16 values, the last none.
    fifth = dim // 5
    parameters = tuple(
        real(f"x{i}", -5.0, 5.0) if i >= 4 * fifth else whole(f"x{i}", 0, 2 ** (i // fifth + 1) - 1)
        for i in range(dim)
    )
    make = partial(exact, "bbob-mixint", function, dim)
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
    _with_noise(1, 5, "develop"),
    _with_noise(14, 3, "develop"),
    _with_noise(21, 2, "develop"),
    _mixed(20, 5, "develop"),
    _task(8, 5, "smooth", "report"),
    _task(10, 3, "smooth", "report"),
    _task(13, 5, "smooth", "report"),
    _task(2, 10, "smooth", "report"),
    _task(4, 5, "multimodal", "report"),
    _task(15, 3, "multimodal", "report"),
    _task(21, 5, "multimodal", "report"),
    _task(19, 20, "multimodal", "report"),
    _with_noise(8, 3, "report", beta=0.01),
    _with_noise(10, 5, "report"),
    _with_noise(17, 5, "report"),
    _mixed(8, 5, "report"),
    _mixed(15, 10, "report"),
    _task(1, 10, "smooth", "confirm"),
    _task(5, 5, "smooth", "confirm"),
    _task(11, 3, "smooth", "confirm"),
    _task(16, 5, "multimodal", "confirm"),
    _task(18, 3, "multimodal", "confirm"),
    _task(24, 20, "multimodal", "confirm"),
    _with_noise(7, 5, "confirm", beta=0.01),
    _with_noise(19, 3, "confirm"),
    _mixed(2, 5, "confirm"),
)
