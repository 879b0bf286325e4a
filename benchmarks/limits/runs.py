"""Runs with limits: one method on one task, with one seed."""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from benchmarks.common.resumable import attempted
from benchmarks.common.tables import Row
from benchmarks.limits.methods import METHODS
from benchmarks.limits.tasks import TASKS, measured

KEY = ("method", "problem", "seed")
# The seeds of the tables are this and above; those below are for trying things out.
FIRST_SEED = 100
_SMOKE_EVALUATIONS = 11
# A float is kept with so many digits.
_DIGITS = 10


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        method: A key of `METHODS`.
        problem: A key of `TASKS`.
        seed: Of everything random.
        smoke: Whether it only shows that everything runs.
    """

    method: str
    problem: str
    seed: int
    smoke: bool = False

    @property
    def key(self) -> Row:
        """Its values of `KEY`."""
        return {name: getattr(self, name) for name in KEY}

    @property
    def evaluations(self) -> int:
        """How many trials it has."""
        return _SMOKE_EVALUATIONS if self.smoke else TASKS[self.problem].evaluations

    @property
    def digest(self) -> str:
        """The digest of what decides its outcome. A row with another one is stale."""
        task, version = TASKS[self.problem], METHODS[self.method].version
        decides = (*self.key.values(), self.evaluations, task.parameters, task.revision, version)
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()


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


def attempt(case: Case) -> Row | str:
    """The row of a run, or how it failed."""
    return attempted(play, case)
