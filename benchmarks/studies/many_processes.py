"""Many processes: that ask and tell in one study at once."""

from __future__ import annotations

import random
import time
from pathlib import Path

import torch

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.forks import in_a_fork, wait_for
from benchmarks.studies.objectives import value_at
from benchmarks.studies.strategies import box
from botorch_ext.domains import Domain
from botorch_ext.strategies import Asked, Strategy, Told
from botorch_ext.studies.threads import threads_for


def ask_and_tell(place: str | Path, strategy: Strategy, number: int, seed: int) -> None:
    """Asks, and tells in another order, so that three trials are pending; one is left so."""
    study, rng, mine = bx.Study(place, strategy), random.Random(seed), []
    for _ in range(number):
        mine.append(study.ask())
        if len(mine) > 3:
            trial = mine.pop(rng.randrange(len(mine)))
            study.tell(trial.id, value_at(trial.x))
    for trial in mine[1:]:
        study.tell(trial.id, value_at(trial.x))


def play(place: str | Path, strategy: Strategy, processes: int, number: int) -> Row:
    """Processes that ask and tell at once, each that many trials: how they went."""
    start = time.perf_counter()
    # Which of them begins the study is left open.
    children = [
        in_a_fork(lambda seed=seed: ask_and_tell(place, strategy, number, seed))
        for seed in range(processes)
    ]
    for child in children:
        wait_for(child)
    seconds = time.perf_counter() - start
    counted = {"processes": processes, "trials": processes * number}
    study = bx.Study(place, strategy)
    left = {"as many pending as left": len(study.pending) == processes}
    held = left | checked(study, strategy.clone(), processes)
    return counted | held | {"seconds": seconds}


def checked(study: bx.Study, alone: Strategy, num_pending: int) -> Row:
    """What must hold of a study of many processes, which asked one trial at a time and told what
    `value_at` gives.

    Args:
        study: That they worked on; it is asked once more.
        alone: Its strategy, without events. It is told the same and asked itself, in one process.
        num_pending: How many trials are left pending.
    """
    study.ask()
    pending: dict[int, torch.Tensor] = {}
    told, ids, most, corners, apart, right, same = [], [], 0, 0, True, True, True
    for event in study.events:
        if isinstance(event, Asked):
            ids.append(event.trial.id)
            x = event.trial.x
            if any(torch.equal(x, other) for other in pending.values()):
                corner = is_corner(study.strategy.domain, x)
                corners += corner
                apart &= corner
            pending[event.trial.id] = x
            most = max(most, len(pending))
            with threads_for(alone):
                expected = alone.ask()
            same &= torch.equal(x, expected.x) and event.trial.info == expected.info
        elif isinstance(event, Told):
            told.append(event.id)
            right &= event.value == value_at(pending.pop(event.id))
            alone.tell(event.id, event.value)
    return {
        "pending at once, at most": most,
        "each id once": ids == list(range(len(ids))) == sorted([*told, *pending]),
        "each value told once": right and len(set(told)) == len(told) == len(ids) - 1 - num_pending,
        "a corner asked again while pending": corners,
        "no other two pending at one point": apart,
        "one process alone asks the same": same,
    }


def is_corner(domain: Domain, x: torch.Tensor) -> bool:
    """Whether it is one of a box: with noise, a second value there may be worth the most."""
    return isinstance(domain, bx.Box) and bool((x == domain.bounds).any(0).all())


def tables(options: Options, folder: Path) -> Tables:
    """Eight processes, 400 trials."""
    row = play(folder / "many.db", box(), *((4, 3) if options.smoke else (8, 50)))
    return [("Asking and telling at once, in a continuous box.", [row])]
