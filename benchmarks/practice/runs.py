"""Runs of the practice benchmark: one method on one problem, in one setting, with one seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.resumable import attempted
from benchmarks.common.tables import Row
from benchmarks.practice.botorch_methods import best_mean, fitted
from benchmarks.practice.methods import METHODS, Loop, Start
from benchmarks.practice.problems import Problem, problems, scale_of
from benchmarks.practice.settings import (
    SETTINGS,
    fails_at,
    num_initial,
    observations,
    schedule,
    seed_of,
)

# Seeds of the tables are this and above; the default is tuned with seeds below.
FIRST_SEED = 1000
# A regret counts as at least so many ranges.
FLOOR = 1e-6
# The search of the box for the largest mean happens after so many results, and at the end.
_EVERY = 10
_DIGITS = 6
# What names a run among the rows.
KEY = ("setting", "problem", "noise", "method", "seed")


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        setting: A key of `SETTINGS`.
        problem: The name of one.
        noise: Standard deviation, in ranges.
        method: A key of `METHODS`.
        seed: Of the initial points, the noise and everything else that is random.
        smoke: Whether it only shows that everything runs.
    """

    setting: str
    problem: str
    noise: float
    method: str
    seed: int
    smoke: bool = False

    @property
    def key(self) -> Row:
        """Its values of `KEY`."""
        return {name: getattr(self, name) for name in KEY}

    @property
    def evaluations(self) -> int:
        """How many it has."""
        if self.smoke:
            return 20 if SETTINGS[self.setting].workers > 8 else 10
        return SETTINGS[self.setting].evaluations or problems()[self.problem].evaluations

    @property
    def digest(self) -> str:
        """Of everything that decides its outcome. A row with another one is stale."""
        setting, problem = SETTINGS[self.setting], problems()[self.problem]
        scale = scale_of(self.problem)
        decides = (
            *self.key.values(),
            self.evaluations,
            self.smoke,
            (setting.workers, setting.mean_delay, setting.fails, setting.outliers, setting.levels),
            problem.bounds,
            *(f"{number:.{_DIGITS}g}" for number in (scale.least, scale.width, scale.best)),
            METHODS[self.method].settings,
        )
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()


def cases(
    settings: Sequence[str],
    names: Sequence[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    smoke: bool = False,
) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced."""
    for seed in seeds:
        for setting in settings:
            for method in methods:
                for problem in names:
                    if problem in SETTINGS[setting].names:
                        for noise in SETTINGS[setting].noises:
                            yield Case(setting, problem, noise, method, seed, smoke)


@dataclass
class _Record:
    """Points, true values and observations of a run so far, and what was recommended."""

    problem: Problem
    fails: Any
    X: list[Tensor]
    values: list[float]
    seen: dict[int, float]
    curves: dict[str, list[float]]

    def value_at(self, x: Tensor) -> float:
        """The true value at a point; where evaluations fail, the least of the Sobol sample."""
        if self.fails(x):
            return scale_of(self.problem.name).least
        return float(self.problem.function(x.unsqueeze(0)))

    def regret(self, value: float) -> float:
        scale = scale_of(self.problem.name)
        return float(f"{max(scale.best - value, FLOOR * scale.width):.{_DIGITS}g}")

    def regret_at(self, x: Tensor) -> float:
        """At any point; the value at an evaluated one is known."""
        for other, value in zip(self.X, self.values, strict=True):
            if torch.equal(x, other):
                return self.regret(value)
        return self.regret(self.value_at(x))

    def add(self, loop: Loop, *, last: bool) -> None:
        """Writes down what is recommended now."""
        self.curves["told"].append(len(self.seen))
        highest = max(self.seen, key=self.seen.__getitem__)
        self.curves["observed"].append(self.regret(self.values[highest]))
        x = loop.evaluated()
        if x is not None:
            self.curves["evaluated"].append(self.regret_at(x))
        if last or len(self.seen) % _EVERY == 0:
            x = loop.recommended()
            if x is not None:
                self.curves["box"].append(self.regret_at(x))
                self.curves["box_told"].append(len(self.seen))


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; curves of regret, a number for each question after the
        initial ones and a last one for the end: of the largest observation (``observed``), of the
        evaluated point with the largest posterior mean of the method's model (``evaluated``), of
        the point of the box with the largest (``box``, after ``box_told`` results); ``told``, the
        results that were there; ``common``, the regret at the end of the evaluated point with the
        largest posterior mean of BoTorch's default model, for every method; ``seconds``, the
        seconds of one core of each question and its answer; ``failed`` evaluations; ``wall``
        seconds.
    """
    torch.set_num_threads(1)
    started = time.perf_counter()
    setting, problem = SETTINGS[case.setting], problems()[case.problem]
    # Runs of a cell with the same seed are pairs: all that they draw from is the same.
    cell = (case.setting, case.problem, case.noise, case.seed)
    events = schedule(setting, case.evaluations, seed_of("durations", *cell))
    seen_as = observations(
        setting, scale_of(case.problem), case.noise, case.evaluations, seed_of("noise", *cell)
    )
    initial, seed = num_initial(events), seed_of("method", *cell) % 2**31
    start = Start(problem.box, bx.Box(problem.box).sample(initial, seed), seed, case.smoke)
    loop = METHODS[case.method].make(start)
    names = ("told", "observed", "evaluated", "box", "box_told")
    fails = fails_at(setting, problem)
    record = _Record(problem, fails, [], [], {}, {name: [] for name in names})
    seconds = [0.0] * case.evaluations
    for kind, which in events:
        before = time.process_time()
        if kind == "ask":
            x = loop.ask()
            seconds[which] += time.process_time() - before
            if which >= initial:
                record.add(loop, last=False)
            record.X.append(x)
            record.values.append(record.value_at(x))
        elif fails(record.X[which]):
            loop.abandon(which)
        else:
            value = seen_as(which, record.values[which])
            before = time.process_time()
            loop.tell(which, value)
            seconds[which] += time.process_time() - before
            record.seen[which] = value
    record.add(loop, last=True)
    return (
        case.key
        | {"digest": case.digest, "evaluations": case.evaluations, "initial": initial}
        | record.curves
        | {
            "common": _common(record, problem),
            "failed": case.evaluations - len(record.seen),
            "seconds": [round(taken, 5) for taken in seconds],
            "wall": round(time.perf_counter() - started, 2),
        }
    )


def attempt(case: Case) -> Row | str:
    """The row of a run, or how it failed: one run must not end all others."""
    return attempted(play, case)


def _common(record: _Record, problem: Problem) -> float:
    X = torch.stack([record.X[which] for which in record.seen])
    Y = torch.tensor(list(record.seen.values()), dtype=torch.float64)
    best = best_mean(fitted(X, Y, problem.box), X)
    return record.regret(record.values[list(record.seen)[best]])
