"""Costs of keeping a study: of a tell, of reading the journal, of opening."""

from __future__ import annotations

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import MaternKernel

import botorch_ext as bx
from botorch_ext.algorithms import gp_bucb
from botorch_ext.models import KernelGP
from botorch_ext.strategies import RandomSearch, Strategy
from botorch_ext.studies.databases import Database
from botorch_ext.studies.journal import Journal
from botorch_ext.studies.records import as_text, from_text

_BOX = bx.Box([[-1.0, 2.0], [1.0, 5.0]])
_NOISE_VARIANCE = 0.01


def _kernel() -> MaternKernel:
    kernel = MaternKernel(nu=2.5)
    kernel.lengthscale = 0.7
    return kernel


def _strategy() -> Strategy:
    return gp_bucb(_BOX, _kernel(), noise_variance=_NOISE_VARIANCE, width=2.0)


def _seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def _told(study: bx.Study | Strategy, number: int) -> None:
    """That many random points, asked and told; no search."""
    for i, x in enumerate(_BOX.sample(number, seed=0)):
        study.attach(x, float(torch.sin(3.0 * x).sum()) + 0.01 * i)


def tell_row(folder: Path, num_points: int, repeats: int) -> dict[str, Any]:
    """A tell against three plain fsyncs of the same size in the same folder, in turn."""
    path, alone = folder / "tell.db", _strategy()
    study = bx.Study(path, _strategy())
    _told(study, num_points - repeats)
    _told(alone, num_points - repeats)
    tells, plain, syncs = [], [], []
    wal = Path(f"{path}-wal")
    with (folder / "plain").open("wb") as file:
        for _ in range(repeats):
            trial, own = study.ask(), alone.ask()
            before = wal.stat().st_size
            tells.append(_seconds(lambda id=trial.id: study.tell(id, 0.5)))
            plain.append(_seconds(lambda id=own.id: alone.tell(id, 0.5)))
            page = os.urandom(max(wal.stat().st_size - before, 4096))

            def sync(page: bytes = page) -> None:
                file.write(page)
                file.flush()
                os.fsync(file.fileno())

            syncs.append(sum(_seconds(sync) for _ in range(3)))
    allowed = max(0.005, statistics.median(syncs))
    return {
        "what": f"a tell, {num_points} points",
        "ms": 1000 * statistics.median(tells),
        "of the strategy alone": 1000 * statistics.median(plain),
        "three fsyncs": 1000 * statistics.median(syncs),
        "share of what is allowed": statistics.median(tells) / allowed,
    }


def journal_rows(folder: Path, num_events: int) -> list[dict[str, Any]]:
    """Reading a journal, half of it and all of it: time and memory."""
    strategy = RandomSearch(_BOX)
    for trial in strategy.ask(num_events // 2):
        strategy.tell(trial.id, 0.1 * trial.id)
    bodies = [as_text(event, 1.0) for event in strategy.events]
    rows = []
    for count in (num_events // 2, num_events):
        database = Database(folder / f"journal_{count}.db")
        journal = Journal.begin(database, "study", False, {})
        with journal.writing() as connection:
            journal.append(connection, journal.start, bodies[:count])

        def read(journal: Journal = journal) -> Any:
            with journal.reading() as connection:
                entries, _ = journal.since(connection, journal.start)
            return [from_text(entry.body, _BOX.like, 1.0) for entry in entries]

        seconds = statistics.median(_seconds(read) for _ in range(3))
        tracemalloc.start()
        read()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append({"what": f"reading {count} events", "s": seconds, "peak MB": peak / 1e6})
    return rows


def opening_row(folder: Path, num_points: int, repeats: int) -> dict[str, Any]:
    """Opening a study against adding its points to the model one by one, in CPU time, in turn."""
    path = folder / "opening.db"
    study = bx.Study(path, _strategy())
    for _ in range(num_points // 10):
        for trial in study.ask(10):
            study.tell(trial.id, float(torch.sin(3.0 * trial.x).sum()))
    X, Y = study.strategy.evaluated()

    def add() -> None:
        model = KernelGP(_kernel(), _NOISE_VARIANCE)
        for x, y in zip(X, Y, strict=True):
            model.add(x[None], y[None])

    def replay() -> None:
        _strategy().replay(study.events)

    measured = [
        [
            _seconds(work, time.process_time)
            for work in (lambda: bx.Study(path, _strategy()), add, replay)
        ]
        for _ in range(repeats)
    ]
    opened, added, replayed = (statistics.median(column) for column in zip(*measured, strict=True))
    return {
        "what": f"opening, {num_points} trials",
        "ms": 1000 * opened,
        "adding the points": 1000 * added,
        "replay without a file": 1000 * replayed,
        "ratio to adding": opened / added,
        "ratio to replay": opened / replayed,
    }
