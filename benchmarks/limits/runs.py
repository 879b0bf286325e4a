"""Runs with limits: one method on one task, with one seed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.common.method_runs import MethodRun
from benchmarks.common.tables import Row
from benchmarks.limits.methods import METHODS
from benchmarks.limits.tasks import TASKS, measured

# The seeds of the tables are this and above; those below are for trying things out.
FIRST_SEED = 100
_SMOKE_EVALUATIONS = 11
# A float is kept with so many digits.
_DIGITS = 10


class Case(MethodRun):
    """One run of a method of `METHODS` on a task of `TASKS`."""

    @property
    def evaluations(self) -> int:
        """How many trials it has."""
        return _SMOKE_EVALUATIONS if self.smoke else TASKS[self.problem].evaluations

    @property
    def settings(self) -> tuple[Any, ...]:
        """The task and the version of the method."""
        task = TASKS[self.problem]
        return task.parameters, task.revision, METHODS[self.method].version


def cases(seeds: int, first: int, smoke: bool = False) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced."""
    for seed in range(first, first + seeds):
        for problem in TASKS:
            for method in METHODS:
                yield Case(method, problem, FIRST_SEED + seed, smoke)


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; the ``losses`` of all trials, None where a limit is
        broken; ``seconds`` of one core for a question and its answer; ``wall`` seconds.
    """
    torch.set_num_threads(1)
    started, seconds, losses = time.perf_counter(), 0.0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = METHODS[case.method].make(TASKS[case.problem], case.seed)
        for _ in range(case.evaluations):
            before = time.process_time()
            params = method.ask()
            loss, outcomes = measured(case.problem, params)
            method.tell_all(params, loss, outcomes)
            seconds += time.process_time() - before
            losses.append(float(f"{loss:.{_DIGITS}g}") if max(outcomes) <= 0 else None)
    return case.key | {
        "digest": case.digest,
        "losses": losses,
        "seconds": round(seconds / case.evaluations, 4),
        "wall": round(time.perf_counter() - started, 2),
    }
