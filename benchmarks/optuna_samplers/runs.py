"""Runs: one sampler on one problem, with one seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

import botorch_ext as bx
from benchmarks.common.resumable import attempted
from benchmarks.common.tables import Row
from benchmarks.optuna_samplers.samplers import SAMPLERS
from benchmarks.practice.optuna_methods import OptunaLoop
from benchmarks.practice.problems import problems, scale_of
from benchmarks.practice.runs import FIRST_SEED, FLOOR
from benchmarks.practice.settings import NOISES, PRIMARY, SETTINGS, observations, seed_of

NOISE, NUM_INITIAL = NOISES[0], 8
_SMOKE_EVALUATIONS = 10


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        problem: The name of one of the practice benchmark.
        method: A key of `SAMPLERS`.
        seed: Of the first points, the noise and the sampler.
        smoke: Whether it only shows that everything runs.
    """

    problem: str
    method: str
    seed: int
    smoke: bool = False

    @property
    def key(self) -> Row:
        """What names it among the rows."""
        return {"problem": self.problem, "method": self.method, "seed": self.seed}

    @property
    def evaluations(self) -> int:
        """How many it has, the first points among them."""
        return _SMOKE_EVALUATIONS if self.smoke else problems()[self.problem].evaluations

    @property
    def digest(self) -> str:
        """Of everything that decides its outcome. A row with another one is stale."""
        problem, sampler = problems()[self.problem], SAMPLERS[self.method]
        decides = (*self.key.values(), self.evaluations, NOISE, problem.bounds, sampler.settings)
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()


def cases(names: Sequence[str], seeds: Sequence[int], smoke: bool = False) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced."""
    for seed in seeds:
        for method in SAMPLERS:
            for problem in names:
                yield Case(problem, method, FIRST_SEED + seed, smoke)


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; ``regret`` of the largest observation, of its value
        without noise; ``seconds`` of one core a question and its answer, after the first points;
        ``wall`` seconds; ``setting`` and ``noise``, the same in all rows.
    """
    torch.set_num_threads(1)
    started = time.perf_counter()
    problem, scale, cell = (
        problems()[case.problem],
        scale_of(case.problem),
        (case.problem, case.seed),
    )
    seen_as = observations(
        SETTINGS[PRIMARY], scale, NOISE, case.evaluations, seed_of("noise", *cell)
    )
    seed = seed_of("method", *cell) % 2**31
    initial = bx.Box(problem.box).sample(NUM_INITIAL, seed)
    loop = OptunaLoop(problem.box, initial, seed, SAMPLERS[case.method].make)
    values, observed, seconds = [], [], 0.0
    for which in range(case.evaluations):
        before = time.process_time()
        x = loop.ask()
        asked = time.process_time()
        values.append(float(problem.function(x.unsqueeze(0))))
        observed.append(seen_as(which, values[-1]))
        told = time.process_time()
        loop.tell(which, observed[-1])
        if which >= NUM_INITIAL:
            seconds += asked - before + time.process_time() - told
    best = max(range(len(observed)), key=observed.__getitem__)
    return case.key | {
        "digest": case.digest,
        "setting": PRIMARY,
        "noise": NOISE,
        "evaluations": case.evaluations,
        "regret": max(scale.best - values[best], FLOOR * scale.width),
        "seconds": seconds / (case.evaluations - NUM_INITIAL),
        "wall": round(time.perf_counter() - started, 2),
    }


def attempt(case: Case) -> Row | str:
    """The row of a run, or how it failed."""
    return attempted(play, case)
