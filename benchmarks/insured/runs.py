"""Runs of the insured benchmark: one method on one problem, in one setting, with one seed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.insured.methods import METHODS, Task
from benchmarks.insured.problems import PROBLEMS
from benchmarks.insured.tables import (
    FIRST_SEED,
    SETTINGS,
    SMOKE_HORIZON,
    TABLES,
)
from benchmarks.unknown_hyperparameters import runs as of_the_paper
from benchmarks.unknown_hyperparameters.experiments import EXPERIMENTS

KEY = ("table", "problem", "setting", "method", "horizon", "seed")
# Points of a stored curve.
_POINTS = 40


@dataclass(frozen=True)
class Case:
    """One run: its columns of `KEY`."""

    table: str
    problem: str
    setting: str
    method: str
    horizon: int
    seed: int

    @property
    def key(self) -> Row:
        """What names its row."""
        return {name: getattr(self, name) for name in KEY}

    @property
    def digest(self) -> str:
        """Of what decides its outcome here: the method, its options and the setting. What the
        library and the problems decide has the revision of the method."""
        method = METHODS.get(self.method)
        made_of = "" if method is None else method.settings
        decides = (*self.key.values(), made_of, repr(SETTINGS[self.setting]))
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()


def cases(tables: Sequence[str], first_seed: int = 0, smoke: bool = False) -> list[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced.

    Args:
        tables: Keys of `TABLES`.
        first_seed: Added to `FIRST_SEED`.
        smoke: One short run of each method in the first setting, on one problem of each cell.
    """
    found = [
        Case(name, problem, setting, method, horizon, FIRST_SEED + first_seed + i)
        for name in tables
        for cell in TABLES[name]
        for horizon in ((SMOKE_HORIZON,) if smoke else cell.horizons)
        for i in range(1 if smoke else cell.seeds)
        for setting in (cell.settings[:1] if smoke else cell.settings)
        for problem in (cell.problems[:1] if smoke else cell.problems)
        for method in cell.methods
    ]
    # A method that two cells of a table play on the same is played once.
    return sorted(dict.fromkeys(found), key=lambda case: case.seed)


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest; ``regret``, cumulative; ``late``, the mean regret of the last
        quarter; ``best``, how often the best was played; ``lost``, whether a certified method
        eliminated it, or None; ``curve``, the cumulative regret at `_POINTS` steps; ``wall``
        seconds.
    """
    torch.set_num_threads(1)
    start = time.perf_counter()
    if case.table == "hyperparameters":
        regret, lost = _of_the_paper(case), None
    else:
        regret, lost = _played(case)
    scores = _summary(regret) | {"lost": lost}
    wall = round(time.perf_counter() - start, 3)
    return case.key | {"digest": case.digest} | scores | {"wall": wall}


def _played(case: Case) -> tuple[Tensor, bool | None]:
    """The regret of each step, and whether the maximiser was lost."""
    instance, setting = PROBLEMS[case.problem](case.seed), SETTINGS[case.setting]
    task = Task(instance, case.horizon, case.setting)
    strategy = METHODS[case.method].strategy(task, case.seed)
    problem = instance.problem
    contexts = None
    if hasattr(problem, "context_dim"):
        contexts = bx.Box([[0.0], [1.0]]).sample(case.horizon, case.seed)
    trace = bx.simulate(
        strategy,
        problem,
        case.horizon,
        contexts=contexts,
        actions=None if setting.share == 1 else _offers(problem.domain, setting.share, case),
        delay=setting.delay,
        seed=case.seed,
    )
    return trace.regret, _is_lost(strategy, problem)


def _offers(domain: bx.FiniteSet, share: float, case: Case) -> list[Tensor]:
    """A random part of the candidates for each step."""
    rng = np.random.default_rng([case.seed, 1])
    size = max(2, round(share * domain.num_points))
    draws = [rng.choice(domain.num_points, size, replace=False) for _ in range(case.horizon)]
    return [domain.points[torch.from_numpy(np.sort(draw))] for draw in draws]


def _is_lost(strategy: bx.Strategy, problem: bx.problems.Problem) -> bool | None:
    """Whether a certified method has eliminated the maximiser; None of others."""
    survivors = getattr(strategy, "survivors", None)
    if not hasattr(strategy, "certificate") or not isinstance(survivors, Tensor):
        return None
    best = int(problem(problem.domain.like).argmax())
    return best not in survivors.tolist()


def _of_the_paper(case: Case) -> Tensor:
    """The regret of a run of the benchmark of unknown hyperparameters, with its first width."""
    experiment = EXPERIMENTS[case.problem]
    horizon = case.horizon or experiment.horizon
    played = of_the_paper.Case(case.problem, experiment.widths[0], case.method, case.seed, horizon)
    return torch.tensor(of_the_paper.run_case(played)["curve"])


def _summary(regret: Tensor) -> Row:
    total = regret.cumsum(0)
    steps = torch.linspace(0, len(regret) - 1, min(_POINTS, len(regret))).round().long()
    return {
        "regret": round(float(total[-1]), 4),
        "late": round(float(regret[-len(regret) // 4 :].mean()), 5),
        "best": int((regret < 1e-9).sum()),
        "curve": [round(value, 3) for value in total[steps].tolist()],
    }
