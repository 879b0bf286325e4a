"""Runs with failures: one method on one task, with one seed."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch

from benchmarks.common.method_runs import MethodRun
from benchmarks.common.tables import Row
from benchmarks.failures.methods import METHODS, OURS, PENDING
from benchmarks.failures.tasks import TASKS

# The seeds of the tables are this and above; those below are for trying things out.
FIRST_SEED = 100
EVALUATIONS, _SMOKE_EVALUATIONS = 40, 12
# A float is kept with so many digits.
_DIGITS = 10


class Case(MethodRun):
    """One run of a method of `METHODS` on a task of `TASKS`."""

    @property
    def evaluations(self) -> int:
        """How many trials it has, failed ones included."""
        return _SMOKE_EVALUATIONS if self.smoke else EVALUATIONS

    @property
    def settings(self) -> tuple[Any, ...]:
        """The task and the version of the method."""
        task = TASKS[self.problem]
        return task.parameters, task.revision, METHODS[self.method].version


def cases(seeds: int, first: int, smoke: bool = False) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced. Where nothing
    fails, only what this library does is of interest."""
    for seed in range(first, first + seeds):
        for problem, task in TASKS.items():
            for method in METHODS:
                if task.failing or method in (OURS, PENDING):
                    yield Case(method, problem, FIRST_SEED + seed, smoke)


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; the ``losses`` of all trials, None for a failed one;
        ``seconds`` of one core for a question and its answer; ``wall`` seconds.
    """
    torch.set_num_threads(1)
    started, seconds = time.perf_counter(), 0.0
    task, losses = TASKS[case.problem], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = METHODS[case.method].make(task.parameters, case.seed, case.evaluations)
        for _ in range(case.evaluations):
            before = time.process_time()
            params = method.ask()
            loss = task.loss(params)
            if loss is None:
                method.fail()
            else:
                method.tell(params, loss)
            seconds += time.process_time() - before
            losses.append(None if loss is None else float(f"{loss:.{_DIGITS}g}"))
    return case.key | {
        "digest": case.digest,
        "losses": losses,
        "seconds": round(seconds / case.evaluations, 4),
        "wall": round(time.perf_counter() - started, 2),
    }
