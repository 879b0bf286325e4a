"""Runs on the real tasks: one peer on one task with one seed."""

from __future__ import annotations

import atexit
import time
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.common.method_runs import MethodRun
from benchmarks.common.tables import Row
from benchmarks.real.environments import PEERS, REQUIREMENTS, python_of
from benchmarks.real.protocol import Worker
from benchmarks.real.tasks import TASKS

# Seeds of the tables are this and above; those below are for trying things out.
FIRST_SEED = 100
_SMOKE_EVALUATIONS = 10
_DIGITS = 8


class Case(MethodRun):
    """One run of a peer of `PEERS` on a task of `TASKS`."""

    @property
    def evaluations(self) -> int:
        """How many it has."""
        return _SMOKE_EVALUATIONS if self.smoke else TASKS[self.problem].evaluations

    @property
    def settings(self) -> tuple[Any, ...]:
        """The task with what it needs installed, and the settings of the peer on it."""
        task = TASKS[self.problem]
        of_task = task.parameters, task.revision, REQUIREMENTS.get(task.environment)
        return of_task, PEERS[self.method].settings_on(task)


def cases(methods: Sequence[str], problems: Sequence[str], first: int) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced."""
    for seed in range(max(PEERS[method].seeds for method in methods)):
        for problem in problems:
            for method in methods:
                if seed < PEERS[method].seeds_on(TASKS[problem]):
                    yield Case(method, problem, first + seed)


# Of this process: one for each peer that it has played, and for each environment of tasks.
_workers: dict[str, Worker] = {}


def worker_of(name: str) -> Worker:
    """The worker of a peer, or of the tasks of an environment, started when first needed."""
    if name not in _workers or not _workers[name].is_running:
        environment = PEERS[name].environment if name in PEERS else name
        _workers[name] = Worker(python_of(environment), name)
    return _workers[name]


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; the losses that were ``seen``; the losses without noise
        of what the users of the peer take in the end (``recommended``: its recommendation, or the
        setting of the least loss seen) and of the setting of the least loss seen (``observed``);
        ``seconds`` of one core of each question with its answer; ``wall`` seconds. Of a run that
        ends early there are fewer of these.
    """
    started = time.perf_counter()
    task = TASKS[case.problem]
    evaluations = worker_of(task.environment)
    peer = worker_of(case.method)
    parameters = [vars(p) for p in task.parameters]
    peer.call("begin", parameters=parameters, seed=case.seed, evaluations=case.evaluations)
    settings, seen, seconds = [], [], []
    for number in range(case.evaluations):
        params, asked = peer.call("ask")
        seed = 1000 * case.seed + number
        loss, _ = evaluations.call("loss", task=task.name, params=params, seed=seed)
        _, told = peer.call("tell", loss=loss)
        settings.append(params)
        seen.append(float(f"{loss:.{_DIGITS}g}"))
        seconds.append(round(asked + told, 4))
        if sum(seconds) > task.seconds:
            break
    least = settings[min(range(len(seen)), key=seen.__getitem__)]
    best = peer.call("best")[0] or least
    observed, recommended = (
        evaluations.call("true", task=task.name, params=params)[0] for params in (least, best)
    )
    return case.key | {
        "digest": case.digest,
        "seen": seen,
        "recommended": recommended,
        "observed": observed,
        "seconds": seconds,
        "wall": round(time.perf_counter() - started, 2),
    }


def attempt(case: Case) -> Row:
    """The row of a run. A worker that failed is started again."""
    try:
        return play(case)
    except Exception:
        if case.method in _workers:
            _workers.pop(case.method).close()
        raise


@atexit.register
def close_workers() -> None:
    """Ends the workers of this process."""
    while _workers:
        _workers.popitem()[1].close()
