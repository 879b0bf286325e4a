"""Runs: one sampler on one problem, with one seed."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.optuna_samplers.loop import OptunaLoop
from benchmarks.optuna_samplers.samplers import SAMPLERS
from benchmarks.real.tasks.functions import FUNCTIONS, NOISES

NOISE, NUM_INITIAL, FIRST_SEED = NOISES[0], 8, 1000
_SMOKE_EVALUATIONS = 10


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        problem: A key of `FUNCTIONS`.
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
        return _SMOKE_EVALUATIONS if self.smoke else FUNCTIONS[self.problem].evaluations

    @property
    def digest(self) -> str:
        """Of everything that decides its outcome. A row with another one is stale."""
        bounds, sampler = FUNCTIONS[self.problem].bounds, SAMPLERS[self.method]
        decides = (*self.key.values(), self.evaluations, NOISE, bounds, sampler.settings)
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
        ``wall`` seconds.
    """
    torch.set_num_threads(1)
    started = time.perf_counter()
    function = FUNCTIONS[case.problem]
    rng = np.random.default_rng(_seed_of("noise", case))
    noise = NOISE * rng.standard_normal(case.evaluations) * function.width
    seed = _seed_of("method", case) % 2**31
    initial = bx.Box(list(function.bounds)).sample(NUM_INITIAL, seed).tolist()
    loop = OptunaLoop(function.bounds, initial, seed, SAMPLERS[case.method].make)
    values, observed, seconds = [], [], 0.0
    for which in range(case.evaluations):
        before = time.process_time()
        x = loop.ask()
        asked = time.process_time()
        values.append(float(function(torch.tensor([x], dtype=torch.float64))))
        observed.append(values[-1] + float(noise[which]))
        told = time.process_time()
        loop.tell(observed[-1])
        if which >= NUM_INITIAL:
            seconds += asked - before + time.process_time() - told
    best = max(range(len(observed)), key=observed.__getitem__)
    return case.key | {
        "digest": case.digest,
        "evaluations": case.evaluations,
        "regret": function.regret(values[best]),
        "seconds": seconds / (case.evaluations - NUM_INITIAL),
        "wall": round(time.perf_counter() - started, 2),
    }


def _seed_of(stream: str, case: Case) -> int:
    """The same for all samplers, and everywhere."""
    return zlib.crc32(repr((stream, case.problem, case.seed)).encode())
